"""The verdict, in a sentence: whether any regime learns, what training the features gains, and what else would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, log

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.data.measuring import COMPARED, Cell, Measured, spread
from lazyscope.lenses.data.quadratic.part import QuadraticPart
from lazyscope.lenses.data.regimes import BOOSTED, NAMES
from lazyscope.lenses.forecast.advice import rounded

_CLEAR, _SURE = 2.0, 3.0  # standard errors
_WORTH_A_WORD = 0.01


@dataclass(frozen=True)
class Gain:
    """By how much the trained network lowers the error against the best lazy regime at a width, and how surely."""

    width: int
    lazy: str
    share: float
    stderr: float

    @property
    def clear(self) -> bool:
        """Whether it is beyond two standard errors and more than a hundredth, either way."""
        return abs(self.share) > max(_CLEAR * self.stderr, _WORTH_A_WORD)

    def lasts(self, before: Gain | None, growth: float, further: float) -> bool:
        """Whether it can be expected on `further` times the rows, given what it was on `growth` times fewer.

        The logarithm of the ratio of errors goes on along that of the rows, and must keep its sign by two standard
        errors.

        >>> Gain(128, "NT", 0.3, 0.02).lasts(Gain(128, "NT", 0.2, 0.05), 4.0, 4.0)
        True
        >>> Gain(128, "NT", -0.1, 0.02).lasts(Gain(128, "NT", -0.3, 0.05), 4.0, 4.0)
        False
        """
        if not self.clear or before is None:
            return False
        t = log(further) / log(growth)
        (here, doubt), (there, more) = self._logarithm, before._logarithm
        expected, stderr = here + t * (here - there), hypot((1.0 + t) * doubt, t * more)
        return bool(expected * here > 0 and abs(expected) > _CLEAR * stderr)

    @property
    def _logarithm(self) -> tuple[float, float]:
        """The logarithm of the ratio of errors, and its standard error."""
        ratio = max(1.0 - self.share, 1e-12)
        return log(ratio), self.stderr / ratio

    def __str__(self) -> str:
        percent = 100.0 * self.stderr
        return f"{abs(self.share):.0%} ± {percent:.{0 if percent >= 0.95 else 1}f}"


def gain(measured: Measured, samples: int, width: int, regimes: Sequence[str] = ("RF", "NT")) -> Gain | None:
    """Return the gain at a width, against the best of some lazy regimes; None unless all of them were measured."""
    network = Cell("NN", width, samples)
    lazy = [Cell(name, width, samples) for name in regimes]
    if any(cell not in measured.losses for cell in (network, *lazy)):
        return None
    best = min(lazy, key=lambda cell: measured.mean(cell)[0])
    share, stderr = _reduction(measured.losses[network], measured.losses[best])
    return Gain(width, best.regime, share, stderr)


def _reduction(new: list[FloatArray], old: list[FloatArray]) -> tuple[float, float]:
    """Return 1 − mean(new)/mean(old) and its standard error, to first order: that of new − ratio·old over old."""
    below, above = spread(old)[0], spread(new)[0]
    if below == 0.0:
        return 0.0, 0.0
    ratio = above / below
    paired = [a - ratio * b for a, b in zip(new, old, strict=True)]
    return 1.0 - ratio, spread(paired)[1] / below


def learns(measured: Measured) -> bool:
    """Whether any regime beats the best constant, by three standard errors of the paired difference.

    Three, not two: there are a dozen settings, and the best of them is looked at.
    """
    regimes = (cell for cell in measured.losses if cell.regime in NAMES)  # boosted trees are none
    return any(_beats_constant(measured, cell) for cell in regimes)


def _beats_constant(measured: Measured, cell: Cell) -> bool:
    pairs = zip(measured.constant, measured.losses[cell], strict=True)
    better, stderr = spread([constant - loss for constant, loss in pairs])
    return better > _SURE * stderr


def width_for(measured: Measured, samples: int, error: float) -> float | None:
    """Return the width at which random features reach an error: between two measured ones, on logarithmic scales."""
    cells = measured.at(samples).get("RF", [])
    for k, cell in enumerate(cells):
        here = measured.mean(cell)[0]
        if here <= error:
            if k == 0:
                return float(cell.width)
            before = measured.mean(cells[k - 1])[0]
            if before <= here:
                return float(cell.width)
            part = log(before / max(error, 1e-300)) / log(before / max(here, 1e-300)) if here > 0 else 1.0
            return float(cells[k - 1].width * (cell.width / cells[k - 1].width) ** min(1.0, part))
    return None


def sentence(measured: Measured, width: int) -> str:
    """Say it, comparing regimes at one width on the rows on which all of them were measured."""
    if measured.samples == 0:
        names = "random features, the tangent model and the trained network"
        return (
            f"No comparison: {measured.budget:g} s do not allow {names} at width {width} in every fold; "
            f"about {_duration(measured.needed)} would."
        )
    if measured.samples == measured.rows:
        return _compared(measured, measured.samples, width)
    some = f"{measured.samples:,} of {measured.rows:,} training rows, as many as {measured.budget:g} s allow"
    needed = f"about {_duration(measured.needed)} would allow all"
    if not learns(measured):
        return f"Undecided: on {some}, no regime predicts the target clearly better than a constant does; {needed}."
    here, before = gain(measured, measured.samples, width), gain(measured, measured.before(width), width)
    assert here is not None
    if _lasts(measured, here, before):
        said = _compared(measured, measured.samples, width)
        return f"On {some}, {said[0].lower()}{said[1:]} On all rows its sign can be expected, not its size; {needed}."
    lazy = "random features" if here.lazy == "RF" else "the tangent model"
    how = "lower" if here.share > 0 else "higher"
    if not here.clear:
        doubt = "which may be chance"
    elif before is None:
        doubt = "and nothing tells how that changes with the rows"
    else:
        was = "lower" if before.share > 0 else "higher"
        doubt = f"and on {measured.before(width):,} rows it is {before} {was}: on all it may be another"
    return (
        f"Undecided: on {some}, the error of the trained network is {here} {how} than that of {lazy} at width "
        f"{width}, {doubt}; {needed}."
    )


def _lasts(measured: Measured, here: Gain, before: Gain | None) -> bool:
    """Whether a gain on the rows of the comparison can be expected on all rows at hand."""
    if before is None:
        return False
    return here.lasts(before, measured.samples / measured.before(here.width), measured.rows / measured.samples)


def _compared(measured: Measured, samples: int, width: int) -> str:
    if not learns(measured):
        return "No regime learns: none predicts the target clearly better than a constant does."
    gained = gain(measured, samples, width)
    assert gained is not None
    error = measured.mean(Cell("NN", gained.width, samples))[0]
    against = f"against {'random features' if gained.lazy == 'RF' else 'the tangent model'}, the best lazy regime"
    if not gained.clear:
        lazy = measured.mean(Cell(gained.lazy, gained.width, samples))[0]
        plain = gain(measured, samples, width, ("RF",))
        behind = plain is not None and plain.clear and plain.share > 0
        more = f" Of lazy regimes, {_alternative(measured, samples, error)}." if behind else ""
        return (
            "Training features gains nothing that these data can show: "
            f"at width {gained.width} the error is {error:#.3g} with trained features and {lazy:#.3g} with "
            f"{'random features' if gained.lazy == 'RF' else 'the tangent model'} (a difference of {gained}).{more}"
        )
    if gained.share < 0:
        return f"Training features does harm: it raises the error by {gained} at width {gained.width}, {against}."
    text = f"Training features lowers the error by {gained} at width {gained.width}, {against}"
    return f"{text}; {_alternative(measured, samples, error)}."


def boosting(measured: Measured, width: int) -> str:
    """Say whether boosted trees would do better than the best of RF, NT and NN at a width; nothing without them."""
    trees = measured.reference
    if trees is None:
        return ""
    gained = _of_trees(measured, measured.samples, width)
    assert gained is not None
    do, error = "do" if gained.lazy == "RF" else "does", measured.mean(trees)[0]
    than = f"than the {NAMES[gained.lazy]} {do}" if gained.lazy != "RF" else "than random features do"
    everywhere = measured.samples == measured.rows
    if not everywhere:
        everywhere = _lasts(measured, gained, _of_trees(measured, measured.before(width), width))
    would = "Boosted trees would do" if everywhere else "On these rows boosted trees do"
    if not learns(measured) and not (gained.share > 0 and _beats_constant(measured, trees)):
        return ""  # both are worse than a constant: which is the less bad does not matter
    if not gained.clear:
        return f"{would} no better: their error is {error:#.3g}, a difference of {gained}."
    word, how = ("better", "lower") if gained.share > 0 else ("worse", "higher")
    return f"{would} {word} {than}: their error is {error:#.3g}, {gained} {how}."


def _of_trees(measured: Measured, samples: int, width: int) -> Gain | None:
    """Return by how much boosted trees lower the error of the best of RF, NT and NN, which is named in `lazy`."""
    trees, cells = Cell(BOOSTED, 0, samples), [Cell(name, width, samples) for name in COMPARED]
    if any(cell not in measured.losses for cell in (trees, *cells)):
        return None
    best = min(cells, key=lambda cell: measured.mean(cell)[0])
    return Gain(width, best.regime, *_reduction(measured.losses[trees], measured.losses[best]))


def shares(part: QuadraticPart) -> str:
    """Say what share of the variance is linear, quadratic, and neither, in whole percents with their errors."""
    linear, quadratic = (
        f"{share:.0%} ± {100.0 * stderr:.{0 if stderr >= 0.0095 else 1}f}"
        for share, stderr in ((part.linear, part.linear_stderr), (part.quadratic, part.quadratic_stderr))
    )
    doubt = "" if part.significant else ", which does not stand out from noise"
    known = f"{linear} linear in the inputs, {quadratic} quadratic{doubt}"
    if part.whole:
        return f"{known}, and {part.rest:.0%} noise or of higher order"
    seen = f"{len(part.beta)} of {part.columns} directions"
    return f"in {seen} {known}; the other {part.rest:.0%} may be linear or quadratic in directions not looked at"


def _duration(seconds: float) -> str:
    """Return a length of time that `budget` takes, rounded up to two digits.

    >>> _duration(7.3), _duration(100.0), _duration(5000.0)
    ('8s', '100s', '84m')
    """
    unit, name = (1.0, "s") if seconds < 120 else (60.0, "m")
    size = 10 ** max(0, int(np.floor(np.log10(max(seconds / unit, 1.0)))) - 1)
    return f"{int(np.ceil(seconds / unit / size) * size)}{name}"


def _alternative(measured: Measured, samples: int, error: float) -> str:
    needed = width_for(measured, samples, error)
    if needed is not None:
        return f"random features would need width {rounded(needed, 2):,} for it"
    tried = max((cell.width for cell in measured.at(samples).get("RF", [])), default=0)
    return f"random features do not reach it up to width {tried:,}"

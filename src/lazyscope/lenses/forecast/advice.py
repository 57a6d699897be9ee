"""Plain advice from a forecast: what more rows would buy, from which width on nothing is gained, and which ridge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.lenses.forecast import curve
from lazyscope.lenses.forecast.verb import Forecaster

_CLEAR = 2.0  # standard errors
_WORTH_A_WORD = 0.01
_FAR_BELOW = 0.1  # of the best constant's error: nobody whose error may be this far below it is said to learn nothing
_NOTHING = 1e-6  # of the best constant's error
_SAME = 0.03  # of the error: widths that near to infinity gain nothing more
_NO_RIDGE = 1e-5  # of the mean of the kernel's diagonal
_WIDTHS = np.geomspace(4.0, 65536.0, 57)


@dataclass(frozen=True)
class Gain:
    """By what share `more` rows lower the error of `rows`, and how surely; `extrapolated` where none were that many."""

    rows: int
    more: int
    share: float
    stderr: float
    extrapolated: bool

    @property
    def clear(self) -> bool:
        """Whether it is beyond two standard errors and more than a hundredth."""
        return self.share > max(_CLEAR * self.stderr, _WORTH_A_WORD)

    def __str__(self) -> str:
        share, stderr = 100.0 * self.share, max(0.1, 100.0 * self.stderr)
        digits = 0 if round(stderr, 1) >= 1.0 else 1
        return f"{share:.{digits}f} ± {stderr:.{digits}f} %"


@dataclass(frozen=True)
class Advice:
    """What is said of n rows at hand: the share of the best constant's error that is left, and what would change it.

    `stderr` is that of its logarithm; `learns` says that the share is below 1 beyond doubt.
    """

    rows: int
    share: float
    stderr: float
    learns: bool
    gain: Gain
    width: int | None
    ridge: float
    diagonal: float
    widths: bool = True

    @property
    def lines(self) -> tuple[str, ...]:
        """The advice in sentences."""
        left = _percent(self.share)
        if self.share < _NOTHING:
            return (f"With {self.rows:,} rows nothing is left of the best constant's error: more rows buy nothing.",)
        if not self.learns and self.share < 1.0 - max(_WORTH_A_WORD, min(self.stderr, _FAR_BELOW)):
            low, high = (_percent(self.share * np.exp(sign * _CLEAR * self.stderr)) for sign in (-1.0, 1.0))
            return (
                f"No answer: with {self.rows:,} rows {left} of the best constant's error would be left, but anything "
                f"from {low} to {high} is possible. Bring more rows.",
            )
        if not self.learns:
            return (
                f"Nothing is learnt: with {self.rows:,} rows the error is that of the best constant "
                f"({left} of it), and more rows buy nothing.",
            )
        there = f"With {self.rows:,} rows {left} of the best constant's error is left."
        return (there, self.of_rows, *([self.of_width] if self.widths else []), self.of_ridge)

    @property
    def of_rows(self) -> str:
        """What more rows would buy."""
        more = f"{self.gain.more:,} more rows"
        if not self.gain.clear:
            return f"{more} buy nothing that these rows can show ({self.gain})."
        beyond = ", by extrapolation" if self.gain.extrapolated else ""
        return f"{more} lower the error by {self.gain}{beyond}."

    @property
    def of_width(self) -> str:
        """From which width on nothing is gained."""
        if self.width is None:
            return f"Up to width {int(_WIDTHS[-1]):,} more neurons lower the error."
        return f"Beyond width {self.width:,} nothing is gained: less than {_SAME:.0%} of the error."

    @property
    def of_ridge(self) -> str:
        """The best ridge, in both conventions."""
        if self.ridge < _NO_RIDGE * self.diagonal:
            return "No ridge is needed."
        return f"Best ridge: {self.ridge:.2g} (λ of Σ(y − f)² + λ‖a‖²; {self.ridge / self.rows:.2g} as λ/n)."


def advise(known: Forecaster, rows: int, *, widths: bool = True) -> Advice:
    """Return the advice for whoever has `rows` rows; the pool may be a part of them.

    `widths=False` says that the width is no question, as for a tangent kernel.
    """
    more = rounded(float(rows))
    n = np.array([float(rows), float(rows + more)])
    ridge = known.best_ridge(n, np.inf)
    forecast = known.at(n, np.inf, ridge)
    shares, sure = known.overall(forecast)
    here, change, own = float(shares[0, 0]), shares[:, 1] / shares[:, 0], float(sure[0])
    apart = np.sqrt(np.mean(forecast["apart"][:, 1] ** 2))  # what the continuation adds to the jackknife
    stderr = float(np.hypot(curve.spread(change) * forecast["widened"][1], apart))
    gain = Gain(rows, more, 1.0 - float(change[0]), stderr * float(change[0]), bool(forecast["extrapolated"][1]))
    learns = here < min(float(np.exp(-_CLEAR * own)), 1.0 - _WORTH_A_WORD)
    width = _enough(known, n[0], (1.0 + _SAME) * here) if widths else None
    return Advice(rows, here, own, learns, gain, width, float(ridge[0]), known.diagonal, widths)


def _percent(share: float) -> str:
    """Return a share in words.

    >>> _percent(0.49), _percent(0.00123), _percent(7e5)
    ('49%', '0.1%', '7e+07%')
    """
    return f"{share:.0%}" if 0.01 <= share < 100.0 else f"{100.0 * share:.1g}%"


def _enough(known: Forecaster, n: float, wanted: float) -> int | None:
    """Return the width from which on the error, at its own best ridge, is as low as is wanted."""
    ridge = known.best_ridge(n, _WIDTHS)
    shares, _ = known.overall(known.at(n, _WIDTHS, ridge))
    short = np.nonzero(shares[0] > wanted)[0]
    first = 0 if short.size == 0 else int(short[-1]) + 1
    return None if first == len(_WIDTHS) else rounded(float(_WIDTHS[first]), 2)


def rounded(value: float, digits: int = 1) -> int:
    """Return so many digits of a number.

    >>> rounded(442.0), rounded(5873.2, 2)
    (400, 5900)
    """
    size = 10 ** max(0, int(np.floor(np.log10(value))) + 1 - digits)
    return max(1, int(round(value / size) * size))

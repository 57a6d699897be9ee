"""Dots held to their predictions: each by its own z, all of a figure by χ², and every draw beside its neighbours.

A dot is the mean of some draws; its prediction is what theory says at the dot's own sizes, an `allowance` what that
leaves out, by its own estimate. Three things are asked of the dots that are predicted:

- none lies farther off than 4 standard errors and its allowance;
- Σz² is what chance gives. Dots that were made from the same random numbers move together: Σz² then still has the
  mean k, their number, but the variance 2 Σr_ij², r their correlations. It is that of (k/ν)χ² with ν = k²/Σr_ij²
  degrees of freedom, which gives the range (Satterthwaite's approximation);
- no draw is unlike the other draws of its dot, and none is more like what was predicted for another draw. One network
  with wrong weights hardly moves a mean, it widens the standard error; but it stands out among its neighbours. With
  m_i measured of draw i and p_i predicted for it, both less their mean over draws, and s its spread, S_ij =
  Σ[(m_i − p_i)² − (m_i − p_j)²]/s² over the dots is negative for the right weights, normal around −D² with the
  variance 4D², D² = Σ(p_i − p_j)²/s², and D² for those of draw j. Two draws that were exchanged have S_ij + S_ji,
  normal around −2D² with the variance 8D² where they were not. Beyond 16 either is four standard deviations from right
  for every D.

A prediction that leaves out more than a tenth of the risk does not count: its dot is "not predicted".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame.draws import over_draws
from lazyscope.experiments.frame.verdict import Answer, answer
from lazyscope.runs.side_by_side import as_normal

STANDARD_ERRORS = 4.0
LEFT_OUT = 0.1  # of the risk: the most that a prediction may leave out
ENOUGH = 0.8  # of the dots must be predicted
_REACH = 2.0 * STANDARD_ERRORS  # of what is known within a factor of two
_SWAPPED = STANDARD_ERRORS**2
_NORMAL_MEDIAN = 0.6745  # of |Z|, Z normal
_STRANGE = 1e-3  # chance of a figure in which some draw stands out as far as the farthest
_NAMED = 6  # dots that a verdict names


@dataclass(frozen=True, eq=False)
class Dot:
    """A measured mean beside its prediction.

    Parameters
    ----------
    where
        Words that find the dot again.
    draws
        What was measured, draw by draw.
    predicted
        What theory says of it: a number, or one for each draw. NaN where there is no prediction.
    allowance
        What the prediction leaves out, by its own estimate.
    scale
        The risk, of which the allowance may be a tenth; the prediction itself if it is left out.
    stream
        Dots of the same stream have seen the same random numbers, draw by draw.
    limit
        The value in the limit of large sizes, for the table.
    spread
        The standard deviation of one draw where theory has it; else it is that of the draws.
    order
        The same to leading order only, right within a factor of two: no z is made of it, but a draw farther off than
        4 · 2 of it is unlike what was predicted for it, and so is a dot of a single draw.
    floor
        What the rounding of the simulation's arithmetic may add.
    compared
        Whether a draw is asked to be like the others of this dot: once for a stream. Not where hundreds of dots are
        made from the same draws, of which one or the other would stand out somewhere.

    Examples
    --------
    >>> dot = Dot("N = 10", np.array([1.0, 1.2, 1.1]), 1.0, 0.05)
    >>> f"{dot.difference:.2f} ± {dot.stderr:.3f}, z = {dot.z:.1f}, {dot.is_predicted}"
    '0.10 ± 0.058, z = 1.2, True'
    >>> Dot("N = 11", np.array([1.0, 1.2, 1.1]), 1.0, 0.15).is_predicted
    False
    """

    where: str
    draws: FloatArray
    predicted: FloatArray | float
    allowance: float
    scale: float | None = None
    stream: Hashable = None
    limit: float = float("nan")
    spread: float | None = None
    order: float | None = None
    floor: float = 1e-10
    compared: bool = True

    @cached_property
    def off(self) -> FloatArray:
        """Measured minus predicted, draw by draw."""
        return np.asarray(self.draws - self.predicted, dtype=np.float64)

    @property
    def difference(self) -> float:
        """The mean of measured minus predicted."""
        return float(np.mean(self.off))

    @cached_property
    def stderr(self) -> float:
        """Its standard error: from the spread that theory has, or that of the draws; NaN if there is one draw."""
        if self.spread is not None:
            return self.spread / float(np.sqrt(self.off.size))
        return float(over_draws(self.off)[1])

    @cached_property
    def is_predicted(self) -> bool:
        """Whether there is a prediction, and it leaves out at most a tenth of the risk."""
        scale = float(np.mean(self.predicted)) if self.scale is None else self.scale
        return bool(np.all(np.isfinite(self.predicted)) and self.allowance <= LEFT_OUT * scale + self.floor)

    @cached_property
    def is_zero(self) -> bool:
        """Whether all is zero to rounding, as a training error is where data are fitted.

        So small that rounding, which ends at `floor`, is more than a tenth of it.
        """
        least = self.floor / LEFT_OUT
        return bool(np.all(np.abs(self.draws) < least) and np.all(np.abs(self.predicted) < least))

    @cached_property
    def is_certain(self) -> bool:
        """Whether every draw is what was predicted of it, to rounding: there is no chance to judge by."""
        return self.is_zero or bool(np.all(np.abs(self.off) <= self.floor))

    @cached_property
    def z(self) -> float:
        """The difference in standard errors, as a normal variable with its sign."""
        if self.is_certain or np.isnan(self.stderr):
            return float("nan")
        if self.spread is not None:
            return self.difference / self.stderr
        size = as_normal(np.abs(np.asarray(self.difference)), np.asarray(self.stderr), self.off.size)
        return float(np.sign(self.difference) * size)

    @property
    def is_far(self) -> bool:
        """Whether it lies beyond its allowance and 4 standard errors; for one draw, 8 times `order` or a tenth."""
        if self.is_zero:
            return abs(self.difference) > self.floor
        if np.isnan(self.stderr):
            reach = LEFT_OUT * float(np.mean(self.predicted)) if self.order is None else _REACH * self.order
            return abs(self.difference) - self.allowance > reach
        beyond = abs(self.difference) - self.allowance > STANDARD_ERRORS * self.stderr
        return abs(self.z) > STANDARD_ERRORS and beyond

    def strangest(self) -> tuple[float, int]:
        """Return the chance that a draw is as far from the others as the farthest one is, and which it is.

        Student's law for a draw beside the mean and the spread of the others; of log(measured/predicted) where both
        are positive, as risks near their peak have a long tail to one side.
        """
        from scipy.stats import t as student

        count = self.off.size
        if count < 2 or self.is_certain or self.spread is not None or not self.compared:
            return 1.0, 0
        k = int(np.argmax(np.abs(self.off)))
        if self.order is not None and abs(self.off[k]) - self.allowance > _REACH * self.order:
            return 0.0, k
        if count < 4:
            return 1.0, k
        positive = np.all(self.draws > 0.0) and np.all(np.asarray(self.predicted) > 0.0)
        values = np.log(self.draws / self.predicted) if positive else self.off
        total, squares = values.sum(), np.square(values - values.mean()).sum()
        apart = values - (total - values) / (count - 1)
        # the spread of the others, from that of all
        others = np.maximum(squares - np.square(apart) * (count - 1) / count, 0.0) / (count - 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.abs(apart) / np.sqrt(others * count / (count - 1)), posinf=np.inf)
        k = int(np.argmax(ratio))
        return float(2.0 * student.sf(ratio[k], count - 2)), k


@dataclass(frozen=True, eq=False)
class Judgement:
    """All dots of a figure, and whether they obey theory."""

    dots: tuple[Dot, ...]

    @cached_property
    def counted(self) -> tuple[Dot, ...]:
        """The dots that are predicted."""
        return tuple(dot for dot in self.dots if dot.is_predicted)

    @cached_property
    def z(self) -> FloatArray:
        """Of the counted dots that have a standard error."""
        return np.array([dot.z for dot in self._scored])

    @property
    def _scored(self) -> list[Dot]:
        return [dot for dot in self.counted if np.isfinite(dot.z)]

    @property
    def chi2(self) -> tuple[float, float, float]:
        """Σz², and the points that chance leaves below and above once in a hundred figures."""
        from scipy.stats import chi2

        count = self.z.size
        if not count:
            return 0.0, 0.0, 0.0
        freedom = independent(self._scored)
        low, high = count / freedom * chi2.ppf([0.01, 0.99], freedom)
        return float(np.sum(np.square(self.z))), float(low), float(high)

    @cached_property
    def far(self) -> list[str]:
        """Dots that are too far off, in words."""
        words = []
        for dot in self.counted:
            if dot.is_far:
                told = ", one draw" if dot.off.size < 2 else f", z = {dot.z:+.1f}"
                words.append(f"{dot.where} ({dot.difference:+.4f}{told})")
        return words

    @cached_property
    def strange(self) -> list[str]:
        """Draws that stand out among those of their dot, in words."""
        some = [(dot, *dot.strangest()) for dot in self.counted]
        streams = {(k if dot.stream is None else dot.stream): dot.off.size for k, dot in enumerate(self.counted)}
        draws = sum(streams.values())
        strange = [f"{dot.where}, draw {k}" for dot, chance, k in some if chance * draws < _STRANGE]
        return strange + self._swapped()

    def _swapped(self) -> list[str]:
        """Return draws that are more like what was predicted for another one, over all dots that have as many."""
        groups: dict[int, list[Dot]] = {}
        for dot in self.counted:
            if dot.order is not None and np.size(dot.predicted) == dot.off.size > 1 and not dot.is_zero:
                groups.setdefault(dot.off.size, []).append(dot)
        words = []
        for group in groups.values():
            drawn, foretold = _centred([dot.draws for dot in group]), _centred([dot.predicted for dot in group])
            order = np.array([[dot.order] for dot in group])
            # the spread is known within a factor of two; the median, which one wrong draw hardly moves, says more
            factor = np.median(np.abs(drawn - foretold) / order, axis=1, keepdims=True) / _NORMAL_MEDIAN
            spread = (order * np.clip(factor, 0.5, 2.0))[:, :, None]
            apart = np.square((drawn[:, :, None] - foretold[:, None, :]) / spread).sum(axis=0)  # of draw i from p_j
            new = independent(group) / len(group)  # the share of the dots that tells something new
            gain = new * (np.diagonal(apart)[:, None] - apart)
            i, j = np.unravel_index(np.argmax(gain), gain.shape)
            if gain[i, j] > _SWAPPED:
                words.append(f"draw {i} of {len(group)} dots, which is more like draw {j}")
            both = gain + gain.T
            i, j = np.unravel_index(np.argmax(both), both.shape)
            if both[i, j] > _SWAPPED:
                words.append(f"draws {i} and {j} of {len(group)} dots, which seem to be exchanged")
        return words

    @property
    def enough(self) -> bool:
        """Whether at least four of five dots are predicted."""
        return len(self.counted) >= ENOUGH * len(self.dots)

    @property
    def as_chance(self) -> bool:
        """Whether Σz² is within its range."""
        total, low, high = self.chi2
        return low <= total <= high

    def answer(self) -> Answer:
        """Return in one line whether the dots obey theory, with the numbers that say so."""
        total, low, high = self.chi2
        count = f"{len(self.counted)} of {len(self.dots)} dots predicted"
        farthest = f"the farthest {np.max(np.abs(self.z)):.1f}" if self.z.size else "none with a standard error"
        chance = f"χ² = {total:.1f} for {self.z.size} dots (chance: {low:.1f} to {high:.1f}), {farthest}"
        wrong = [f"too far: {_some(self.far)}"] if self.far else []
        wrong += [f"unlike the other draws: {_some(self.strange)}"] if self.strange else []
        wrong += [] if self.enough else ["too few predicted"]
        wrong += [] if self.as_chance else ["not as chance would have it"]
        yes = f"Theory and simulation agree: {count}, all within {STANDARD_ERRORS:g} standard errors; {chance}"
        few = "Too few dots are predicted to say whether theory and simulation agree"
        no = few if wrong == ["too few predicted"] else "Theory and simulation differ"
        return answer(not wrong, yes, f"{no}: {count}; {chance}; {'; '.join(wrong)}")


def _centred(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return what differs between the draws of each dot: whether their mean is right is a question for z."""
    some = np.array(values)
    return np.asarray(some - some.mean(axis=1, keepdims=True))


def independent(dots: Sequence[Dot]) -> float:
    """Return k²/Σr_ij²: as many independent dots would scatter like these k correlated ones."""
    return len(dots) ** 2 / squared_correlations(dots) if dots else 0.0


def squared_correlations(dots: Sequence[Dot]) -> float:
    """Return Σr_ij² over all pairs: 1 for each dot, and that of dots of one stream, without the bias of few draws.

    >>> noise = np.random.default_rng(0).standard_normal(200)
    >>> alike = [Dot("", 1.0 + noise, 1.0, 0.0, stream=1), Dot("", 2.0 + noise, 2.0, 0.0, stream=1)]
    >>> round(squared_correlations(alike), 6), squared_correlations([Dot("", 1.0 + noise, 1.0, 0.0)] * 3)
    (4.0, 3.0)
    """
    streams: dict[Hashable, list[FloatArray]] = {}
    for k, dot in enumerate(dots):
        key = (k,) if dot.stream is None else (dot.stream, dot.off.size)
        streams.setdefault(key, []).append(dot.off)
    total = 0.0
    for group in streams.values():
        count, draws = len(group), group[0].size
        varied = [off for off in group if np.ptp(off) > 0.0]  # what is certain moves with nothing
        if len(varied) > 1 and draws > 2:
            squares = np.square(np.asarray(np.corrcoef(np.array(varied)))[~np.eye(len(varied), dtype=bool)])
            # the mean of r² is 1/(draws − 1) where nothing is correlated
            total += max(0.0, float(np.sum((squares * (draws - 1) - 1.0) / (draws - 2))))
        total += count
    return total


def table(dots: Iterable[Dot]) -> list[str]:
    """Return a line for every dot: measured, limit, predicted, their difference, the allowance, and z.

    >>> table([Dot("N = 10", np.array([1.0, 1.2, 1.1]), 1.0, 0.05, limit=0.9)])[1].split()
    ['N', '=', '10', '1.1', '±', '0.058', '0.9', '1', '+0.1', '0.05', '+1.2']
    """
    some = list(dots)
    wide = max((len(dot.where) for dot in some), default=0)
    lines = [f"{'dot':<{wide}}{'simulated':>15}{'limit':>16}{'predicted':>11}{'difference':>12}{'allowed':>9}{'z':>6}"]
    for dot in some:
        limit = "" if np.isnan(dot.limit) else f"{dot.limit:.4g}"
        told = f"{dot.where:<{wide}}{np.mean(dot.draws):>11.4g} ± {dot.stderr:<7.2g}{limit:>10}"
        if dot.is_predicted:
            z = "" if np.isnan(dot.z) else f"{dot.z:+.1f}"
            told += f"{np.mean(dot.predicted):>11.4g}{dot.difference:>+12.2g}{dot.allowance:>9.2g}{z:>6}"
        else:
            told += "  not predicted"
        lines.append(told)
    return lines


def judged(dots: Iterable[Dot]) -> Judgement:
    """Hold dots to their predictions.

    >>> rng = np.random.default_rng(0)
    >>> right = [Dot(f"dot {k}", 1.0 + 0.1 * rng.standard_normal(8), 1.0, 0.01) for k in range(20)]
    >>> print(judged(right).answer())
    Theory and simulation agree: 20 of 20 dots predicted, all within 4 standard errors; χ² = ...
    >>> judged([Dot(dot.where, 1.2 * dot.draws, 1.0, 0.01) for dot in right]).answer().holds
    False
    """
    return Judgement(tuple(dots))


def _some(words: Sequence[str]) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return "; ".join(words[:_NAMED]) + more

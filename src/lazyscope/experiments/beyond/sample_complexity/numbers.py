"""Sample complexity: the n at which a learner reaches a given error, against d (Bai & Lee 2019, §5.2).

A function of a few directions (`feature_learners`): lazy methods pay for its degree, SGD for its information exponent.
2-XOR, y = x₁x₂ on {±1}^d: the tangent kernel needs n ~ d² (Wei et al. 2019, a lower bound), the quadratic model and the
randomised network n ~ d (Theorems 6 and 7, an upper bound). A monomial (βᵀx)^p with ‖x‖ = √d, ‖β‖ = 1: d^p and d^{p−1}.

One draw is one data set, whose first n samples are learnt from for n = 2d, 2√2 d, 4d, … until the error on fresh inputs
is below the level; n(d) lies between the last two n, by interpolation of log error in log n. Exponents are slopes of
log n(d) in log d over all draws, with Student's intervals from the residuals, so that a bend widens them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.experiments.beyond.sample_complexity import feature_learners
from lazyscope.experiments.beyond.sample_complexity.learners import KERNELS, LEARNERS, error
from lazyscope.experiments.frame import Draw, Row, dataset
from lazyscope.experiments.frame.draws import attributes, computed, provenance
from lazyscope.experiments.frame.types import Dataset
from lazyscope.limits import declared
from lazyscope.problems import MultiIndex, RidgeMonomial, SparseParity
from lazyscope.weights import generator

_TESTED = 4000
_RATIO = sqrt(2.0)
_CONFIDENCE = 0.95
_THEOREM = "§5.2: Theorems 6 and 7; Wei et al. (2019) for the tangent kernel"
_FEW = "degree of the target for lazy methods, information exponent or leap for SGD, the linear part for a giant step"
_SOURCES = "defilippis2024dimension,benarous2021online,abbe2023leap,ba2022onestep"


@dataclass(frozen=True, eq=False)
class SampleComplexityDraw(Draw):
    """One data set and one learner: the error as n grows, until it is at most `level`, or n is at `most`.

    `width` is m of a trained learner, and means nothing to a kernel.
    """

    problem: SparseParity | RidgeMonomial | MultiIndex
    learner: str
    level: float = 0.05
    width: int = 256
    most: int = 12_000
    number: int = 0
    seed: int = 0
    activation: str | None = None

    words = "{0.learner}, d = {0.problem.d}"

    def __post_init__(self) -> None:
        known = feature_learners.LEARNERS if isinstance(self.problem, MultiIndex) else tuple(LEARNERS)
        if self.learner not in known:
            must = f"be one of {', '.join(known)} for {type(self.problem).__name__}"
            raise InvalidParameter.of("sample_complexity", "learners", must, repr(self.learner))
        if not 0.0 < self.level < 1.0:
            must = "be an error between 0 and 1"
            raise InvalidParameter.of("sample_complexity", "level", must, f"{self.level:g}")

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first: kernels see d² samples, networks d."""
        d = self.problem.d
        if isinstance(self.problem, MultiIndex):
            degree = declared.few_direction_samples(self.problem, self.learner, self.level)
            return int(d ** min(2.0 * degree if self.learner in feature_learners.LAZY else degree + 1.0, 8.0))
        return d**4 if self.learner in KERNELS else 500 * d**2

    @property
    def sigma(self) -> str:
        """The σ of kernels, features and the giant step on a function of a few directions."""
        assert isinstance(self.problem, MultiIndex)
        return self.activation or feature_learners.activation_for(self.problem, self.learner)

    def compute(self) -> Row:
        """Return `samples` and `error`, one of each for every n, up to the first error that is at most the level."""
        samples, errors = [], []
        for n, error_of_n in self._course():
            samples.append(n)
            errors.append(error_of_n)
            if error_of_n <= self.level:
                break
        return {"samples": np.array(samples), "error": np.array(errors)}

    def _course(self) -> Iterator[tuple[int, float]]:
        """Return n and the error, as n grows: SGD goes on with fresh samples, the others start anew at every n."""
        problem = self.problem
        if not isinstance(problem, MultiIndex):
            return self._learnt(problem)
        if self.learner != "SGD":
            return self._refitted(problem)
        key = (self.seed, self.number, problem.d, 3)
        return feature_learners.descended(problem, feature_learners.neuron_of(problem), self.most, key)

    def _learnt(self, problem: SparseParity | RidgeMonomial) -> Iterator[tuple[int, float]]:
        """Yield the error of the learner on the first n samples of a parity or a monomial, as n grows."""
        key = (self.number, problem.d)
        X_test, _ = problem.sample(_TESTED, generator(self.seed, *key, 1))
        wanted = problem.target(X_test)
        X, y = problem.sample(self.most, generator(self.seed, *key, 0))
        for n in grid(problem.d, self.most):
            rng = generator(self.seed, *key, 2, n)
            values = LEARNERS[self.learner](problem, X[:n], y[:n], X_test, self.width, rng)
            yield n, float(np.min(error(problem, values, wanted)))

    def _refitted(self, problem: MultiIndex) -> Iterator[tuple[int, float]]:
        """Yield the least risk over ridges on the first n samples, as n grows."""
        key, sigma = (self.number, problem.d), Activation(self.sigma)
        X_test, wanted = feature_learners.wanted(problem, feature_learners.TESTED, generator(self.seed, *key, 1))
        sizes = grid(problem.d, self.most)
        X, y = feature_learners.sampled(problem, max(sizes), generator(self.seed, *key, 0))
        for n in sizes:
            rng = generator(self.seed, *key, 2, n)
            values = feature_learners.predicted(self.learner, problem, sigma, X[:n], y[:n], X_test, self.width, rng)
            yield n, float(np.min(np.mean((values - wanted) ** 2, axis=1))) / problem.energy


def grid(d: int, most: int) -> list[int]:
    """Return n = 2d, 2√2 d, 4d, … up to `most`.

    >>> grid(16, 130)
    [32, 45, 64, 91, 128]
    """
    whole = (round(2 * d * _RATIO**k) for k in range(200))
    return [n for n in whole if n <= most]


def crossing(samples: FloatArray, errors: FloatArray, level: float) -> float:
    """Return the n at which log error, linear in log n between the last two points, is log level; NaN if it is not.

    An error of zero on the test counts as half of the least that it can see. A first point below the level is an
    upper bound, and no crossing: NaN.

    >>> round(crossing(np.array([100, 200]), np.array([0.1, 0.025]), 0.05), 3)
    141.421
    """
    if len(samples) < 2 or errors[-1] > level:
        return float("nan")
    (x0, x1), (e0, e1) = np.log(samples[-2:]), np.log(np.maximum(errors[-2:], 0.5 / _TESTED))
    return float(np.exp(x0 + (x1 - x0) * (e0 - log(level)) / (e0 - e1)))


def sample_complexity(
    problems: Sequence[SparseParity | RidgeMonomial | MultiIndex],
    learners: Sequence[str] | None = None,
    *,
    level: float = 0.05,
    width: int = 256,
    most: int = 12_000,
    draws: int = 3,
    seed: int = 0,
    activation: str | None = None,
) -> Dataset:
    """Measure n(d) for problems of several dimensions and some learners, with exponents and their intervals.

    Parameters
    ----------
    problems
        The same problem in several dimensions, such as ``[SparseParity(d) for d in (16, 32, 64)]``.
    learners
        Names of learners: "NTK", "quadratic model", "randomised network", "trained network" and others for parities and
        monomials; "kernel", "RF", "NT", "giant step" and "SGD" for a `MultiIndex`. By default the main ones.
    level
        Error to be reached: share of inputs misclassified, or squared error over that of the best constant.
    width, most
        m of what is trained; the largest n tried.
    draws, seed
        Data sets for each d, at least 2.
    activation
        σ of kernels, features and the giant step on a `MultiIndex`. By default sin or cos for the former and erf2 or
        softplus for the latter, as the target's highest degree is odd or even. SGD trains neurons like the target's.

    Returns
    -------
    xarray.Dataset
        `needed`, n(d), over (`learner`, `d`), geometric mean over draws, with `needed_stderr` of its logarithm;
        `exponent`, `exponent_stderr`, `exponent_low`, `exponent_high` over `learner`; `missed`, how many draws did not
        reach the level. For a `MultiIndex` also `theory`, n(d) by the deterministic equivalents of lazy learners at the
        same ridges (∞ for the others), and `theory_exponent`.

    Examples
    --------
    >>> from lazyscope import SparseParity
    >>> result = sample_complexity([SparseParity(6), SparseParity(9)], ["NTK"], draws=2, most=400)
    >>> bool(1.0 < result.exponent.sel(learner="NTK") < 3.0)
    True
    """
    draws = whole_number(draws, "sample_complexity", "draws", least=2)
    if len({problem.d for problem in problems}) < 2:
        must = "have at least two dimensions d"
        raise InvalidParameter.of("sample_complexity", "problems", must, f"{len(problems)} of one")
    if learners is None:
        few = all(isinstance(problem, MultiIndex) for problem in problems)
        learners = ("kernel", "SGD") if few else ("NTK", "quadratic model", "randomised network", "trained network")
    plan = [
        SampleComplexityDraw(problem, learner, level, width, most, number, seed, activation)
        for learner in learners
        for problem in problems
        for number in range(draws)
    ]
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[SampleComplexityDraw], rows: Sequence[Row]) -> Dataset:
    """Return the report from draws that differ in learner, d and number alone; a learner may lack the largest d."""
    learners = list(dict.fromkeys(draw.learner for draw in plan))
    dimensions = sorted({draw.problem.d for draw in plan})
    table = np.full((len(learners), len(dimensions), len({draw.number for draw in plan})), np.nan)
    planned = np.zeros(table.shape, dtype=bool)
    for draw, row in zip(plan, rows, strict=True):
        where = learners.index(draw.learner), dimensions.index(draw.problem.d), draw.number
        table[where], planned[where] = crossing(row["samples"], row["error"], draw.level), True
    fits = np.array([slope(np.array(dimensions, dtype=float), needed) for needed in table])
    logs = np.log(table)
    count = np.sum(np.isfinite(table), axis=2)
    mean = np.where(count > 0, np.nansum(logs, axis=2) / np.maximum(count, 1), np.nan)
    spread = np.nansum((logs - mean[:, :, None]) ** 2, axis=2) / np.maximum(count - 1, 1) / np.maximum(count, 1)
    first = plan[0]
    variables: dict[str, Any] = {
        "needed": (("learner", "d"), np.exp(mean)),
        "needed_stderr": (("learner", "d"), np.where(count > 1, np.sqrt(spread), np.nan)),
        "draw": (("learner", "d", "number"), table),
        "missed": (("learner", "d"), np.sum(planned & ~np.isfinite(table), axis=2)),
    }
    for i, name in enumerate(("exponent", "exponent_stderr", "exponent_low", "exponent_high")):
        variables[name] = ("learner", fits[:, i])
    if isinstance(first.problem, MultiIndex):
        variables |= in_theory(plan, learners, dimensions)
    told = (_FEW, _SOURCES) if isinstance(first.problem, MultiIndex) else (_THEOREM, "bai2020beyond")
    about = provenance("sample-complexity", *told, first.seed) | {"problem": type(first.problem).__name__}
    about |= attributes(first, "level", "width", "seed")
    return dataset(variables, {"learner": learners, "d": dimensions}, about)


def in_theory(plan: Sequence[SampleComplexityDraw], learners: list[str], dimensions: list[int]) -> dict[str, Any]:
    """Return n(d) of lazy learners, ∞ for others, and exponents of d, for functions of a few directions."""
    theory, exponents = np.full((len(learners), len(dimensions)), np.inf), np.empty(len(learners))
    for draw in {(draw.learner, draw.problem.d): draw for draw in plan}.values():
        assert isinstance(draw.problem, MultiIndex)
        i = learners.index(draw.learner)
        exponents[i] = declared.few_direction_samples(draw.problem, draw.learner, draw.level)
        if draw.learner in feature_learners.LAZY:
            n = feature_learners.needed_in_theory(draw.problem, draw.learner, draw.level, draw.sigma)
            theory[i, dimensions.index(draw.problem.d)] = n
    return {"theory": (("learner", "d"), theory), "theory_exponent": ("learner", exponents)}


def curves(plan: Sequence[SampleComplexityDraw], rows: Sequence[Row], d: int) -> Dataset:
    """Return `error` against `samples` in one dimension, (`learner`, `point`): means over draws, as far as all went."""
    learners = list(dict.fromkeys(draw.learner for draw in plan if draw.problem.d == d))
    by_learner = {
        learner: [row for draw, row in zip(plan, rows, strict=True) if draw.problem.d == d and draw.learner == learner]
        for learner in learners
    }
    lengths = {learner: min(len(row["samples"]) for row in some) for learner, some in by_learner.items()}
    shape = (len(learners), max(lengths.values()))
    samples, errors = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, learner in enumerate(learners):
        length = lengths[learner]
        samples[i, :length] = by_learner[learner][0]["samples"][:length]
        errors[i, :length] = np.mean([row["error"][:length] for row in by_learner[learner]], axis=0)
    dims = ("learner", "point")
    return dataset({"samples": (dims, samples), "error": (dims, errors)}, {"learner": learners}, {"d": d})


def slope(d: FloatArray, needed: FloatArray) -> tuple[float, float, float, float]:
    """Fit log n = slope·log d + const to (d, draw), NaN left out: slope, standard error, and a 95% interval.

    >>> slope(np.array([10.0, 100.0]), np.array([[10.0, 20.0], [1000.0, 2000.0]]))[0].__round__(12)
    2.0
    """
    from scipy.stats import t

    x = np.broadcast_to(np.log(d)[:, None], needed.shape)[np.isfinite(needed)]
    y = np.log(needed[np.isfinite(needed)])
    if len(x) < 3 or np.ptp(x) == 0.0:
        return (float("nan"),) * 4
    x, y = x - x.mean(), y - y.mean()
    exponent = float(x @ y / (x @ x))
    stderr = float(np.sqrt(np.sum((y - exponent * x) ** 2) / (len(x) - 2) / (x @ x)))
    reach = float(t.ppf(0.5 + _CONFIDENCE / 2, len(x) - 2)) * stderr
    return exponent, stderr, exponent - reach, exponent + reach


def gain(result: Dataset, learner: str, over: str = "NTK") -> tuple[float, float, float]:
    """Return by how much the exponent of a learner is smaller than that of another, with a 95% interval.

    >>> import xarray as xr
    >>> fits = {"exponent": ("learner", [2.0, 1.0]), "exponent_stderr": ("learner", [0.03, 0.04])}
    >>> gain(xr.Dataset(fits, {"learner": ["NTK", "quadratic model"]}), "quadratic model")
    (1.0, 0.9, 1.1)
    """
    own, other = result.sel(learner=learner), result.sel(learner=over)
    smaller = float(other.exponent - own.exponent)
    reach = 2.0 * float(np.hypot(own.exponent_stderr, other.exponent_stderr))
    return smaller, smaller - reach, smaller + reach

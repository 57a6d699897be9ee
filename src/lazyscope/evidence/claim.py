"""A claim: what is implemented, for which problem, regime and fidelity, on whose word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.evidence import results
from lazyscope.evidence.results import Reduction
from lazyscope.evidence.work import Row
from lazyscope.problems import GaussianMixture, MultiIndex, Problem, QuadraticTarget
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime
from lazyscope.weights import generator

if TYPE_CHECKING:
    from lazyscope.evidence.run import Run

Fidelity = Literal["limit", "exact", "simulate"]


Example = Callable[[int], tuple[Any, Any]]
"""A family of instances: d ↦ (problem, regime)."""


def always(problem: Any, regime: Any) -> bool:
    """Serve every instance of the pair."""
    return True


def nonlinear_features(problem: Any, regime: Any) -> bool:
    """Serve nonlinear features σ(⟨w, x⟩), and not their noisy linear surrogate."""
    return not regime.surrogate


def isotropic_features(problem: Any, regime: Any) -> bool:
    """Serve isotropic weights with nonlinear features σ(⟨w, x⟩)."""
    return getattr(regime, "weights", None) is None and not getattr(regime, "surrogate", False)


def weights_exist(problem: Any, regime: Any) -> bool:
    """Serve weights that can be drawn: the best ones for a function of a few directions all lie along them."""
    return not (isinstance(regime.weights, str) and isinstance(problem, MultiIndex))


def differentiable_activation(problem: Any, regime: Any) -> bool:
    """Serve σ with a derivative that is a function."""
    return bool(regime.activation.has_derivative)


def square_activation(problem: Any, regime: Any) -> bool:
    """Serve σ(u) = αu² + γ."""
    return bool(regime.activation.is_square)


def unchanged(run: Run) -> Run:
    """Return a run that leaves nothing to its claim's defaults."""
    return run


def at_ratios(theorem: Callable[..., Mapping[str, Any]]) -> Callable[[Run], Row]:
    """Return how to compute a theorem f(problem, regime, *axes), whose axes broadcast against one another."""
    return lambda run: dict(theorem(run.problem, run.regime, *run.grid()))


def at_width(risk: Callable[..., Mapping[str, Any]]) -> Callable[[Run], Row]:
    """Return how to compute f(problem, regime, N, rng), which draws the weights of N neurons."""

    def compute(run: Run) -> Row:
        N = run.whole("width")
        return dict(risk(run.problem, run.regime, N, generator(run.seed, run.number, N)))

    return compute


def of_run(training: Callable[..., Mapping[str, Any]]) -> Callable[[Run], Row]:
    """Return how to compute f(problem, regime, run), which knows the types of the problems and regimes it serves."""
    return lambda run: dict(training(run.problem, run.regime, run))


@dataclass(frozen=True)
class Claim:
    """One implemented (problem, regime) pair in one fidelity: what it rests on, and how it is computed.

    What it rests on: `theorem`, `citations` (keys of the bibliography), `assumptions`, `erratum` where the source is
    misprinted. `bibtex` has the entries of those citations that lazyscope's own bibliography lacks. `method` tells
    claims of one pair apart that answer different questions, such as ridge regression and the largest margin; users
    name it. `covers` says whether this claim serves a given pair, of those that have the right types; claims of one
    pair are asked in order. Where `assumes` says no, a later claim whose hypotheses hold goes before; without one
    `compute` names the hypothesis that fails. A claim of another package raises its `version` when its numbers change:
    a sweep then takes no stored ones for them. `scaled` claims serve `Trained(alpha=…)`, and nothing else.

    How it is computed: `compute` makes a row from a run. `arguments` are the sizes that it takes; of these it takes
    `arrays` all values at once, the others one by one; `optional` ones may be left out. `protocol` is the kind of
    training that it follows, if any. `settle` writes the defaults of a run out, and refuses what contradicts itself.
    `dims` names the axes that a variable has beside the sizes. `reduce` makes one result of several draws.
    `tolerance` is the largest `residual` or `gap` that a row may have. `scale_free` says that the answer does not
    depend on the units of the problem, which are then taken out.

    What is tested: `example(d)` is a family of instances for the contract test, and `sizes` where it asks, if not where
    it usually does. `rate` is the declared exponent r of a
    limit: one draw of `exact` lies at a distance ∝ d^−r of it, in root mean square (None: the two are identical), which
    is measured in `dimensions` where the usual ones would take `exact` too long.
    `finite_size` is what a simulation declares that its finite number of samples may add to the risk, from its
    `risk`, `width`, `n`, `samples` and `trace`.
    """

    fidelity: Fidelity
    problem: type[Problem]
    regime: type[Regime]
    title: str
    theorem: str
    citations: tuple[str, ...]
    assumptions: tuple[str, ...]
    arguments: tuple[str, ...]
    compute: Callable[[Run], Row]
    example: Example
    covers: Callable[[Any, Any], bool] = always
    assumes: Callable[[Any, Any], bool] = always
    erratum: str = ""
    bibtex: str = ""
    version: str = ""
    rate: float | None = None
    dimensions: tuple[int, ...] = ()
    finite_size: Callable[[dict[str, Any]], Any] | None = None
    method: str | None = None
    scaled: bool = False
    arrays: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    protocol: type[TrainingProtocol] | None = None
    settle: Callable[[Run], Run] = unchanged
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reduce: Reduction = results.with_reports
    tolerance: float = 1e-4
    scale_free: bool = True
    sizes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.fidelity == "limit":  # a theorem is a function of its sizes: arrays cost it nothing
            object.__setattr__(self, "arrays", self.arguments)

    def follows(self, protocol: TrainingProtocol | None) -> bool:
        """Return whether this is trained, by a protocol of this kind."""
        return self.protocol is not None and isinstance(protocol, self.protocol)

    @property
    def key(self) -> str:
        """A stable name: fidelity/Problem/Regime/title."""
        slug = self.title.lower().replace(" ", "-").replace(",", "")
        return f"{self.fidelity}/{self.problem.__name__}/{self.regime.__name__}/{slug}"


def exponential_quantiles(d: int) -> QuadraticTarget:
    """Return the paper's target without its randomness: the spectrum of B are the d quantiles of Exp(1).

    >>> exponential_quantiles(1000).alignment.__round__(2)
    0.5
    """
    return QuadraticTarget(-np.log1p(-(np.arange(d) + 0.5) / d))


def three_levels(d: int) -> GaussianMixture:
    """Return the paper's mixture without its randomness: a third of the diagonal at each of {2, 1.5, 1}/√d.

    >>> three_levels(300).information.__round__(4)
    2.4167
    """
    return GaussianMixture(np.array([2.0, 1.5, 1.0])[np.arange(d) * 3 // d] / np.sqrt(d))

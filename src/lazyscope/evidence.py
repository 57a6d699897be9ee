"""A claim: what is implemented, for which problem, regime and fidelity, on whose word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lazyscope.checks import arithmetic
from lazyscope.errors import NotConverged
from lazyscope.problems import GaussianMixture, Problem, QuadraticTarget
from lazyscope.regimes import Regime

Fidelity = Literal["limit", "exact", "simulate"]


Example = Callable[[int], tuple[Any, Any]]
"""A family of instances: d ↦ (problem, regime)."""


def always(problem: Any, regime: Any) -> bool:
    """Serve every instance of the pair."""
    return True


def nonlinear_features(problem: Any, regime: Any) -> bool:
    """Serve features that are σ(⟨w, x⟩) indeed, not the noisy linear ones."""
    return not regime.surrogate


def square_activation(problem: Any, regime: Any) -> bool:
    """Serve σ(u) = αu² + γ."""
    return bool(regime.activation.is_square)


@dataclass(frozen=True)
class Claim:
    """One implemented (problem, regime) pair in one fidelity, with its source and its hypotheses.

    `evaluate` computes one point or one curve; `covers` says whether this claim serves a given pair (claims of
    one pair are asked in order); `example(d)` is a family of instances for the contract test; `rate` is the
    declared exponent r of a limit: one draw of `exact` lies at a distance ∝ d^−r of it, in root mean square
    (None: the two are identical). `best_of_draws` says that draws are restarts of a minimisation, of which the
    best counts. `finite_size` is what a simulation declares that its finite number of samples may add to the risk,
    from its `risk`, `width`, `n`, `samples` and `trace`. `method` tells claims of one pair apart that answer different
    questions, such as ridge regression and the largest margin: users name it. `scaled` claims are those that serve
    `Trained(alpha=…)`, and nothing else. `tolerance` is the largest `residual` or `gap` that a result may have.
    `scale_free` says that the answer does not depend on the units of the problem, which are then taken out.
    """

    fidelity: Fidelity
    problem: type[Problem]
    regime: type[Regime]
    title: str
    theorem: str
    citations: tuple[str, ...]
    assumptions: tuple[str, ...]
    arguments: tuple[str, ...]
    evaluate: Callable[..., dict[str, Any]]
    example: Example
    covers: Callable[[Any, Any], bool] = always
    erratum: str = ""
    rate: float | None = None
    best_of_draws: bool = False
    finite_size: Callable[[dict[str, Any]], Any] | None = None
    method: str | None = None
    scaled: bool = False
    tolerance: float = 1e-4
    scale_free: bool = True

    def compute(self, problem: Any, regime: Any, *where: Any) -> dict[str, Any]:
        """Evaluate, and let nothing leave that is not a number, or whose residual is above its tolerance.

        The scale of the problem is taken out before, so that huge and tiny ones give the same numbers.

        >>> import lazyscope as ls
        >>> from lazyscope.registry import find
        >>> problem, regime = ls.QuadraticTarget([1e100, 0.0]), ls.Trained()
        >>> find("exact", problem, regime).compute(problem, regime, 1, None)
        {'risk': 0.0}
        """
        seen = problem.in_units(regime) if self.scale_free else problem
        with arithmetic(f"The arithmetic of {self.title}"):
            values = self.evaluate(seen, regime, *where)
        for name, value in values.items():
            numbers = np.asarray(value)
            if numbers.dtype.kind == "f" and np.any(np.isnan(numbers)):
                raise NotConverged(
                    f"{self.title.capitalize()} gave no number for {name}: something over- or underflowed on the way. "
                    "Bring weights, spectra and step sizes closer to 1."
                )
            if name in ("residual", "gap") and not np.all(numbers <= self.tolerance):
                raise NotConverged(
                    f"The solver of {self.title} left a {name} of {np.max(numbers):.1e} (tolerance {self.tolerance:.0e}"
                    "): the system is too ill-conditioned. Use smaller sizes, or a problem and weights whose numbers "
                    "are closer to one another."
                )
        return values

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

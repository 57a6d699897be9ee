"""Expressivity: Theorem 7's W⋆ at finite width, its error, its loss and its norm against the bound (Bai & Lee 2019).

    |L^Q(W⋆) − L(f⋆)| ≤ ε and ‖W⋆‖⁴_{2,4} ≤ 32π ((p−2)³ ∨ 1) α² B_x^{2(p−2)} ‖β‖^{2p}/δ for m large enough,

for f⋆ = α(βᵀx)^p and for sums, 2-XOR among them. The error is a mean over m/2 independent neurons: it falls like
m^{−1/2}, and so does the loss where it is Lipschitz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.evidence.work import Measurement
from lazyscope.experiments.exponents import computed, exponents, over_draws
from lazyscope.numerics.losses import LOSSES
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.training.taylor.construction import expected_norm, express, monomials, norm_bound
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import norm_24
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

DELTA = 0.5
"""The δ of Theorem 7 that bounds are stated for."""

_MEASURED = ("error", "worst", "loss", "norm")


@dataclass(frozen=True, eq=False)
class ExpressivityDraw(Measurement):
    """One initialisation of one width: W⋆ for the problem's target, measured on n inputs."""

    problem: RidgeMonomial | SparseParity
    width: int
    samples: int = 200
    activation: Activation | str = "relu3"
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"expressivity, {self.problem}, m = {self.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.samples

    def compute(self) -> dict[str, FloatArray]:
        """Do the work: build W⋆ and evaluate f^Q at n inputs, 4nmd flops."""
        return {name: np.asarray(value) for name, value in measure(self).items()}


def measure(draw: ExpressivityDraw) -> dict[str, float]:
    """Return what W⋆ achieves on n fresh inputs.

    `error` is the root mean square of f^Q − f⋆ over that of f⋆, `worst` its largest size over the same, `loss`
    |L^Q(W⋆) − L(f⋆)| (logistic for labels, square for numbers) and `norm` ‖W⋆‖⁴_{2,4}.
    """
    problem, rng = draw.problem, generator(draw.seed, draw.number, draw.width)
    model = TaylorModel.symmetric(draw.width, problem.d, as_activation(draw.activation), rng, Bx=problem.Bx)
    X, _ = problem.sample(draw.samples, np.random.default_rng(np.random.SeedSequence(draw.seed, spawn_key=(0, 0))))
    W, wanted = express(model, monomials(problem), rng), problem.target(X)
    found = model.piece(2, W, X)
    loss, size = LOSSES["logistic" if problem.classification else "square"], float(np.sqrt(np.mean(wanted**2)))
    return {
        "error": float(np.sqrt(np.mean((found - wanted) ** 2))) / size,
        "worst": float(np.max(np.abs(found - wanted))) / size,
        "loss": abs(float(np.mean(loss.value(wanted, found) - loss.value(wanted, wanted)))),
        "norm": norm_24(W) ** 4,
    }


def expressivity(
    problem: RidgeMonomial | SparseParity,
    widths: Any = (100, 1000, 10_000),
    *,
    samples: int = 200,
    activation: Activation | str = "relu3",
    draws: int = 4,
    seed: int = 0,
) -> xr.Dataset:
    """Build Theorem 7's W⋆ for a problem's target at several widths, and measure it.

    Parameters
    ----------
    problem
        `RidgeMonomial`, with p − 2 ∈ {0, 1, 2, 4, 6, …} for relu3, or `SparseParity` with k = 2: 2-XOR.
    widths
        m, even.
    samples, activation, draws, seed
        Inputs that errors are taken over, σ, and initialisations.

    Returns
    -------
    xarray.Dataset
        `error`, `worst`, `loss` and `norm` (see `measure`) over `width`, means over draws with `<name>_stderr`;
        `exponent` of the error in m with `exponent_stderr`; `expected_norm` and `norm_bound` at δ = ½.

    Examples
    --------
    >>> result = expressivity(RidgeMonomial(5, 3), [100, 10_000], draws=2)
    >>> bool(result.norm.max() < result.norm_bound), bool(abs(result.exponent + 0.5) < 0.2)
    (True, True)
    """
    some = np.atleast_1d(whole_numbers(widths, "expressivity", "widths")).tolist()
    draws = whole_number(draws, "expressivity", "draws")
    plan = [ExpressivityDraw(problem, m, samples, activation, number, seed) for m in some for number in range(draws)]
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[ExpressivityDraw], rows: Sequence[dict[str, Any]]) -> xr.Dataset:
    """Return the report from draws that differ in width and number alone."""
    import xarray as xr

    widths = list(dict.fromkeys(draw.width for draw in plan))
    first = plan[0]
    sigma, terms, Bx = as_activation(first.activation), monomials(first.problem), first.problem.Bx
    variables: dict[str, Any] = {}
    for name in _MEASURED:
        table = np.array(
            [[float(row[name]) for draw, row in zip(plan, rows, strict=True) if draw.width == m] for m in widths]
        )
        mean, stderr = over_draws(table)
        variables |= {name: ("width", mean), f"{name}_stderr": ("width", stderr)}
        if name == "error":
            slope, spread = exponents(np.array(widths), table)
            variables |= {"exponent": ((), slope), "exponent_stderr": ((), spread)}
    variables["expected_norm"] = ((), expected_norm(terms, sigma, Bx))
    variables["norm_bound"] = ((), norm_bound(terms, Bx, DELTA))
    attributes = {
        "theorem": "Theorem 7",
        "citations": "bai2020beyond",
        "problem": str(first.problem),
        "activation": sigma.name,
        "samples": first.samples,
        "draws": len(plan) // len(widths),
        "seed": first.seed,
    }
    return xr.Dataset(variables, {"width": widths}, attributes)

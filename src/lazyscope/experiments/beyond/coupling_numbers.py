"""Coupling: how far a network under random signs is from its quadratic model, against the width (Q: Bai & Lee 2019).

With ‖w_r‖ = m^{−1/4}/B_x and f^Q = O(1), Lemmas 10 to 14 there bound, for L(W) = E_Σ (1/n) Σ ℓ(y_i, f_{W₀+WΣ}(x_i)),

    f^L_{WΣ},  f_{W₀+WΣ} − f^Q,  |L − L^Q|,  |⟨∇L − ∇L^Q, W⟩|,  |E_Σ′(∇²L − ∇²L^Q)[W⋆Σ′, W⋆Σ′]|  =  O(m^{−1/4}),

while f^L_W, without signs, grows like m^{1/4}. W is one direction v in the half with a = +1, so that f^Q does not
vanish; W⋆ another. Bounds are bounds: the last three are even in Σ, and what is measured falls like m^{−1/2}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.evidence.work import Measurement
from lazyscope.experiments.exponents import computed, exponents, over_draws
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Point, Risk
from lazyscope.training.taylor.signs import random_signs
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

QUANTITIES: dict[str, tuple[str, float]] = {
    "linear_plain": ("f^L without signs (§3)", 0.25),
    "linear": ("f^L under signs (Lemma 11a)", -0.25),
    "quadratic": ("f^Q (Lemma 10)", 0.0),
    "gap": ("f − f^Q under signs (Lemma 11)", -0.25),
    "rest": ("f − f^L − f^Q under signs (Lemma 11b)", -0.25),
    "risk": ("|L − L^Q| (Lemma 12)", -0.25),
    "gradient": ("|⟨∇L − ∇L^Q, W⟩| (Lemma 13)", -0.25),
    "hessian": ("|(∇²L − ∇²L^Q)[W⋆, W⋆]| (Lemma 14)", -0.25),
}
"""What is measured: its name in the papers' terms, and the exponent of m that they bound it by (at unit norms)."""


@dataclass(frozen=True, eq=False)
class CouplingDraw(Measurement):
    """One initialisation of one width: every size of `QUANTITIES`, over n inputs and `signs` pairs ±Σ."""

    width: int
    d: int = 10
    samples: int = 32
    signs: int = 8
    activation: Activation | str = "relu3"
    loss: str = "logistic"
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"coupling, m = {self.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.samples

    def compute(self) -> dict[str, FloatArray]:
        """Do the work: 2·signs + 2 expansions of m neurons at n inputs, to second order."""
        return {name: np.asarray(value) for name, value in measure(self).items()}


def measure(draw: CouplingDraw) -> dict[str, float]:
    """Return the root mean squares over inputs and signs of the pieces of f, and the differences of the risks."""
    sigma = as_activation(draw.activation)
    require_smooth(sigma, 2)
    m, rng = draw.width, generator(draw.seed, draw.number, draw.width)
    model = TaylorModel.symmetric(m, draw.d, sigma, rng)
    data = np.random.default_rng(np.random.SeedSequence(draw.seed, spawn_key=(draw.number, 0)))
    X = _directions(draw.samples, draw.d, data)
    v, v_star = _directions(2, draw.d, data)
    W, W_star = half(m, v), half(m, v_star)
    y = np.where((X @ v) * (X @ v_star) < 0, -1.0, 1.0)
    clean = Risk(model, X, y, draw.loss, orders=2).at(W, derivatives=2)
    network, fQ = Risk(model, X, y, draw.loss, orders=None), clean.expansion.values
    linear = model.expand(W, X, 1).D * (W @ X.T) * (model.a / np.sqrt(m))[:, None]  # f^L_{WΣ} = Σ_r Σ_rr of its rows
    squares = {"linear": 0.0, "gap": 0.0, "rest": 0.0}
    risk, gradient, hessian = [], [], []
    for _ in range(draw.signs):
        signs = random_signs(m, rng)
        for mirrored in (signs, -signs):
            point = network.at(W, mirrored, derivatives=2)
            f, fL = point.expansion.values, mirrored @ linear
            for name, values in (("linear", fL), ("gap", f - fQ), ("rest", f - fL - fQ)):
                squares[name] += float(np.mean(values**2)) / (2 * draw.signs)
            risk.append(point.value)
            gradient.append(_along(point))
            hessian.append(point.curvature_over_signs(W_star))
    return {
        "linear_plain": _rms(np.sum(linear, axis=0)),
        "quadratic": _rms(fQ),
        **{name: float(np.sqrt(value)) for name, value in squares.items()},
        "risk": abs(float(np.mean(risk)) - clean.value),
        "gradient": abs(float(np.mean(gradient)) - _along(clean)),
        "hessian": abs(float(np.mean(hessian)) - clean.curvature_over_signs(W_star)),
    }


def half(m: int, v: FloatArray) -> FloatArray:
    """Return W with w_r = m^{−1/4} v where a_r = +1, and zero where a_r = −1.

    >>> half(16, np.ones(1)).ravel()[6:10]
    array([0.5, 0.5, 0. , 0. ])
    """
    W = np.zeros((m, len(v)))
    W[: m // 2] = m**-0.25 * v
    return W


def _directions(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    X = rng.standard_normal((n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1)[:, None])


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _along(point: Point) -> float:
    """⟨∇L(WΣ)Σ, W⟩."""
    return float(np.sum(point.gradient() * point.W))


def coupling(
    widths: Any = (100, 320, 1000, 3200, 10_000),
    *,
    d: int = 10,
    samples: int = 32,
    signs: int = 8,
    activation: Activation | str = "relu3",
    loss: str = "logistic",
    draws: int = 4,
    seed: int = 0,
) -> xr.Dataset:
    """Measure how the network couples with its quadratic model, with fitted exponents beside the lemmas'.

    Parameters
    ----------
    widths
        m, even, at least two of them.
    d, samples, signs
        Inputs on the unit sphere in d dimensions, n of them; pairs ±Σ of random signs.
    activation, loss
        σ ∈ C² with σ″ Lipschitz; "logistic", "soft hinge" or "square".
    draws, seed
        Initialisations, each with its own inputs and signs.

    Returns
    -------
    xarray.Dataset
        `size` over (`quantity`, `width`) with `stderr`, its mean over draws; `exponent`, `exponent_stderr` and the
        lemmas' `bound` over `quantity`.

    Examples
    --------
    >>> result = coupling([100, 10_000], draws=2, signs=4)
    >>> bool(abs(result.exponent.sel(quantity="linear") + 0.25) < 0.1)
    True
    """
    some = np.atleast_1d(whole_numbers(widths, "coupling", "widths")).tolist()
    draws = whole_number(draws, "coupling", "draws")
    plan = [
        CouplingDraw(m, whole_number(d, "coupling", "d"), samples, signs, activation, loss, number, seed)
        for m in some
        for number in range(draws)
    ]
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[CouplingDraw], rows: Sequence[dict[str, Any]]) -> xr.Dataset:
    """Return the report from draws that differ in width and number alone."""
    import xarray as xr

    widths = list(dict.fromkeys(draw.width for draw in plan))
    names = list(QUANTITIES)
    table = np.array(
        [
            [[float(row[name]) for draw, row in zip(plan, rows, strict=True) if draw.width == m] for m in widths]
            for name in names
        ]
    )  # (quantity, width, draw)
    slope, spread = exponents(np.array(widths), table)
    mean, error = over_draws(table)
    first = plan[0]
    return xr.Dataset(
        {
            "size": (("quantity", "width"), mean),
            "stderr": (("quantity", "width"), error),
            "exponent": ("quantity", slope),
            "exponent_stderr": ("quantity", spread),
            "bound": ("quantity", [QUANTITIES[name][1] for name in names]),
        },
        {"quantity": names, "width": widths, "name": ("quantity", [QUANTITIES[name][0] for name in names])},
        {
            "theorem": "Lemmas 10–14",
            "citations": "bai2020beyond",
            "activation": as_activation(first.activation).name,
            "loss": first.loss,
            "d": first.d,
            "samples": first.samples,
            "signs": first.signs,
            "draws": table.shape[-1],
            "seed": first.seed,
        },
    )

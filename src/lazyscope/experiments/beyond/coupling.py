"""Coupling: how far a network under random signs is from its quadratic model, against the width (Q: Bai & Lee 2019).

With ‖w_r‖ = m^{−1/4}/B_x and f^Q = O(1), Lemmas 10 to 14 there bound, for L(W) = E_Σ (1/n) Σ ℓ(y_i, f_{W₀+WΣ}(x_i)),

    f^L_{WΣ},  f_{W₀+WΣ} − f^Q,  |L − L^Q|,  |⟨∇L − ∇L^Q, W⟩|,  |E_Σ′(∇²L − ∇²L^Q)[W⋆Σ′, W⋆Σ′]|  =  O(m^{−1/4}),

while f^L_W, without signs, grows like m^{1/4}. W is one direction v in the half with a = +1, so that f^Q does not
vanish; W⋆ another. Bounds are bounds: the last three are even in Σ, and what is measured falls like m^{−1/2}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.checks import FloatArray, whole_number
from lazyscope.evidence.statement import stated
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import against_declared
from lazyscope.experiments.frame.draws import attributes, computed, exponents, over_widths, provenance, table
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits import declared
from lazyscope.runs.pictures import BLUE, GREEN, ORANGE, RED
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Point, Risk
from lazyscope.training.taylor.signs import random_signs
from lazyscope.weights import generator

QUANTITIES = {
    "linear_plain": "f^L without signs (§3)",
    "linear": "f^L under signs (Lemma 11a)",
    "quadratic": "f^Q (Lemma 10)",
    "gap": "f − f^Q under signs (Lemma 11)",
    "rest": "f − f^L − f^Q under signs (Lemma 11b)",
    "risk": "|L − L^Q| (Lemma 12)",
    "gradient": "|⟨∇L − ∇L^Q, W⟩| (Lemma 13)",
    "hessian": "|(∇²L − ∇²L^Q)[W⋆, W⋆]| (Lemma 14)",
}
"""What is measured: its name in the papers' terms. `declared.COUPLING` has the exponents of m."""
_ROOTS = ("linear_plain", "linear", "quadratic", "gap", "rest")  # root mean squares over inputs, signs and draws
_BOUNDS = ("rest", "risk", "gradient", "hessian")  # whose exponents are upper bounds; the others are exact
_PANELS = {
    "pieces": {"linear_plain": (ORANGE, "s"), "linear": (BLUE, "o"), "quadratic": (RED, "D"), "rest": (GREEN, "^")},
    "risks": {"risk": (RED, "D"), "gradient": (BLUE, "o"), "hessian": (GREEN, "^")},
}
_SHORT = {
    "linear_plain": "f$^L$ without signs",
    "linear": "f$^L$ under random signs",
    "quadratic": "f$^Q$",
    "rest": "f − f$^L$ − f$^Q$ under signs",
    "risk": "|L − L$^Q$|",
    "gradient": "|⟨∇L − ∇L$^Q$, W⟩|",
    "hessian": "|(∇²L − ∇²L$^Q$)[W⋆, W⋆]|",
}
_TOLERANCE = 0.05  # how far a fitted exponent may be off, as widths are finite


@dataclass(frozen=True, eq=False)
class CouplingDraw(Draw):
    """One initialisation of one width: every size of `QUANTITIES`, over n inputs and `signs` pairs ±Σ."""

    width: int
    d: int = 10
    samples: int = 32
    signs: int = 8
    activation: Activation | str = "relu3"
    loss: str = "logistic"
    number: int = 0
    seed: int = 0

    words = "coupling, m = {0.width}"
    costs = ("width", "samples")

    def compute(self) -> dict[str, FloatArray]:
        """Do the work: 2·signs + 2 expansions of m neurons at n inputs, to second order."""
        return {name: np.asarray(value) for name, value in measure(self).items()}


def measure(draw: CouplingDraw) -> dict[str, float]:
    """Return the root mean squares over inputs and signs of the pieces of f, and the differences of the risks."""
    sigma = as_activation(draw.activation)
    require_smooth(sigma, 2)
    m, rng = draw.width, generator(draw.seed, draw.number, draw.width)
    model = TaylorModel.symmetric(m, draw.d, sigma, rng)
    data = generator(draw.seed, draw.number, 0)
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
) -> Dataset:
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
        `size` over (`quantity`, `width`) with `stderr`: the root mean square over inputs, signs and draws of a piece,
        the mean over draws of a difference of risks; `exponent`, `exponent_stderr` and the
        lemmas' `bound` over `quantity`.

    Examples
    --------
    >>> result = coupling([100, 10_000], draws=2, signs=4)
    >>> bool(abs(result.exponent.sel(quantity="linear") + 0.25) < 0.1)
    True
    """
    d = whole_number(d, "coupling", "d")
    plan = over_widths(
        "coupling", widths, draws, lambda m, k: CouplingDraw(m, d, samples, signs, activation, loss, k, seed)
    )
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[CouplingDraw], rows: Sequence[dict[str, Any]]) -> Dataset:
    """Return the report from draws that differ in width and number alone."""
    widths = list(dict.fromkeys(draw.width for draw in plan))
    names = list(QUANTITIES)
    sizes = np.array([table(plan, rows, name) for name in names])  # (quantity, width, draw)
    slope, spread = exponents(np.array(widths), sizes)
    mean, error = over_draws(sizes)
    roots = np.array([name in _ROOTS for name in names])
    squares, spreads = over_draws(sizes[roots] ** 2)  # a mean of roots would be too small
    mean[roots] = np.sqrt(squares)
    error[roots] = spreads / (2.0 * mean[roots])
    first = plan[0]
    return dataset(
        {
            "size": (("quantity", "width"), mean),
            "stderr": (("quantity", "width"), error),
            "exponent": ("quantity", slope),
            "exponent_stderr": ("quantity", spread),
            "bound": ("quantity", [declared.COUPLING[name] for name in names]),
        },
        {"quantity": names, "width": widths, "name": ("quantity", [QUANTITIES[name] for name in names])},
        {
            **provenance("coupling", "Lemmas 10–14", "bai2020beyond", first.seed),
            "activation": as_activation(first.activation).name,
            **attributes(first, "loss", "d", "samples", "signs"),
            "draws": sizes.shape[-1],
            "seed": first.seed,
        },
    )


@dataclass(frozen=True)
class CouplingPreset(Preset):
    """Widths, initialisations, inputs, pairs of signs."""

    widths: tuple[int, ...]
    draws: int = 4
    samples: int = 32
    signs: int = 8
    d: int = 10


PRESETS = {
    "quick": CouplingPreset("twenty seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": CouplingPreset(
        "two minutes on two cores", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=8, signs=16
    ),
}


def work(preset: CouplingPreset) -> list[CouplingDraw]:
    """Return one draw for each width and initialisation."""
    return [
        CouplingDraw(m, preset.d, preset.samples, preset.signs, number=number)
        for m in preset.widths
        for number in range(preset.draws)
    ]


def data(preset: CouplingPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return sizes and fitted exponents, a panel each for pieces and for risks."""
    whole = assemble(work(preset), rows)
    return {panel: whole.sel(quantity=list(shown)) for panel, shown in _PANELS.items()}


def plot(data: Panels) -> Figure:
    """Draw both panels: dots with standard errors, the lemmas' slopes dashed through the first dot."""
    with canvas(10.4, 4.4) as figure:
        left, right = figure.subplots(1, 2)
        for axes, (panel, shown), title in zip(
            (left, right),
            _PANELS.items(),
            ("Taylor pieces, ‖w$_r$‖ = m$^{−1/4}$", "Network against quadratic model"),
            strict=True,
        ):
            for name, (colour, marker) in shown.items():
                _series(axes, data[panel].sel(quantity=name), _SHORT[name], colour, marker)
            axes.set(xscale="log", yscale="log", xlabel="m, neurons", title=title)
            words = "fitted exponent (declared, dashed)"
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, title=words)
        left.set_ylabel("root mean square")
        right.set_ylabel("distance")
    return figure


def _series(axes: Axes, panel: Dataset, name: str, colour: str, marker: str) -> None:
    sizes = (panel.width, panel["size"], panel.stderr)
    at_most = "≤ " if str(panel.quantity.values) in _BOUNDS else ""
    against_declared(axes, sizes, float(panel.exponent), float(panel.bound), name, at_most, color=colour, marker=marker)


def verdict(data: Panels) -> list[str]:
    """Return a table of exponents, and whether each is the declared one, or below it where the lemma is a bound."""
    lines = [f"{'quantity':<42}{'exponent':>16}{'declared':>10}"]
    wrong = []
    for panel, shown in _PANELS.items():
        for name in shown:
            at = data[panel].sel(quantity=name)
            slope, error, power = (float(at[key]) for key in ("exponent", "exponent_stderr", "bound"))
            bound = name in _BOUNDS
            allowed = _TOLERANCE + 2.0 * (0.0 if np.isnan(error) else error)
            if not (slope <= power + allowed and (bound or slope >= power - allowed)):
                wrong.append(QUANTITIES[name])
            lines.append(f"{QUANTITIES[name]:<42}{slope:>9.3f} ± {error:.3f}{'≤ ' if bound else '':>4}{power:>+6.2f}")
    told = "Network and quadratic model couple as declared."
    return [*lines, answer(not wrong, told, f"Not as declared: {', '.join(wrong)}.")]


_TITLE = "Taylor pieces and risks of randomised networks against the width (Beyond Linearization, §3)"
_FAULTS = (wrong_rows("a risk that does not come nearer", data, "risk", lambda k, risk: 0.0 * risk + 0.1),)
EXPERIMENT = Experiment(
    "coupling", _TITLE, PRESETS, work, data, plot, verdict, place=31, report=coupling, faults=_FAULTS
)

STATEMENTS = stated(
    "coupling",
    "bai2020beyond",
    {
        "Lemma 10": "f^Q is O(1) at ‖w_r‖ = m^−¼",
        "Lemma 11": "under random signs f^L and what follows f^Q are O(m^−¼)",
        "Lemma 12": "the randomised risk and that of f^Q differ by O(m^−¼)",
        "Lemma 13": "so do their directional gradients",
        "Lemma 14": "so do their Hessians along W⋆Σ′",
    },
)

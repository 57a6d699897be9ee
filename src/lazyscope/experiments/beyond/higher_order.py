"""Higher-order tangents: the k-th Taylor piece alone, extracted from a network by randomisation (Bai & Lee 2019, §6).

Neurons come in pairs of one w₀ and a = ±1. With (w₊, w₋) = (z₊ w⋆, z₋ w⋆), the moment-matched z± of `moments`, and
‖w⋆‖ = m^{−1/2k}/B_x,

    f^{(j)} = O(m^{−j/2k}) for j < k,      f^{(k)} → ½ E[σ^{(k)}(g)/k! (m^{1/2k} w⋆·x)^k] = O(1),

and what follows f^{(k)} is O(m^{−1/2k}): the network is its k-th order tangent model up to O(m^{−1/2k}). Without
randomisation, z₊ = 1 and z₋ = 0, f^{(j)} grows like m^{(k−j)/2k} for j < k. (The paper counts m pairs, here m neurons.)

With ‖w⋆‖ = R m^{−1/2k}/B_x, `reach` R, f^{(j)} is R^j times as large at every m; exponents stay. At R = 1 f^{(k)}, a
k-th power over k!, is so small that f^{(1)} falls below it at m ~ 10⁴, 10¹⁰ and 10²⁵ for k = 2, 3, 4; at R = 10 that is
within reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth, taylor_coefficients
from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.statement import stated
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import against_declared
from lazyscope.experiments.frame.draws import attributes, computed, exponents, over_widths, provenance, split, table
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits import declared
from lazyscope.runs.pictures import LOOKS, PURPLE, scale_colour
from lazyscope.training.taylor.model import TaylorModel, upto
from lazyscope.training.taylor.moments import moment_matched
from lazyscope.weights import generator

_NETWORKS = 4  # repeats that are run as networks too, for the rest: one of them costs more than the pieces of all
_TOLERANCE = 0.05  # how far a fitted exponent may be off, as widths are finite


@dataclass(frozen=True, eq=False)
class HigherOrderDraw(Draw):
    """One initialisation of one width: root mean squares over inputs of f^{(1)} … f^{(k)} and of what follows.

    Each with z± drawn anew `repeats` times ("randomised") and without randomisation ("plain").
    """

    k: int
    width: int
    d: int = 10
    samples: int = 32
    repeats: int = 64
    activation: Activation | str | None = None
    number: int = 0
    seed: int = 0
    reach: float = 1.0

    words = "order {0.k}, m = {0.width}"
    costs = ("width", "samples", "k")

    @property
    def sigma(self) -> Activation:
        """The activation: tanh for odd k and softplus for even k where none is given."""
        return as_activation(self.activation or ("tanh" if self.k % 2 else "softplus"))

    def compute(self) -> dict[str, FloatArray]:
        """Return `randomized` and `plain`, each (k + 1,): f^{(1)} … f^{(k)}, and f minus all of them.

        The pieces of all repeats are one matrix product for each order, as f^{(j)} = Σ_r (z₊^j − z₋^j) T_jr.
        """
        require_smooth(self.sigma, self.k)
        rng = generator(self.seed, self.number, self.width)
        model = TaylorModel.symmetric(self.width, self.d, self.sigma, rng)
        data = generator(self.seed, self.number, 0)
        X = data.standard_normal((self.samples + 1, self.d))
        X /= np.linalg.norm(X, axis=1)[:, None]
        v, X = self.reach * X[0], X[1:]
        pair, pairs = moment_matched(self.k), self.width // 2
        z = np.array([np.concatenate([pair.draw(pairs, sign, rng) for sign in (1, -1)]) for _ in range(self.repeats)])
        plain = np.repeat([1.0, 0.0], pairs)[None]
        return {"randomized": _sizes(model, self.k, z, v, X), "plain": _sizes(model, self.k, plain, v, X)}


def extracted(k: int, z: FloatArray, v: FloatArray) -> FloatArray:
    """Return W with w_r = z_r m^{−1/2k} v, shape (m, d).

    >>> extracted(2, np.array([1.0, 1.0, 0.0, -1.0]) * 4**0.25, np.ones(1)).ravel()
    array([ 1.,  1.,  0., -1.])
    """
    return np.asarray(len(z) ** (-0.5 / k) * z[:, None] * v)


def _sizes(model: TaylorModel, k: int, z: FloatArray, v: FloatArray, X: FloatArray) -> FloatArray:
    """Root mean squares over inputs and over the rows of z of f^{(1)} … f^{(k)}, and of the network beyond them."""
    pairs = model.m // 2
    c = taylor_coefficients(model.sigma, model.W0[:pairs] @ X.T, k)
    reach = model.m ** (-0.5 / k) * (X @ v)
    pieces = [
        (z[:, :pairs] ** j - z[:, pairs:] ** j) @ c[j] * reach**j / np.sqrt(model.m) for j in upto(k)
    ]  # each (repeat, input)
    some = z[:_NETWORKS]
    rest = np.array([model.network(extracted(k, row, v), X) for row in some]) - np.sum(pieces, axis=0)[:_NETWORKS]
    return np.array([np.sqrt(np.mean(values**2)) for values in (*pieces, rest)])


def higher_order(
    k: int,
    widths: Any = (100, 320, 1000, 3200, 10_000),
    *,
    d: int = 10,
    samples: int = 32,
    repeats: int = 64,
    activation: Activation | str | None = None,
    draws: int = 4,
    seed: int = 0,
    reach: float = 1.0,
) -> Dataset:
    """Extract the k-th Taylor piece from networks of several widths; fitted exponents beside the declared ones.

    Parameters
    ----------
    k
        Order, at least 2.
    widths
        m, even, at least two of them for an exponent.
    d, samples, repeats
        Inputs on the unit sphere in d dimensions, n of them; draws of z± for each initialisation.
    activation
        σ ∈ C^k with σ^{(k)} Lipschitz and E σ^{(k)}(g) ≠ 0, or f^{(k)} has no mean. Left out, it is "tanh" for odd k
        and "softplus" for even k.
    draws, seed
        Initialisations, each with its own inputs.
    reach
        R, positive: ‖w⋆‖ = R m^{−1/2k}/B_x.

    Returns
    -------
    xarray.Dataset
        `randomized` and `plain`, root mean squares over (`piece`, `width`), means over draws, with their standard
        errors; their exponents and the declared ones over `piece`: "1" … "k" and "rest".

    Examples
    --------
    >>> result = higher_order(3, [100, 10_000], draws=2)
    >>> bool(abs(result.randomized_exponent.sel(piece="3")) < 0.1)
    True
    """
    k = whole_number(k, "higher_order", "k", least=2, advice="Order 1 is the tangent model itself.")
    d = whole_number(d, "higher_order", "d")
    if not 0.0 < real_number(reach, "higher_order", "reach") <= 100.0:
        raise InvalidParameter.of("higher_order", "reach", "be positive, at most 100", f"{reach:g}")

    def draw(m: int, number: int) -> HigherOrderDraw:
        return HigherOrderDraw(k, m, d, samples, repeats, activation, number, seed, reach)

    plan = over_widths("higher_order", widths, draws, draw)
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[HigherOrderDraw], rows: Sequence[dict[str, Any]]) -> Dataset:
    """Return the report from draws that differ in width and number alone."""
    widths = list(dict.fromkeys(draw.width for draw in plan))
    first = plan[0]
    pieces = [str(j) for j in upto(first.k)] + ["rest"]
    variables: dict[str, Any] = {}
    for name in ("randomized", "plain"):
        sizes = table(plan, rows, name)  # (piece, width, draw)
        slope, spread = exponents(np.array(widths), sizes)
        variables |= averaged(name, ("piece", "width"), sizes)
        variables[f"{name}_exponent"] = ("piece", slope)
        variables[f"{name}_exponent_stderr"] = ("piece", spread)
        variables[f"{name}_declared"] = ("piece", declared.higher_order(first.k, name == "randomized"))
    return dataset(
        variables,
        {"piece": pieces, "width": widths},
        {
            **provenance("higher-order", "§6.1", "bai2020beyond", first.seed),
            "order": first.k,
            "activation": first.sigma.name,
            **attributes(first, "d", "reach", "samples", "repeats"),
            "draws": len(plan) // len(widths),
            "seed": first.seed,
        },
    )


@dataclass(frozen=True)
class HigherOrderPreset(Preset):
    """Orders, widths, initialisations."""

    widths: tuple[int, ...]
    orders: tuple[int, ...] = (2, 3, 4)
    draws: int = 8
    samples: int = 32
    repeats: int = 64
    reach: float = 10.0


PRESETS = {
    "quick": HigherOrderPreset("twenty seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": HigherOrderPreset("two minutes on two cores", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=16),
}


def work(preset: HigherOrderPreset) -> list[HigherOrderDraw]:
    """Return one draw for each order, width and initialisation."""
    return [draw for k in preset.orders for draw in _of(preset, k)]


def _of(preset: HigherOrderPreset, k: int) -> list[HigherOrderDraw]:
    return [
        HigherOrderDraw(k, m, samples=preset.samples, repeats=preset.repeats, number=number, reach=preset.reach)
        for m in preset.widths
        for number in range(preset.draws)
    ]


def data(preset: HigherOrderPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return a panel for each order."""
    plans = [_of(preset, k) for k in preset.orders]
    own = split(rows, plans)
    return {f"order-{plan[0].k}": assemble(plan, part) for plan, part in zip(plans, own, strict=True)}


def plot(data: Panels) -> Figure:
    """Draw a panel for each order: pieces under randomisation as dots, declared slopes dashed, f⁽¹⁾ plain in grey."""
    with canvas(3.7 * len(data), 5.2) as figure:
        rows = np.atleast_1d(figure.subplots(1, len(data)))
        for axes, result in zip(rows, data.values(), strict=True):
            _panel(axes, result)
        rows[0].set_ylabel("root mean square over inputs")
    return figure


def _panel(axes: Axes, result: Dataset) -> None:
    k, m = int(result.attrs["order"]), result.width
    series: list[tuple[str, int | str, str, dict[str, Any]]] = [
        ("plain", 1, "f$^{(1)}$ plain", {"color": "#888888", "marker": "s"})
    ]
    for j in range(1, k + 1):
        colour = LOOKS["NN"]["color"] if j == k else scale_colour((j - 1) / max(k - 1, 1))
        series.append(("randomized", j, f"f$^{{({j})}}$", {"color": colour, "marker": "D" if j == k else "o"}))
    series.append(("randomized", "rest", "what follows", {"color": PURPLE, "marker": "v"}))
    for kind, piece, name, look in series:
        at = result.sel(piece=str(piece))
        sizes = (m, at[kind], at[f"{kind}_stderr"])
        at_most = "≤ " if piece == "rest" else ""
        fitted, power = float(at[f"{kind}_exponent"]), float(at[f"{kind}_declared"])
        against_declared(axes, sizes, fitted, power, name, at_most, **look)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons")
    length = f"‖w⋆‖ = {result.attrs['reach']:g} m$^{{−1/{2 * k}}}$"
    axes.set_title(f"k = {k}, σ = {result.attrs['activation']}, {length}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), title="fitted exponent (declared, dashed)")


def verdict(data: Panels) -> list[str]:
    """Return a table of exponents, and whether f⁽ᵏ⁾ is flat, f⁽¹⁾ falls, and the plain f⁽¹⁾ grows, as declared.

    What follows f⁽ᵏ⁾ must fall as fast as declared, or faster.
    """
    lines, wrong = [f"{'':<34}{'exponent':>16}{'declared':>10}{'size at the largest m':>24}"], []
    for result in data.values():
        k = int(result.attrs["order"])
        for kind, piece in (("plain", "1"), *(("randomized", str(j)) for j in range(1, k + 1)), ("randomized", "rest")):
            at = result.sel(piece=piece)
            slope, error = float(at[f"{kind}_exponent"]), float(at[f"{kind}_exponent_stderr"])
            power = float(at[f"{kind}_declared"])
            follows = piece == "rest"
            name = f"k = {k}, {'what follows' if follows else f'f^({piece})'}, {kind}"
            lines.append(f"{name:<34}{slope:>9.3f} ± {error:.3f}{power:>+10.3f}{float(at[kind][-1]):>24.3g}")
            allowed = _TOLERANCE + 2.0 * (0.0 if np.isnan(error) else error)
            if slope > power + allowed or (slope < power - allowed and not follows):
                wrong.append(name)
        sizes = result.randomized.isel(width=-1)
        largest = str(sizes.piece.values[int(np.argmax(sizes.values))])
        lines.append(f"k = {k}: the largest piece at m = {int(result.width[-1]):,} is {largest}")
    return [*lines, answer(not wrong, "The k-th piece alone survives.", f"Not as declared: {'; '.join(wrong)}.")]


_TITLE = "The k-th Taylor piece, extracted by randomisation, k = 2, 3, 4 (the same, §6)"
_FAULTS = (wrong_rows("no piece that falls", data, "randomized", lambda k, sizes: 0.0 * sizes + 0.1),)
EXPERIMENT = Experiment(
    "higher-order", _TITLE, PRESETS, work, data, plot, verdict, place=32, report=higher_order, faults=_FAULTS
)

_SAYS = "moment matching of order k leaves f^(k) = O(1) and the other pieces O(m^(−1/2k))"
STATEMENTS = stated("higher-order", "bai2020beyond", {"§6.1": _SAYS})

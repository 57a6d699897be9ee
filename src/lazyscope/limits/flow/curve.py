"""Gradient flow on the population risk of the quadratic target: the ε → 0 limit of one-pass SGD (Theorem 3).

Time is the sum of the step sizes, t = Σε, as SGD counts it with the paper's parametrisation (`simulate`, `SGD`): the
target divided by √d, f = (1/N)Σ…, and gradients of the weights multiplied by N. So `flow` gives the lines of the
right-hand frame of Figure 1 there. Trained networks: `matrix`; the linear models: `linear`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.checks import FloatArray, arithmetic, fits_in_memory, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.evidence.results import with_arguments
from lazyscope.evidence.statement import Statement
from lazyscope.limits.flow.linear import FeaturesFlow, TangentFlow
from lazyscope.limits.flow.matrix import Curve, solve
from lazyscope.limits.flow.moments import Start
from lazyscope.numerics import matrices
from lazyscope.problems import GaussianProblem, QuadraticTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained
from lazyscope.weights import draw as draw_weights
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

Weights = Literal["drawn", "typical"]
_LAST = 1e18  # time: beyond it, squares of what is left leave float64


@with_arguments
def flow(
    problem: QuadraticTarget,
    regime: Trained | NeuralTangent | RandomFeatures,
    *,
    times: Any,
    width: int | None = None,
    start: tuple[Any, float] | None = None,
    weights: Weights = "drawn",
    second_layer: Literal["trained", "fixed"] = "trained",
    seed: int = 0,
    draw: int = 0,
    tolerance: float = 1e-4,
) -> xr.Dataset:
    """Return the risk along gradient flow on the population risk, for σ = u².

    Parameters
    ----------
    problem, regime
        A `QuadraticTarget` and `Trained`, `NeuralTangent` or `RandomFeatures`.
    times
        t = Σε, ascending from 0 on: a sequence, which becomes the dimension `time`.
    width
        N. The weights of (seed, draw, N) are those that `exact` and `simulate` see.
    start
        (W₀, c₀) with W₀ of shape (d, N), instead of a width: Theorem 3 to the letter, f = Σ⟨w_i,x⟩² + c against
        y = b₀ + ⟨x, Bx⟩ itself, with no factor √d or N.
    weights
        "drawn", or "typical" for N, d → ∞ at N/d = width/d: what nearly every draw does, at a cost of O(d) a time.
    second_layer
        Of a trained network: "trained" from 0 as in the paper's scripts, or "fixed" as in Theorem 3.
    seed, draw
        Which weights.
    tolerance
        Of the normalised risk, for trained networks (of itself, where it is larger than 1). At d = 450 the default
        was seen to leave up to 2·10⁻⁴ (8 curves; 1.3·10⁻⁴ in the mean square), and a curve costs 4 to
        13 eigendecompositions of that size for N = 45 to 900, however many times it has: 40 to 60 matrices d × d of
        at most 3d³ flops, in the memory of five of them. Where one direction is learned suddenly, errors from before
        are amplified. With one eigenvalue 200 times the others 7 tolerances were left, and up to 85 with other
        constants of the method: compare with a smaller tolerance.

    Returns
    -------
    xarray.Dataset
        `risk`, 1 for the best constant. For trained networks also `learned`, the share ⟨v_i, Gv_i⟩/λ_i(B) of each
        eigendirection that the network f = ⟨G, xxᵀ⟩ + c has, largest eigenvalue first, and `reached`, the time at which
        it is one half (∞ if that is later than the last of `times`). From d = 100 and a tolerance
        of 10⁻⁵ on they are interpolated more coarsely than the risk; seen at d = 450: `reached` to 2%, `learned` to
        0.003 in the mean square and 0.03 for the larger half of the eigenvalues, but single small ones to 0.4 only.
        And `second_layer`, `offset` and `conserved`, what rounding and tolerance left of the conservation law.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(50, seed=100)
    >>> path = flow(target, ls.Trained(), width=25, times=[0.0, 1.0, 10.0, 1000.0])
    >>> floor = float(ls.limit(target, ls.Trained(), rho=0.5).risk)
    >>> path.risk.values.round(3), abs(float(path.risk[-1]) - floor) < 1e-4
    (array([1.   , 0.922, 0.089, 0.02 ]), True)
    """
    moments = _ascending(times)
    if not isinstance(problem, QuadraticTarget):
        raise NoTheorem.of("Gradient flow", "a QuadraticTarget", type(problem).__name__, "Use simulate.")
    if not isinstance(regime, (Trained, NeuralTangent, RandomFeatures)):
        must = "be Trained, NeuralTangent or RandomFeatures"
        raise InvalidParameter.of("flow", "regime", must, type(regime).__name__)
    if not regime.activation.is_square:
        raise NoTheorem.of("Gradient flow", "σ(u) = u²", regime.activation.name, "Use simulate.")
    if isinstance(regime, Trained):
        tolerance = real_number(tolerance, "flow", "tolerance")
        if not 1e-10 <= tolerance <= 0.1:
            raise InvalidParameter.of("flow", "tolerance", "lie between 1e-10 and 0.1", tolerance)
        if regime.alpha is not None:
            given = {
                "start": start is not None,
                "weights": weights != "drawn",
                "second_layer": second_layer != "trained",
            }
            for name in (name for name, value in given.items() if value):
                must = (
                    "be left out with an output scale: its flow moves first layers alone, from weights that are drawn"
                )
                raise InvalidParameter.of("flow", name, must, "a value")
            with arithmetic("The flow"):
                return _with_output_scale(problem, regime, moments, (width, seed, draw), tolerance)
        begin = beginning(problem, width, start, weights, second_layer, seed, draw, regime.init)
        with arithmetic("The flow"):
            curve = solve(begin, float(moments[-1]) or 1.0, tolerance)
            return _labelled(problem, regime, moments, _of_curve(curve, moments), begin.b)
    if start is not None or weights != "drawn":
        must = "be left out: a linear model is started at 0, from weights that are drawn"
        raise InvalidParameter.of("flow", "start" if start is not None else "weights", must, "a value")
    N = whole_number(width, "flow", "width", advice="Pass N, for example width=225.")
    return _labelled(problem, regime, moments, {"risk": linear_risk(problem, regime, N, moments, seed, draw)})


def linear_risk(
    problem: QuadraticTarget,
    regime: NeuralTangent | RandomFeatures,
    N: int,
    times: FloatArray,
    seed: int,
    draw: int = 0,
) -> FloatArray:
    """Return the risk of a linear model along its flow, without labels: for means over many draws."""
    W = draw_weights(problem, regime, N, _generator(seed, draw, N))
    B = problem.in_units(regime).B / np.sqrt(problem.d)  # a linear model does not know the scale of its target
    model = TangentFlow.of(W, B) if isinstance(regime, NeuralTangent) else FeaturesFlow.of(W, B)
    return np.asarray(model.risk(times) / (2.0 * matrices.squared_norm(B)))


def _with_output_scale(
    problem: QuadraticTarget,
    regime: Trained,
    times: FloatArray,
    which: tuple[int | None, int, int],
    tolerance: float,
) -> xr.Dataset:
    """Return the flow of f = α(h − h₀) + c: that of Theorem 3 for the target B + αK₀, started at αK₀, α times slower.

    K₀ = W₀W₀ᵀ/N with the weights that the tangent model sees; times are those of the tangent model too. The gradient of
    c is multiplied by 1 + 1/α.
    """
    width, seed, draw = which
    N, d, alpha = whole_number(width, "flow", "width"), problem.d, regime.alpha
    assert alpha is not None
    _not_for_ever(times, alpha)
    W = regime.init * draw_weights(problem, NeuralTangent(), N, _generator(seed, draw, N)).T * np.sqrt(alpha / N)
    B = matrices.dense(problem.B) / np.sqrt(d)
    if not matrices.is_semidefinite(problem.eigenvalues):
        raise NoTheorem.of("Theorem 3", "B ⪰ 0", f"smallest eigenvalue {problem.eigenvalues[0]:.4g}", "Use exact.")
    b, basis = np.linalg.eigh(B + W @ W.T)
    start = Start(np.maximum(b, 0.0), basis.T @ W, b0=-float(np.trace(B)), offset_rate=1.0 + alpha)
    scale = 2.0 * float(np.sum(B**2)) / start.energy
    curve = solve(start, float(times[-1]) / alpha or 1.0, max(1e-10, tolerance * scale))
    ask = np.maximum(times / alpha, 1e-300)
    values = curve.several(("risk", "c"), ask)
    risk = np.maximum(values["risk"] / (scale * start.energy), 0.0)
    return _labelled(problem, regime, times, {"risk": risk, "offset": values["c"]})


def beginning(
    problem: QuadraticTarget,
    width: int | None,
    start: tuple[Any, float] | None,
    weights: Weights,
    second_layer: Literal["trained", "fixed"],
    seed: int,
    draw: int,
    init: float = 1.0,
) -> Start:
    """Return where a trained network starts, in the eigenbasis of B."""
    if weights not in ("drawn", "typical"):
        raise InvalidParameter.of("flow", "weights", 'be "drawn" or "typical"', repr(weights))
    if second_layer not in ("trained", "fixed"):
        raise InvalidParameter.of("flow", "second_layer", 'be "trained" or "fixed"', repr(second_layer))
    b, basis = (problem.B, None) if problem.B.ndim == 1 else np.linalg.eigh(problem.B)
    order = np.argsort(b, kind="stable")
    b = b[order]
    if not matrices.is_semidefinite(b):
        raise NoTheorem.of("Theorem 3", "B ⪰ 0", f"smallest eigenvalue {b[0]:.4g}", "Use exact, or simulate.")
    b = np.maximum(b, 0.0)
    if start is not None:
        W0, c0 = _given(start, problem.d)
        turned = W0 if basis is None else basis.T @ W0
        return Start(b, turned[order], c=c0, b0=problem.b0)
    N = whole_number(width, "flow", "width", advice="Pass N, for example width=225, or start=(W0, c0).")
    d, trained = problem.d, second_layer == "trained"
    small = b / np.sqrt(d)
    a = 0.0 if trained else 1.0
    if weights == "typical":
        gamma = init**2 / d
        return Start(small, None, a, 0.0, -float(small.sum()), trained, typical_gamma=gamma, typical_width=float(N))
    # as `simulate` draws and rounds them: rows, in the eigenbasis of B, whatever it is
    fits_in_memory(32.0 * N * d, f"Weights of N = {N} neurons", "Use a smaller width.")
    W = init * (_generator(seed, draw, N).standard_normal((N, d)) / np.sqrt(d)).astype(np.float32).astype(np.float64)
    return Start(small, W.T[order] / np.sqrt(N), a, 0.0, -float(small.sum()), trained)


def _generator(seed: int, draw: int, N: int) -> np.random.Generator:
    return generator(whole_number(seed, "flow", "seed", least=0), whole_number(draw, "flow", "draw", least=0), N)


def _given(start: Any, d: int) -> tuple[FloatArray, float]:
    must = f"be a pair (W₀, c₀), W₀ of shape (d, N) with d = {d}"
    if not isinstance(start, Sequence) or len(start) != 2:
        raise InvalidParameter.of("flow", "start", must, type(start).__name__)
    W0 = real_array(start[0], "flow", "start", must)
    if W0.ndim != 2 or W0.shape[0] != d or W0.shape[1] < 1:
        raise InvalidParameter.of("flow", "start", must, f"shape {W0.shape}")
    if not np.all(np.einsum("ij,ij->i", W0, W0) > 0.0):
        advice = "There the flow would never learn it: start from generic weights."
        raise InvalidParameter.of("flow", "start", must + ", no row of it zero", "a zero row", advice)
    return W0, real_number(start[1], "flow", "start")


def _ascending(times: Any) -> FloatArray:
    """Check `times`."""
    must = "be ascending and start at 0 or later: a sequence of numbers"
    values = np.atleast_1d(real_array(times, "flow", "times", must))
    if values.ndim > 1 or values.size == 0:
        raise InvalidParameter.of("flow", "times", must, f"shape {values.shape}")
    if values[0] < 0.0:
        raise InvalidParameter.of("flow", "times", must, f"{values[0]:g}")
    if np.any(np.diff(values) <= 0.0):
        at = int(np.argmax(np.diff(values) <= 0.0))
        raise InvalidParameter.of("flow", "times", must, f"{values[at]:g} before {values[at + 1]:g}", "Sort them.")
    _not_for_ever(values)
    return values


def _not_for_ever(times: FloatArray, alpha: float = 1.0) -> None:
    """Refuse times at which nothing moves any more in float64; an output scale α makes them α times slower."""
    if not times[-1] / min(1.0, alpha) <= _LAST:
        must = f"end by {_LAST * min(1.0, alpha):g}, long after all that is learned"
        raise InvalidParameter.of("flow", "times", must, f"{times[-1]:g}", "Use limit, or exact, for the end.")


def _of_curve(curve: Curve, times: FloatArray) -> dict[str, FloatArray]:
    start = curve.start
    ask = np.maximum(times, 1e-300)
    asked = curve.several(("risk", "a", "c", "diagonal"), ask)
    a, shape = asked["a"], asked["diagonal"]
    with np.errstate(divide="ignore", invalid="ignore"):
        learned = np.where(start.b > 0.0, a[:, None] * shape / start.b, 0.0)
    fine = np.geomspace(max(float(times[-1]), 1e-12) * 1e-6, float(times[-1]) or 1.0, 1000)
    finer = curve.several(("a", "diagonal"), fine)
    dense = finer["a"][:, None] * finer["diagonal"]
    values = {
        "risk": np.maximum(asked["risk"] / start.energy, 0.0),
        "learned": learned[:, ::-1],
        "reached": _first_time(fine, dense, 0.5 * start.b)[::-1],
        "second_layer": a,
        "offset": asked["c"],
    }
    if start.trained_layer:
        values["conserved"] = shape.sum(axis=1) - 2.0 * a**2 - float(start.moment.sums[0])
    return values


def _first_time(times: FloatArray, values: FloatArray, level: FloatArray) -> FloatArray:
    """Return when each column first exceeds its level, between two times by a straight line; ∞ if never."""
    above = values >= level
    k = np.argmax(above, axis=0)
    column = np.arange(values.shape[1])
    before = np.maximum(k - 1, 0)
    rise = values[k, column] - values[before, column]
    share = np.where(rise > 0.0, (level - values[before, column]) / np.where(rise > 0.0, rise, 1.0), 0.0)
    crossed = times[before] + np.clip(share, 0.0, 1.0) * (times[k] - times[before])
    return np.where(above.any(axis=0) & (level > 0.0), crossed, np.inf)


def _labelled(
    problem: QuadraticTarget,
    regime: Trained | NeuralTangent | RandomFeatures,
    times: FloatArray,
    values: dict[str, FloatArray],
    spectrum: FloatArray | None = None,
) -> xr.Dataset:
    import xarray as xr

    for name, value in values.items():
        if np.any(np.isnan(value)) or (name == "risk" and not np.all(np.isfinite(value))):
            raise NotConverged(
                f"The flow gave no number for {name}: B, its times or its start are too large or small for float64. "
                "Rescale B, and the times by the inverse."
            )
    dims = {"learned": ("time", "direction"), "reached": ("direction",)}
    result = xr.Dataset({name: (dims.get(name, ("time",)), value) for name, value in values.items()}, {"time": times})
    if spectrum is not None:
        result = result.assign_coords(
            direction=np.arange(1, spectrum.size + 1), eigenvalue=("direction", spectrum[::-1].copy())
        )
    result["time"].attrs["long_name"] = "t = Σε"
    return described(result, problem, regime, "flow", "gradient flow, the limit ε → 0 of Theorem 3's algorithm")


def described(result: xr.Dataset, problem: GaussianProblem, regime: Regime, claim: str, theorem: str) -> xr.Dataset:
    """Write into a result what it is a result of."""
    from lazyscope import __version__

    result["risk"].attrs["long_name"] = "risk (1 = best constant)"
    result.attrs = {
        "fidelity": "limit",
        "claim": claim,
        "theorem": theorem,
        "citations": "ghorbani2019limitations",
        "problem": str(problem),
        "regime": str(regime),
        "label": regime.label,
        "lazyscope_version": __version__,
    }
    return result


STATEMENTS = (
    Statement(
        "Theorem 3",
        "gradient flow from a random start finds the N largest eigenvalues of B: the whole curve in time",
        ("ghorbani2019limitations",),
        "flow",
        figure="flow",
    ),
)

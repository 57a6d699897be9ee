"""Overlaps and risk along one-pass SGD as d → ∞: the public function, and the plateau that its curves have."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.checks import FloatArray, arithmetic, non_negative_numbers, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.results import with_arguments
from lazyscope.limits.flow.curve import described
from lazyscope.limits.sgd.order_parameters.estimated import Estimated
from lazyscope.limits.sgd.order_parameters.machine import LAST, Machine, check_length
from lazyscope.problems import MultiIndex
from lazyscope.regimes import Trained

if TYPE_CHECKING:
    import xarray as xr

_FLAT = 0.5  # −d log risk/d log t below which a curve is flat
_LENGTH = 1.5  # how many times longer than its begin a flat stretch must last


@with_arguments
def order_parameters(
    problem: MultiIndex,
    regime: Trained,
    *,
    times: Any,
    step_size: float,
    width: int | None = None,
    overlaps: tuple[Any, Any] | None = None,
    second_layer: Literal["fixed", "trained"] = "fixed",
    offset: Literal["trained", "none"] = "trained",
    seed: int = 0,
    draw: int = 0,
) -> xr.Dataset:
    """Return overlaps and risk along one-pass SGD as d → ∞ with N fixed (Saad and Solla 1995, Goldt et al. 2019).

    The network is f̂ = Σ_i a_i σ(⟨w_i, x⟩) + c with a_i = 1 at the start, and a step on a fresh sample is
    w_i ← w_i − (η/d)(f̂ − y)a_iσ′x: in the variables √d·w of Saad and Solla, fields w·x/√d and steps η/√d.
    `SGD(batch=1, step_sizes=(η/2d,), decay=(), second_layer="sum")` is the same algorithm.

    Parameters
    ----------
    problem, regime
        A `MultiIndex` and `Trained`. Closed forms serve neurons alike in both, one or a committee, of erf, erf2
        (erf(u/√2), that of the literature), relu or square. For any other σ and h, and up to 16 neurons, expectations
        are taken by quadrature or by sampling, and `risk_error` says how well.
    times
        t = steps/d, ascending from 0 on: a sequence, which becomes the dimension `time`.
    step_size
        η; 0 is the limit η → 0, gradient flow, where times are ηt.
    width, seed, draw
        N, and the weights of (seed, draw, N) in the problem's own d: their overlaps are the start.
    overlaps
        (Q, R), the start itself, instead of a width: Q_ij = ⟨w_i, w_j⟩, (N, N), and R_im = ⟨w_i, u_m⟩, (N, r).
    second_layer, offset
        Whether the a_i are trained as well; whether there is an offset c, trained from 0 against the centred target, or
        none, and the target keeps its mean. For erf that makes no difference.

    Returns
    -------
    xarray.Dataset
        Over `time`: `risk`, 1 for the best constant; `epsilon_g` = ½E(f̂ − f)², as the literature has it; `Q`, `R`,
        `second_layer` and `offset`; `plateau_begin` and `plateau_end`, ∞ where the curve has no plateau that ends;
        `risk_error` where there are no closed forms.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.MultiIndex(1000, "committee-erf2", indices=2)
    >>> start = (0.25 * np.eye(2), np.diag([0.02, 0.01]))
    >>> path = order_parameters(target, ls.Trained("erf2"), times=[0, 20, 200], step_size=0.5, overlaps=start)
    >>> path.epsilon_g.values.round(6)
    array([0.449443, 0.015208, 0.001081])
    >>> start = (np.eye(1), np.array([[0.3]]))  # a tanh neuron that learns from an erf neuron
    >>> path = order_parameters(ls.MultiIndex(50, "erf"), ls.Trained("tanh"), times=[20], step_size=0.2, overlaps=start)
    >>> path.expectations, bool(path.risk_error[0] < 1e-6), bool(path.risk[0] < 0.1)
    ('quadrature', True, True)
    """
    owner = "order_parameters"
    if not isinstance(problem, MultiIndex):
        raise NoTheorem.of("The limit of SGD", "a MultiIndex", type(problem).__name__, "Use finite_step, or simulate.")
    if not isinstance(regime, Trained):
        raise InvalidParameter.of(owner, "regime", "be Trained", type(regime).__name__)
    moments = np.atleast_1d(non_negative_numbers(times, owner, "times", "Pass steps/d."))
    if np.any(np.diff(moments) < 0.0) or not moments[-1] <= LAST:
        raise InvalidParameter.of(owner, "times", f"ascend to at most {LAST:g}", f"{moments.tolist()!r:.60}")
    step = real_number(step_size, owner, "step_size")
    if not step >= 0.0:
        raise InvalidParameter.of(owner, "step_size", "be positive, or 0 for the flow", f"{step:g}")
    check_length(owner, float(moments[-1]), step)
    for name, value, words in (
        ("second_layer", second_layer, ("fixed", "trained")),
        ("offset", offset, ("trained", "none")),
    ):
        if value not in words:
            raise InvalidParameter.of(owner, name, f'be "{words[0]}" or "{words[1]}"', repr(value))
    given = None if overlaps is None else _checked(overlaps, problem.indices)
    if (given is None) == (width is None):
        raise InvalidParameter.of(owner, "width", "be given, or overlaps, and not both", width)
    N = whole_number(width, owner, "width") if given is None else len(given[0])
    machine = machine_of(problem, regime, N, second_layer == "trained", offset == "trained")
    seed, draw = whole_number(seed, owner, "seed", least=0), whole_number(draw, owner, "draw", least=0)
    shape = machine.shape
    start = shape.drawn(problem.d, regime.init, seed, draw) if given is None else shape.start(*given)
    with arithmetic("The limit of SGD"):
        states, squares, error = machine.solved(start, moments, step)
    result = _labelled(problem, regime, shape, moments, states, squares)
    if error is None:
        return result
    result["risk_error"] = ("time", error / problem.energy, {"long_name": "error of the risk, by the rules' distance"})
    return result.assign_attrs(expectations=machine.how)


def machine_of(
    problem: MultiIndex, regime: Trained, N: int, trained: bool = False, offset: bool = True
) -> Machine | Estimated:
    """Return the equations in closed form where network and target allow, else with expectations by rules."""
    if regime.alpha is not None:
        raise NoTheorem.of("The limit of SGD", "no output scale", f"α = {regime.alpha:g}", "Use simulate.")
    kind = Machine if Machine.serves(problem, regime) else Estimated
    return kind.of(problem, regime, N, trained, offset)


def _checked(overlaps: Any, r: int) -> tuple[FloatArray, FloatArray]:
    """Return Q and R, or refuse what no weights have."""
    owner, must = "order_parameters", f"be a pair (Q, R) of shapes (N, N) and (N, {r})"
    try:
        first, second = overlaps
    except (TypeError, ValueError):
        raise InvalidParameter.of(owner, "overlaps", must, type(overlaps).__name__) from None
    Q, R = (real_array(value, owner, "overlaps", must) for value in (first, second))
    if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or R.shape != (len(Q), r) or not len(Q):
        raise InvalidParameter.of(owner, "overlaps", must, f"shapes {Q.shape} and {R.shape}")
    rest = Q - R @ R.T  # what weights have beside the teachers
    size = max(float(np.max(np.abs(Q))), 1e-300)
    if not np.allclose(Q, Q.T, rtol=0.0, atol=1e-12 * size) or np.linalg.eigvalsh(rest)[0] < -1e-9 * size:
        must = "be overlaps of weights: Q symmetric, and Q − RRᵀ without negative eigenvalues"
        raise InvalidParameter.of(owner, "overlaps", must, f"smallest eigenvalue {np.linalg.eigvalsh(rest)[0]:.3g}")
    return Q, R


def plateau(times: FloatArray, risk: FloatArray) -> tuple[float, float]:
    """Return where a curve's longest plateau begins and ends, (∞, ∞) without one that ends.

    The curve is flat where −d log risk/d log t < ½. A plateau comes after the first fall, lasts at least until 1.5
    times the time at which it begins, and the risk falls again at its end.

    >>> t = np.geomspace(0.1, 1000.0, 400)
    >>> begin, end = plateau(t, 0.1 / (1.0 + np.exp((t - 300.0) / 30.0)) + np.exp(-t))
    >>> print(f"{begin:.0f} to {end:.0f}")
    4 to 226
    """
    inside = (times > 0.0) & (risk > 0.0)
    t, y = np.log(times[inside]), np.log(risk[inside])
    if t.size < 3:
        return np.inf, np.inf
    middle, flat = 0.5 * (t[1:] + t[:-1]), -np.diff(y) / np.maximum(np.diff(t), 1e-300) < _FLAT
    turns = np.flatnonzero(np.diff(flat.astype(int))) + 1
    plateau = (np.inf, np.inf)
    for begin, end in pairwise(turns.tolist()):
        length = middle[end] - middle[begin]
        if flat[begin] and length > max(
            np.log(_LENGTH), np.log(plateau[1] / plateau[0]) if plateau[0] < np.inf else 0.0
        ):
            plateau = float(np.exp(middle[begin])), float(np.exp(middle[end]))
    return plateau


def _labelled(
    problem: MultiIndex,
    regime: Trained,
    machine: Machine,
    times: FloatArray,
    states: FloatArray,
    error: FloatArray,
) -> xr.Dataset:
    import xarray as xr

    Q, R, a, c = machine.split(states)
    risk = error / machine.energy
    begin, end = plateau(times, risk)
    variables = {
        "risk": ("time", risk),
        "epsilon_g": ("time", 0.5 * error),
        "Q": (("time", "neuron", "neuron_too"), Q),
        "R": (("time", "neuron", "index"), R),
        "second_layer": (("time", "neuron"), a),
        "offset": ("time", c),
        "plateau_begin": ((), begin),
        "plateau_end": ((), end),
    }
    result = xr.Dataset(variables, {"time": times})
    result["time"].attrs["long_name"] = "t = steps/d"
    result = described(result, problem, regime, "order_parameters", "order parameters of one-pass SGD as d → ∞")
    result.attrs["citations"] = "saad1995online,goldt2019dynamics"
    return result

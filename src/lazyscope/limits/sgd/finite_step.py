"""What one-pass SGD does at a finite step size: gradient flow, and the noise of order d·ε/batch on top.

`finite_step` predicts the risk against samples of the paper's protocol (§4 there) without any sample: for trained
networks by the diffusion that SGD tends to (`diffusion`), for the tangent model by a recursion for its
second moments (`linear`). As ε → 0 both are `flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.checks import FloatArray, real_array, real_number, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.evidence.results import with_arguments
from lazyscope.limits.flow.curve import beginning, described, flow
from lazyscope.limits.flow.linear import TangentFlow
from lazyscope.limits.sgd.diffusion import Diffusion, Stretch
from lazyscope.limits.sgd.linear import Steps, tangent_risks
from lazyscope.numerics import matrices
from lazyscope.problems import QuadraticTarget
from lazyscope.progress import report
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.weights import draw as draw_weights
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

_NOISE = 1 << 20  # spawn key of the noise: no width


@with_arguments
def finite_step(
    problem: QuadraticTarget,
    regime: Trained | NeuralTangent,
    *,
    width: int,
    step_size: float,
    batch: int = 100,
    samples: Any,
    decay: Sequence[tuple[float, float]] = (),
    second_layer: Literal["trained", "fixed"] = "trained",
    paths: int = 2,
    seed: int = 0,
    draw: int = 0,
    tolerance: float = 1e-4,
) -> xr.Dataset:
    """Return the risk that one-pass SGD has after so many samples, in expectation over the samples, for σ = u².

    Parameters
    ----------
    problem, regime
        A `QuadraticTarget` and `Trained` or `NeuralTangent`.
    width, seed, draw
        N, and the weights of (seed, draw, N): those that `simulate` trains.
    step_size, batch, decay
        As in `SGD`: `decay` has pairs (last share of the steps, divisor of the step size). Trained networks need a step
        size below 1/g, g = 4a²Tr K + (Tr K)² + 1: beyond it SGD is not stable, and the message says where.
    samples
        Numbers of samples seen, ascending multiples of `batch`, the last of them that of the whole run.
    second_layer
        Of a trained network: "trained" from 0, or "fixed" to 1.
    paths
        Pairs of antithetic paths of the diffusion (trained networks): their mean is the prediction.
    tolerance
        Of the flow to which the noise is added.

    Returns
    -------
    xarray.Dataset
        Over `samples`: `risk`; `flow`, the same for ε → 0; for trained networks `stderr`, what so few paths leave
        uncertain.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(30, seed=100)
    >>> tangent = finite_step(target, ls.NeuralTangent(), width=15, step_size=0.02, samples=[1000, 100_000])
    >>> bool(tangent.risk[1] > tangent.flow[1])
    True
    """
    owner = "finite_step"
    if not isinstance(problem, QuadraticTarget):
        raise NoTheorem.of("The limit of SGD", "a QuadraticTarget", type(problem).__name__, "Use simulate.")
    if not isinstance(regime, (Trained, NeuralTangent)):
        raise InvalidParameter.of(owner, "regime", "be Trained or NeuralTangent", type(regime).__name__)
    if not regime.activation.is_square:
        raise NoTheorem.of("The limit of SGD", "σ(u) = u²", regime.activation.name, "Use simulate.")
    if isinstance(regime, Trained) and regime.alpha is not None:
        raise NoTheorem.of("The limit of SGD", "no output scale", f"α = {regime.alpha:g}", "Use flow, or simulate.")
    N, batch = whole_number(width, owner, "width"), whole_number(batch, owner, "batch")
    seed, draw = whole_number(seed, owner, "seed", least=0), whole_number(draw, owner, "draw", least=0)
    paths = whole_number(paths, owner, "paths")
    step_size = real_number(step_size, owner, "step_size")
    if not step_size > 0.0:
        raise InvalidParameter.of(owner, "step_size", "be positive", step_size)
    seen = _multiples(samples, batch)
    plan = stages(int(seen[-1]) // batch, step_size, decay)
    points = seen // batch
    times = _times(plan, points)
    line = flow(
        problem,
        regime,
        times=np.append(0.0, times) if times[0] > 0.0 else times,
        width=N,
        seed=seed,
        draw=draw,
        tolerance=tolerance,
        second_layer=second_layer,
    ).risk.values[-times.size :]
    if isinstance(regime, NeuralTangent):
        W = draw_weights(problem, regime, N, generator(seed, draw, N))
        B = problem.in_units(regime).B / np.sqrt(problem.d)
        risk = tangent_risks(TangentFlow.of(W, B), plan, batch, points.tolist()) / (2.0 * matrices.squared_norm(B))
        return _labelled(problem, regime, seen, {"risk": risk, "flow": line})
    noise = _noise(problem, N, batch, second_layer, plan, times, (seed, draw, paths), regime.init)
    values = {"risk": line + noise.mean(axis=0), "flow": line}
    if paths > 1:
        values["stderr"] = noise.std(axis=0, ddof=1) / np.sqrt(paths)
    return _labelled(problem, regime, seen, values)


def _noise(
    problem: QuadraticTarget,
    N: int,
    batch: int,
    second_layer: Literal["trained", "fixed"],
    plan: Sequence[Steps],
    times: FloatArray,
    which: tuple[int, int, int],
    init: float,
) -> FloatArray:
    """Return what noise adds to the risk, pairs of paths × times: the same walk without noise is subtracted."""
    from scipy.linalg import rq

    seed, draw, paths = which
    start = beginning(problem, N, None, "drawn", second_layer, seed, draw, init)
    assert start.W is not None
    W = start.W if problem.d >= N else rq(start.W, mode="economic")[0]
    ends = np.cumsum([part.count * part.step_size for part in plan]).tolist()
    noisy = [Stretch(end, part.step_size) for end, part in zip(ends, plan, strict=True)]

    def walked(stretches: Sequence[Stretch], rng: np.random.Generator, sign: float) -> FloatArray:
        path = Diffusion(start.b, W, batch, start.trained_layer, rng, sign)
        points = []
        for point in path.risks(stretches):
            report(0, 0, f"diffusion, t = {point[0]:.4g} of {stretches[-1].end:.4g}")
            points.append(point)
        t, risk = np.array(points).T
        return np.asarray(np.exp(np.interp(times, t, np.log(np.maximum(risk, 1e-300)))))

    quiet = walked([Stretch(part.end, 1e-9) for part in noisy], generator(seed, draw, _NOISE), 1.0)
    added = []
    for pair in range(paths):
        both = [walked(noisy, generator(seed, draw, _NOISE, pair), sign) for sign in (1.0, -1.0)]
        added.append(0.5 * (both[0] + both[1]) - quiet)
    return np.array(added)


def stages(steps: int, step_size: float, decay: Sequence[tuple[float, float]]) -> list[Steps]:
    """Return the steps in stretches of one size.

    >>> [(part.count, part.step_size) for part in stages(100, 0.1, ((0.3, 10.0), (0.1, 20.0)))]
    [(70, 0.1), (20, 0.01), (10, 0.005)]
    """
    must = "be pairs (last share of the steps, divisor), 0 ≤ share ≤ 1 and divisor > 0"
    begun = [(0, 1.0)]
    pairs = real_array(decay, "finite_step", "decay", must)
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise InvalidParameter.of("finite_step", "decay", must, f"shape {pairs.shape}")
    for share, divisor in pairs.reshape(-1, 2).tolist():
        if not 0.0 <= share <= 1.0 or not divisor > 0.0:
            raise InvalidParameter.of("finite_step", "decay", must, (share, divisor))
        # the first step with steps − step ≤ share·steps
        begun.append((steps - int(np.floor(share * steps + 1e-9)), divisor))
    ends = [first for first, _ in begun[1:]] + [steps]
    parts = [
        Steps(end - first, step_size / divisor)
        for (first, divisor), end in zip(begun, ends, strict=True)
        if end > first
    ]
    if sum(part.count for part in parts) != steps:
        raise InvalidParameter.of("finite_step", "decay", must + ", the largest share first", tuple(decay))
    return parts


def _times(plan: Sequence[Steps], points: FloatArray) -> FloatArray:
    """Return t = Σε after each of these numbers of steps."""
    counts = np.append(0, np.cumsum([part.count for part in plan]))
    clock = np.append(0.0, np.cumsum([part.count * part.step_size for part in plan]))
    return np.asarray(np.interp(points, counts, clock))


def _multiples(samples: Any, batch: int) -> Any:
    seen = np.atleast_1d(whole_numbers(samples, "finite_step", "samples"))
    if np.any(seen % batch) or np.any(np.diff(seen) <= 0):
        must = f"be ascending multiples of the batch, {batch}"
        wrong = seen[seen % batch != 0] if np.any(seen % batch) else seen[1:][np.diff(seen) <= 0]
        raise InvalidParameter.of("finite_step", "samples", must, int(wrong[0]))
    return seen


def _labelled(
    problem: QuadraticTarget, regime: Trained | NeuralTangent, samples: Any, values: dict[str, FloatArray]
) -> xr.Dataset:
    import xarray as xr

    if not all(np.all(np.isfinite(value)) for value in values.values()):
        raise NotConverged("SGD at this step size leaves what float64 holds. Rescale B, or pass a smaller step size.")
    result = xr.Dataset({name: (("samples",), value) for name, value in values.items()}, {"samples": samples})
    return described(result, problem, regime, "finite_step", "one-pass SGD to leading order in d·ε/batch")

"""One-pass SGD for NN and NT with σ = u² on the quadratic target: Theorem 3's algorithm by the paper's protocol.

All widths and step sizes are trained side by side in one pass over the stream. Risks are those of the whole
population, in closed form: f = ⟨x, Gx⟩ + c misses Σγ_i(x_i² − 1) by 2‖diag γ − G‖² + (Tr G + c)².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.evidence import Claim, exponential_quantiles
from lazyscope.problems import QuadraticTarget
from lazyscope.progress import report
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.simulate.protocol import SGD
from lazyscope.simulate.square import Networks, Pack, Tangents, compressed
from lazyscope.simulate.stream import Float32, Law, batches, draw, law_of

_LOOK = 50  # steps between two looks for a model that has diverged
_HOPELESS = 1e3  # risk, in units of the trivial one, beyond which a model does not come back
_POINTS = 40  # of the trace, log-spaced


@dataclass(frozen=True, eq=False)
class Trace:
    """Risk of each model at some numbers of samples seen, ∞ from where it diverged; its risk on fresh samples."""

    samples: FloatArray
    risk: FloatArray  # models × points
    tested: FloatArray  # models


def train(law: Law, pack: Pack, protocol: SGD, rng: np.random.Generator) -> Trace:
    """Train all models of a pack on one stream."""
    points = np.unique(np.geomspace(1, protocol.steps, _POINTS).astype(int))
    trace: list[FloatArray] = []
    with np.errstate(over="ignore", invalid="ignore"):  # a model may diverge between two looks
        for step, (X, y) in enumerate(batches(law, protocol.batch, protocol.steps, rng)):
            pack.step(X, y, 1.0 / protocol.rate(1.0, step))
            if step % _LOOK == 0:
                report(step, 0, f"step {step:,} of {protocol.steps:,}")
                bury_the_diverged(pack)
            if step + 1 == points[len(trace)]:
                trace.append(np.array([population_risk(law, pack, m) for m in range(len(pack.N))]))
        X, y = draw(law, protocol.test, rng)
        tested = np.array([_test(law, pack, m, X, y) for m in range(len(pack.N))])
    return Trace(points * float(protocol.batch), np.stack(trace, axis=1), tested)


def bury_the_diverged(pack: Pack) -> None:
    """Stop the models that are no longer finite."""
    finite = np.isfinite(pack.state.sum(axis=0))
    for m, columns in enumerate(pack.columns):
        healthy = np.isfinite(pack.c[m]) and np.isfinite(pack.a[m]) and finite[columns].all()
        if pack.alive[m] and not healthy:
            pack.bury(m)


def population_risk(law: Law, pack: Pack, m: int) -> float:
    """Return the normalised risk of model m, ∞ once it has diverged: 2d²N flops."""
    assert law.gamma is not None
    if not pack.alive[m]:
        return np.inf
    G = pack.form(m)
    offset = float(np.trace(G)) + float(pack.c[m])
    G[np.diag_indices_from(G)] -= law.gamma
    risk = float(2.0 * np.sum(G**2) + offset**2) / law.energy
    if not risk < _HOPELESS:
        pack.bury(m)
        return np.inf
    return risk


def _test(law: Law, pack: Pack, m: int, X: Float32, y: Float32) -> float:
    if not pack.alive[m]:
        return np.inf
    f = np.einsum("bd,bd->b", X @ pack.form(m).astype(np.float32), X) + pack.c[m]
    return float(np.mean((f - y).astype(np.float64) ** 2)) / law.energy


def risks(
    problem: QuadraticTarget,
    regime: Trained | NeuralTangent,
    widths: Sequence[int],
    protocol: SGD,
    seed: int,
    draw_number: int,
) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
    """Train all widths at all step sizes side by side, for one draw of the weights and of the stream."""
    d, sizes = problem.d, protocol.step_sizes
    columns = len(sizes) * sum(min(N, d) for N in widths)
    memory = 4.0 * (3.0 * d * columns + 3.0 * protocol.batch * columns) + 12.0 * d * max(widths)
    fits_in_memory(memory, f"{len(widths)} widths at {len(sizes)} step sizes", "Pass fewer at once.")
    starts = [_weights(seed, draw_number, N, d) for N in widths]
    kind = Networks if isinstance(regime, Trained) else Tangents
    pack = kind(
        [W for W in starts for _ in sizes], [N for N in widths for _ in sizes], [size for _ in widths for size in sizes]
    )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(draw_number, 0)))
    result = train(law_of(problem), pack, protocol, rng)
    trace = result.risk.reshape(len(widths), len(sizes), -1)
    lost = np.all(np.isinf(trace[..., -1]), axis=1)
    if np.any(lost):
        N = widths[int(np.argmax(lost))]
        raise NotConverged(
            f"SGD diverged at N = {N} with every step size of {sizes}. "
            "Pass protocol=SGD(step_sizes=…) with smaller ones."
        )
    return {
        "samples": (("samples",), result.samples),
        "trace": (("width", "step_size", "samples"), trace),
        "tested": (("width", "step_size"), result.tested.reshape(len(widths), len(sizes))),
    }


def _weights(seed: int, draw_number: int, N: int, d: int) -> Float32:
    """Draw w_i ~ N(0, I/d), and replace more than d of them by d with the same steps."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(draw_number, N)))
    return compressed(rng.standard_normal((N, d), dtype=np.float32) / np.float32(np.sqrt(d)))


def _claim(regime: type[Trained] | type[NeuralTangent], title: str) -> Claim:
    return Claim(
        fidelity="simulate",
        problem=QuadraticTarget,
        regime=regime,
        title=f"{title}, square activation",
        theorem="one-pass SGD (the paper's protocol, Theorem 3's algorithm with batches)",
        citations=("ghorbani2019limitations",),
        assumptions=("fresh samples, each used once", "σ(u) = u²", "isotropic initial weights"),
        arguments=("width", "protocol"),
        evaluate=risks,
        example=lambda d: (exponential_quantiles(d), regime()),
        covers=_covers,
    )


def _covers(problem: QuadraticTarget, regime: Trained | NeuralTangent) -> bool:
    return regime.activation.name == "square" and getattr(regime, "weights", None) is None


CLAIMS = (_claim(Trained, "trained network"), _claim(NeuralTangent, "neural tangent"))

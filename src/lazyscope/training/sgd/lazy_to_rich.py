"""How far training leaves the lazy regime: a network with output scale α and its linearisation, on one stream.

For σ = u² everything that is measured is a closed form in W₀, V and the tangent model's own V: with
G = (W₀Vᵀ + VW₀ᵀ + VVᵀ/α)/N and f = ⟨G, xxᵀ⟩ + c, ‖⟨M, xxᵀ⟩ + c‖² = 2‖M‖² + (Tr M + c)².
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.blas import threads_for
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.training.sgd import population
from lazyscope.training.sgd.loop import measured
from lazyscope.training.sgd.scaled import ScaledNetworks
from lazyscope.training.sgd.stream import Law, law_of
from lazyscope.training.sgd.tangent import Tangents

QUANTITIES = {
    "risk": "risk (1 = best constant)",
    "curvature": "what the network adds to its linearisation at the same weights, over ‖f⋆‖",
    "distance": "distance to the tangent model trained on the same samples, over ‖f⋆‖",
    "movement": "‖W − W₀‖/‖W₀‖",
    "drift": "‖K − K₀‖/‖K₀‖ of the tangent kernel 4⟨x, Kx′⟩⟨x, x′⟩, K = WWᵀ/N",
    "alignment": "share of ‖G‖² in the top N eigendirections of B",
}
_POINTS = 24
_MOST_STEPS = 10**9


def plan(problem: QuadraticTarget, alpha: float, batch: int = 100, init: float = 1.0) -> SGD:
    """Return a protocol that is stable at this α and long enough to end near the closed form.

    Steps are a fifth of what the offset, the fastest of all, would bear: it relaxes at the rate
    8(s + √d b̄/α) + 2(1 + 1/α), b̄ the mean eigenvalue of B and s = max(1, init²), as the tangent kernel is larger.
    Small α learn 1/α times faster.

    >>> plan(QuadraticTarget(np.ones(50)), 1000.0).step_sizes[0].__round__(4)
    0.0199
    """
    size = 0.2 / _rate(problem, alpha, init)
    steps = length(problem, alpha, init)
    if not steps <= _MOST_STEPS:
        must = f"be small enough for training in {_MOST_STEPS:,} steps at α = {alpha:g}"
        raise InvalidParameter.of("lazy_to_rich", "init", must, f"{init:g} ({steps:.3g} steps)", "Pass a smaller one.")
    decay = ((0.4, 5.0), (0.2, 25.0), (0.1, 100.0))
    return SGD(steps=max(100, round(steps)), batch=batch, step_sizes=(size,), decay=decay, test=1)


def length(problem: QuadraticTarget, alpha: float, init: float = 1.0) -> float:
    """Return how many steps `plan` asks for; it may be infinite where a scale is absurd."""
    total = problem.d * min(1.0, alpha) * (2.0 if alpha < 0.3 else 5.0)
    return max(100.0, 5.0 * total * _rate(problem, alpha, init))


def _rate(problem: QuadraticTarget, alpha: float, init: float) -> float:
    mean = float(np.mean(np.abs(problem.eigenvalues)))
    return 8.0 * (max(1.0, init * init) + sqrt(problem.d) * mean / alpha) + 2.0 * (1.0 + 1.0 / alpha)


def train(
    problem: QuadraticTarget, regime: Trained, width: int, protocol: SGD, seed: int, number: int
) -> dict[str, FloatArray]:
    """Train the network and its tangent model side by side; return each of `QUANTITIES` and `time` = Σε at points."""
    assert regime.alpha is not None
    law, (size,) = law_of(problem), protocol.step_sizes
    lazy = NeuralTangent(regime.activation)
    drawn = regime.init * weights.draw(problem, lazy, width, weights.generator(seed, number, width))
    W0 = law.see(drawn).astype(np.float32)
    pack = ScaledNetworks([W0], [width], [size], regime.activation, regime.alpha)
    tangent = Tangents([W0], [width], [size], regime.activation)
    points = np.unique(np.geomspace(1, protocol.steps, _POINTS).round().astype(int))
    rng, where = weights.generator(seed, number, 0), f"α = {regime.alpha:g}"
    with threads_for(law.d * protocol.batch * pack.state.shape[1]):
        both = (pack, tangent)
        rows = measured(law, both, protocol, rng, points, lambda: measures(law, pack, tangent), where)
    return dict(zip(("time", *QUANTITIES), rows.T, strict=True))


def measures(law: Law, pack: ScaledNetworks, tangent: Tangents) -> list[float]:
    """Return the quantities of the first model of each pack, in the order of `QUANTITIES`."""
    assert law.gamma is not None
    W0 = pack.fixed[:, pack.shared].astype(np.float64)
    V, N, alpha = pack.state.astype(np.float64), float(pack.N[0]), pack.alpha
    G, other = pack.form(0), tangent.form(0)
    assert G is not None and other is not None
    size = sqrt(law.energy)
    quadratic = V @ V.T / (alpha * N)
    top = np.argsort(law.gamma)[-min(int(N), law.d) :]
    K0, K = W0 @ W0.T, (W0 + V / alpha) @ (W0 + V / alpha).T
    return [
        population.risk(law, G, float(pack.c[0])),
        _norm(quadratic, 0.0) / size,
        _norm(G - other, float(pack.c[0] - tangent.c[0])) / size,
        float(np.linalg.norm(V) / (alpha * np.linalg.norm(W0))),
        float(np.linalg.norm(K - K0) / np.linalg.norm(K0)),
        float(np.sum(G[np.ix_(top, top)] ** 2) / np.sum(G**2)),
    ]


def _norm(M: FloatArray, c: float) -> float:
    """Return ‖⟨M, xxᵀ⟩ + c‖ over x ~ N(0, I)."""
    return sqrt(2.0 * float(np.sum(M**2)) + (float(np.trace(M)) + c) ** 2)

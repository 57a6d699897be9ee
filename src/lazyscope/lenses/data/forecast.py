"""What the theory of quadratic targets says each regime can reach, given the linear and quadratic part of the data.

    unexplained(N) = rest + linear·r₁(N) + quadratic·r₂(N),

r₂ the exact risk of the regime on ⟨z, Bz⟩ at width N with infinitely many samples (`lazyscope.exact`), r₁ that of
random features on a linear target (the limit N, d → ∞ at n = ∞). It is counted as zero for the other regimes: a trained
network needs two neurons for a linear function, and the tangent model leaves about 0.6/N of one (0.08 at N = 8, 0.014
at N = 32, by regression on 20,000 samples, d = 20). The rest, noise and higher orders, is counted as out of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.data.quadratic.part import QuadraticPart
from lazyscope.numerics.blas import threads_for
from lazyscope.problems import LinearTarget, QuadraticTarget
from lazyscope.progress import within
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained
from lazyscope.runs import verbs

REGIMES = {
    "RF": RandomFeatures("relu"),
    "NT": NeuralTangent("relu"),
    "NN": Trained("square"),
}
_DRAWS = 16


def quadratic_risks(B: FloatArray, widths: Sequence[int], seed: int = 0) -> dict[str, FloatArray]:
    """Return r₂ of each regime at each width: shares of the quadratic part that stay unexplained.

    Means over draws of the weights: the risk of one draw is off by a tenth where there are few neurons.

    >>> quadratic_risks(np.diag([2.0, 1.0, 0.0]), [1])["NN"].round(3)
    array([0.2])
    """
    target = QuadraticTarget(B)

    def risk(name: str, width: int) -> float:
        result = verbs.exact(target, REGIMES[name], width=width, draws=_draws(name, width), seed=seed)
        return float(result.risk)

    with threads_for(0), within():  # hundreds of small products: a second thread that is busy would be waited for
        return {name: np.array([risk(name, width) for width in widths]) for name in REGIMES}


def _draws(name: str, width: int) -> int:
    """How many draws of the weights: fewer of wide tangent models, which cost N²d and fluctuate less."""
    if name == "NN":
        return 1  # nothing is drawn
    return _DRAWS if name == "RF" else max(1, min(_DRAWS, 512 // width))


def linear_risk(widths: Sequence[int], d: int) -> FloatArray:
    """Return r₁ of random features, relu: the bias on a linear target at n = ∞, without ridge.

    >>> linear_risk([30, 3000], 30).round(2)
    array([0.45, 0.  ])
    """
    psi1 = np.asarray(widths, dtype=np.float64) / d
    wide = verbs.limit(LinearTarget(), RandomFeatures("relu"), psi1=psi1, psi2=np.inf, ridge=0.0)
    return np.asarray(wide.risk.values).reshape(len(psi1))


def unexplained(
    part: QuadraticPart, widths: Sequence[int], seed: int = 0, enough: Callable[[], bool] = lambda: False
) -> dict[str, FloatArray]:
    """Return the share of the variance that each regime leaves unexplained at each width, at best.

    A quadratic part that does not stand out from noise is counted as out of reach. Where it is `enough` after a width,
    the wider ones, which take longer, are left out.
    """
    second: dict[str, list[float]] = {name: [] for name in REGIMES}
    for width in widths:
        risks = quadratic_risks(part.B, [width], seed) if part.significant else dict.fromkeys(REGIMES, np.ones(1))
        for name, risk in risks.items():
            second[name].append(float(risk[0]))
        if enough():
            break
    told = widths[: len(second["NN"])]
    none = np.zeros(len(told))
    first = {"RF": linear_risk(told, len(part.beta)) if part.linear > 0 else none}
    return {
        name: np.asarray(part.rest + part.linear * first.get(name, none) + part.quadratic * np.array(second[name]))
        for name in REGIMES
    }

"""The Bayes floor at the problem's own dimension, by inverting the characteristic function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import Claim, at_ratios, exponential_quantiles, three_levels
from lazyscope.numerics import matrices
from lazyscope.numerics.quadrature import panels
from lazyscope.problems import GaussianMixture, MultiIndex, QuadraticTarget
from lazyscope.regimes import Bayes

_TOLERANCE = 1e-10  # of the risk, as panels are halved
_MOST_PANELS = 4000
_NOTHING = 41.0  # e^−41 = 1.6e-18
_CLASSES = (1.0, -1.0)
_CUTOFF = 12.0  # 1/sinh(πt) is below 1e-16 beyond


def mixture(problem: GaussianMixture, regime: Bayes) -> dict[str, float]:
    """R = 1 − E[y tanh(ℓ/2)], ℓ the log-likelihood ratio of x: a weighted sum of χ²₁ variables.

    With δ_i the eigenvalues of Δ̃, given y: ℓ = Σ_i [artanh δ_i − δ_i χ²/(1 + yδ_i)], whose characteristic function
    is φ_y(t) = Π e^{it artanh δ_i}(1 + 2itδ_i/(1 + yδ_i))^{-1/2}, and as tanh(ℓ/2) = 2∫₀^∞ sin(tℓ)/sinh(πt) dt,

        E[tanh(ℓ/2) | y] = 2 ∫₀^∞ Im φ_y(t)/sinh(πt) dt   (compare Gil-Pelaez).
    """
    delta = matrices.eigenvalues(problem.whitened)
    width = min(0.5, 2.0 / (1.0 + np.sqrt(problem.information)))
    even = np.linspace(0.0, _CUTOFF, int(np.ceil(_CUTOFF / width)) + 1)
    risk, graded = _risk(delta, (even, even)), [_graded(delta, y) for y in _CLASSES]
    check = _risk(delta, graded)
    if abs(risk - check) > _TOLERANCE:  # classes nearly singular: φ falls, or turns, within a single even panel
        risk, check = check, _risk(delta, [np.sort(np.append(e, 0.5 * (e[1:] + e[:-1]))) for e in graded])
    if not abs(risk - check) <= _TOLERANCE:
        raise NotConverged(
            f"The Bayes risk still moved by {abs(risk - check):.1e} when its panels were halved (tolerance "
            f"{_TOLERANCE:.0e}): the classes are too far apart. Scale Delta down."
        )
    return {"risk": max(0.0, risk)}


def _risk(delta: FloatArray, edges: Sequence[FloatArray]) -> float:
    """Return the risk from the panels of each class."""
    mean = 0.0
    for y, some in zip(_CLASSES, edges, strict=True):
        t, w = panels(some)
        mean += 0.5 * y * float(np.sum(w * _imaginary(t, delta, y) / np.sinh(np.pi * t)))
    return 1.0 - 2.0 * mean


def _graded(delta: FloatArray, y: float) -> FloatArray:
    """Return edges of panels in which φ_y turns by about three radians and t no more than doubles.

    The phase turns at a rate of at most |Σ artanh δ_i| + ½Σ|w_i|/(1 + t²w_i²), w_i = 2δ_i/(1 + yδ_i), and
    |φ| = Π(1 + t²w_i²)^(−1/4) falls: from where it is below rounding nothing is added.
    """
    weight, shift = 2.0 * delta / (1.0 + y * delta), abs(float(np.sum(np.arctanh(delta))))
    edges, t = [0.0], 0.0
    while t < _CUTOFF and len(edges) < _MOST_PANELS and 0.25 * float(np.sum(np.log1p((t * weight) ** 2))) < _NOTHING:
        rate = 1.0 + shift + 0.5 * float(np.sum(np.abs(weight) / (1.0 + (t * weight) ** 2)))
        t += min(0.5, 3.0 / rate, t or np.inf)
        edges.append(min(t, _CUTOFF))
    return np.array(edges)


def _imaginary(t: FloatArray, delta: FloatArray, y: float) -> FloatArray:
    """Im φ_y(t), one node after another: O(d) memory."""
    weight, shift = 2.0 * delta / (1.0 + y * delta), float(np.sum(np.arctanh(delta)))
    log_phi = np.array([1j * s * shift - 0.5 * np.sum(np.log1p(1j * s * weight)) for s in t])
    return np.asarray(np.imag(np.exp(log_phi)))


def without_noise(problem: QuadraticTarget | MultiIndex, regime: Bayes) -> dict[str, float]:
    """Without noise in the test sample the floor is zero."""
    return {"risk": 0.0}


CLAIMS = (
    Claim(
        fidelity="exact",
        problem=GaussianMixture,
        regime=Bayes,
        title="Bayes floor",
        theorem="characteristic function of the log-likelihood ratio",
        citations=("ghorbani2019limitations", "gilpelaez1951"),
        assumptions=("y = ±1 with probability ½, x | y ~ N(0, Σ ∓ Δ)",),
        arguments=(),
        compute=at_ratios(mixture),
        example=lambda d: (three_levels(d), Bayes()),
    ),
    *(
        Claim(
            fidelity="exact",
            problem=problem,
            regime=Bayes,
            title="Bayes floor",
            theorem="no noise: zero by definition",
            citations=("ghorbani2019limitations",),
            assumptions=("what is to be predicted is a function of x",),
            arguments=(),
            compute=at_ratios(without_noise),
            example=example,
        )
        for problem, example in (
            (QuadraticTarget, lambda d: (exponential_quantiles(d), Bayes())),
            (MultiIndex, lambda d: (MultiIndex(d, "he3"), Bayes())),
        )
    ),
)

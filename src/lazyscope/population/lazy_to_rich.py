"""Trained network with an output scale α, σ = u², quadratic target: where gradient flow ends, in closed form.

f = α(h(W) − h(W₀)) + c with h = (1/N)Σ⟨w_i,x⟩² is ⟨P − αK₀, xxᵀ⟩ + c with P = αWWᵀ/N ⪰ 0 of rank N and K₀ = W₀W₀ᵀ/N:
the network of Theorem 3 for the target B + αK₀, started at P = αK₀. So it ends at the best approximation of rank N,

    R = Σ_{i>N} λ_i(B + αK₀)² / ‖B‖²,

the floor of Theorem 3 for α → 0, and for α → ∞ that of the tangent model, ‖P⊥BP⊥‖²/‖B‖² with P⊥ the projector off
span(W₀): α interpolates between the two. (B is divided by √d here, as in the paper's scripts; W₀ ~ N(0, init²I/d).)
"""

from __future__ import annotations

import numpy as np

from lazyscope import weights
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import Claim, at_width, exponential_quantiles, square_activation
from lazyscope.numerics import matrices
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, Trained

_TANGENT = NeuralTangent()  # whose weights the network starts from
_ROUNDING = 1e-6  # of ‖B‖: what the rounding of B + αK₀ may hide


def risk(problem: QuadraticTarget, regime: Trained, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the risk after training for ever, for one draw of the initial weights: one eigendecomposition.

    >>> target = QuadraticTarget([3.0, 2.0, 1.0])
    >>> rich = risk(target, Trained(alpha=1e-6), 1, np.random.default_rng(0))["risk"]
    >>> print(f"{rich:.4f} {(4 + 1) / 14:.4f}")
    0.3571 0.3571
    """
    assert regime.alpha is not None
    k = matrices.unit_of(problem.B) or 0  # B and α in the units of B: squares neither over- nor underflow
    W = regime.init * weights.draw(problem, _TANGENT, width, rng)
    B = matrices.dense(np.ldexp(problem.B, -k)) / np.sqrt(problem.d)
    values = np.linalg.eigvalsh(B + (np.ldexp(regime.alpha, -k) / width) * (W.T @ W))
    energy = float(np.sum(B**2))
    hidden = problem.d * float(np.finfo(np.float64).eps * np.max(np.abs(values))) / np.sqrt(energy)
    if hidden > _ROUNDING:
        raise NotConverged(
            f"The target is so small beside αK₀, α = {regime.alpha:g}, that rounding hides {hidden:.1e} of it "
            f"(tolerance {_ROUNDING:.0e}). Use NeuralTangent, which is the limit α → ∞, or a smaller alpha."
        )
    learned = np.maximum(values[max(0, problem.d - width) :], 0.0)
    missed = values.copy()
    missed[problem.d - learned.size :] -= learned
    return {"risk": float(missed @ missed) / energy}


CLAIMS = (
    Claim(
        fidelity="exact",
        problem=QuadraticTarget,
        regime=Trained,
        title="trained network, output scale",
        theorem="Theorem 3 for the target B + αK₀",
        citations=("ghorbani2019limitations",),
        assumptions=(
            "n = ∞: gradient flow on the population risk, run for ever",
            "σ(u) = u² (+ constant), first layer and offset trained",
        ),
        arguments=("width",),
        compute=at_width(risk),
        example=lambda d: (exponential_quantiles(d), Trained(alpha=3.0)),
        covers=square_activation,
        scaled=True,
        scale_free=False,
    ),
)

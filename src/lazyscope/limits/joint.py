"""RF and NT together, σ = u²: the limits of NT, whose class contains the features of the second layer.

⟨w_i, x⟩² = ½σ′(⟨w_i, x⟩)⟨w_i, x⟩ is an NT function with v_i ∝ w_i (Euler's theorem for homogeneous functions), and both
models have an offset. So the joint class is that of NT, for every W, and Theorems 2 and 5 of Ghorbani et al. (2019)
hold for it as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lazyscope.evidence.claim import Claim
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.limits import mixture, multi_index, quadratic
from lazyscope.regimes import JointTangent, NeuralTangent


def _of_first_layer(compute: Callable[[Run], Row]) -> Callable[[Run], Row]:
    def joint(run: Run) -> Row:
        assert isinstance(run.regime, JointTangent)
        return compute(replace(run, regime=run.regime.first_layer))

    return joint


def _joint(claim: Claim) -> Claim:
    return replace(
        claim,
        regime=JointTangent,
        title="both layers",
        theorem=f"{claim.theorem}, whose class contains the second layer's features for σ = u²",
        compute=_of_first_layer(claim.compute),
        dimensions=(50, 100, 200),  # NT's own claim is measured up to 400
        example=lambda d: (claim.example(d)[0], JointTangent()),
    )


CLAIMS = tuple(
    _joint(claim)
    for module in (quadratic, mixture, multi_index)
    for claim in module.CLAIMS
    if claim.regime is NeuralTangent
)

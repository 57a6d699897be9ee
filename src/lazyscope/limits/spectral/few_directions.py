"""The lazy side of a function of a few directions: ridge regression sees its energy in each degree, and nothing else.

Isotropic features have no direction of their own. On the sphere ‖x‖ = √d the risk of ridge regression is that of
`harmonic`, with the energy of each degree; Gaussian inputs have norms √d(1 + O(d^−½)), and the mean risk differs by
O(1/d): their polynomials are those of Hermite, and what features make of the norm of x is learnt or missed besides.
"""

from __future__ import annotations

from collections.abc import Callable

from lazyscope.checks import FloatArray
from lazyscope.evidence.claim import Claim, at_ratios, isotropic_features
from lazyscope.limits.spectral import equivalent, harmonic
from lazyscope.problems import HarmonicTarget, MultiIndex
from lazyscope.regimes import NeuralTangent, RandomFeatures

Theorem = Callable[..., dict[str, FloatArray]]


def on_sphere(theorem: Theorem) -> Theorem:
    """Return a theorem on the sphere as one on the shares of energy of a function of a few directions."""

    def risks(problem: MultiIndex, regime: object, *sizes: FloatArray) -> dict[str, FloatArray]:
        return theorem(HarmonicTarget.of_target(problem), regime, *sizes)

    return risks


def _claim(regime: type[RandomFeatures] | type[NeuralTangent], theorem: Theorem, more: tuple[str, ...]) -> Claim:
    features = regime is RandomFeatures
    return Claim(
        fidelity="limit",
        problem=MultiIndex,
        regime=regime,
        method="ridge",
        title="random features, ridge regression" if features else "tangent model, ridge regression",
        theorem="Deterministic equivalents on the sphere, with the energy that h has in each degree",
        citations=(*harmonic.PAPER, *(() if features else ("montanari2020interpolation",))),
        assumptions=(
            "x ~ N(0, I) is taken as uniform on ‖x‖ = √d: O(1/d) in the risk; w on the unit sphere, σ not centred",
            "objective Σ(y − f)² + λ‖a‖², f = N^−½ Σ a_jφ_j; ridge = 0 is λ → 0, infinite at N = n",
            *more,
        ),
        arguments=("width", "samples", "ridge"),
        compute=at_ratios(on_sphere(theorem)),
        covers=isotropic_features,
        dims={"learnt": ("degree",)},
        tolerance=equivalent.TOLERANCE,
        sizes={"width": 200},
        dimensions=(96,),
        example=lambda d: (MultiIndex(d, "tanh", noise=0.2), regime("erf")),
    )


CLAIMS = (
    _claim(RandomFeatures, harmonic.random_features, ()),
    _claim(NeuralTangent, harmonic.tangent_model, ("N ≥ 2d or N = ∞; K = E_w[σ′σ′]⟨x, x′⟩/d, no offset",)),
)

"""Where the sources are wrong, or disagree with each other: docs/errata.md proves each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Erratum:
    """One misprint: its `place`, what is `printed` there and what is `right`; `note` is a sentence for results."""

    place: str
    printed: str
    right: str
    note: str = ""


MIXTURE = Erratum(
    "paper Eq. 17 and poster, RF on the mixture",
    "ρ/(1+2ρ)",
    "ρ/(1+ρ)",
    "Eq. 17 and the poster print ρ/(1+2ρ) for ρ/(1+ρ), which Theorem 4 gives.",
)
TANGENT = Erratum(
    "paper Eq. 13, NT",
    "ρ(1−ρ)₊ + Tr(B)²/(d‖B‖²)",
    "ρ(1−ρ)₊ · Tr(B)²/(d‖B‖²)",
    "Eq. 13 prints a sum, ρ(1−ρ)₊ + Tr(B)²/(d‖B‖²), for the product that Theorem 2 gives.",
)
GAP = Erratum("paper Eq. 6", "GAP(ρ) > 0 for ρ < 1", "for B that is no multiple of I, which has GAP = 0")
WIDE = Erratum("paper Eq. 11 and poster, RF at ρ = ∞", "the same for every σ", "for σ with λ₂ ≠ 0")
ZETA = Erratum(
    'lecture, "Precise asymptotics"', "ζ = b₁²/b⋆²", "ζ = b₁/b⋆", "The talk prints ζ = b₁²/b⋆² for ζ = b₁/b⋆."
)
SADDLE = Erratum(
    "paper Proposition 1", "λ_min(∇²L) < −δ wherever ‖∇L‖ ≤ ε", "there, or near a global minimum, where λ_min ≥ 0"
)
CLASSES = Erratum("poster and paper, mixture", "Σ + Δ against Σ − Δ for y = +1", "a sign convention")
WEIGHTS = Erratum("paper §1 and poster, law of the weights", "w ~ N(0, I)", "w ~ N(0, I/d), as the theorems have it")
QUADRATIC_MODEL = Erratum(
    "Beyond Linearization §3, quadratic model",
    "f^Q without the ½ of 1/2!",
    "f^Q with ½, as §6 and the proof of Theorem 7 have it",
    "§3 prints f^Q without the ½ of 1/2!; §6 has it, and so have we.",
)

ERRATA = (MIXTURE, TANGENT, GAP, WIDE, SADDLE, ZETA, CLASSES, WEIGHTS, QUADRATIC_MODEL)

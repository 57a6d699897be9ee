"""Power laws: a spectrum without an end in a thousand groups, and the exponents that are proved for it.

ξ_i = i^{−a}, energies i^{−1−2ar}. Without noise and ridgeless, the deterministic equivalents give (Defilippis et al.
2024, §4; N = ∞ Cui et al. 2021)

    R ~ n^{−2a min(r, 1)} + n^{1−2a min(r, ½)} N^{−1}   for N ≫ n,        R ~ N^{−2a min(r, ½)}   for N ≪ n:

three regions of the (n, N) plane where r > ½, two where r < ½ (at r = ½ and at r = 1 a logarithm joins in). With noise,
N = ∞ and the best ridge, R ~ n^{−2am/(2am + 1)}, m = min(r, 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.problems import SpectralTarget

_SINGLE, _RATIO, _LAST = 300, 1.02, 1e14  # eigenvalues one by one, then in groups of 2 %, then by their trace


@dataclass(frozen=True)
class PowerLaw:
    """Capacity a and source r."""

    a: float
    r: float

    def __str__(self) -> str:
        return f"a = {self.a:g}, r = {self.r:g}"

    def target(self, noise: float = 0.0) -> SpectralTarget:
        """Return the whole law: i ≤ 300 one by one, groups of 2 % to 10¹⁴ with their mean ξ, the rest by its trace.

        Sums over a group are differences of Hurwitz's ζ. Its ξ differ by 2a %, which counts in second order: 10⁻⁴.

        >>> law = PowerLaw(1.5, 0.75).target()
        >>> whole = float(law.multiplicities @ law.eigenvalues) + law.tail
        >>> print(law.eigenvalues.size, f"{whole:.6f}", f"{law.energies.sum():.6f}")  # ζ(1.5) and ζ(3.25)
        1636 2.612375 1.159152
        """
        from scipy.special import zeta

        edges = [_SINGLE + 1.0]
        while edges[-1] < _LAST:
            edges.append(float(np.ceil(_RATIO * edges[-1])))
        i, count = np.arange(1.0, _SINGLE + 1.0), np.diff(edges)
        beyond, energy = zeta(self.a, edges), zeta(1.0 + 2.0 * self.a * self.r, edges)
        return SpectralTarget(
            np.concatenate([i**-self.a, -np.diff(beyond) / count]),
            np.concatenate([i ** (-1.0 - 2.0 * self.a * self.r), -np.diff(energy)]),
            np.concatenate([np.ones(_SINGLE), count]),
            float(beyond[-1]),
            noise,
        )

    @property
    def samples(self) -> float:
        """2a min(r, 1): the exponent of n where samples are few."""
        return 2.0 * self.a * min(self.r, 1.0)

    @property
    def neurons(self) -> float:
        """2a min(r, ½): the exponent of N where neurons are few."""
        return 2.0 * self.a * min(self.r, 0.5)

    @property
    def enough(self) -> float:
        """The q from which on N = n^q neurons are as good as infinitely many: 1, or 1 + a(2 min(r, 1) − 1) where r > ½.

        >>> PowerLaw(1.5, 0.3).enough, PowerLaw(1.5, 0.75).enough, PowerLaw(1.5, 4.0).enough
        (1.0, 1.75, 2.5)
        """
        return 1.0 + self.samples - self.neurons

    @property
    def noisy(self) -> float:
        """The exponent of n with noise, N = ∞ and the best ridge."""
        return self.samples / (self.samples + 1.0)

    def along(self, q: float) -> float:
        """γ in R ~ n^{−γ} where N = n^q.

        >>> [PowerLaw(1.5, 0.75).along(q) for q in (0.5, 1.0, 1.5, 1.75, 3.0)]
        [0.75, 1.5, 2.0, 2.25, 2.25]
        """
        return min(self.samples, (self.neurons - 1.0) * min(q, 1.0) + q)

    @property
    def regions(self) -> dict[str, tuple[float, float, tuple[float, float]]]:
        """Exponents of n and N in each region, and the q between which they are measured, away from its borders."""
        exponents = {"few neurons": (0.0, -self.neurons, (0.35, 0.6))}
        if self.r > 0.5:
            middle, third = 0.5 * (1.0 + self.enough), 0.15 * (self.enough - 1.0)
            exponents["between"] = (1.0 - self.neurons, -1.0, (middle - third, middle + third))
        return exponents | {"few samples": (-self.samples, 0.0, (self.enough + 0.5, self.enough + 1.0))}

    @property
    def best(self) -> tuple[float, float]:
        """(q, γ): at a cost C = nN the best share is N = n^q, and R ~ C^{−γ}: the largest `along(q)`/(1 + q).

        >>> PowerLaw(1.5, 0.3).best[0], PowerLaw(1.5, 0.75).best[0], PowerLaw(2.5, 0.75).best[0]
        (1.0, 1.75, 1.0)
        """
        return max(((q, self.along(q) / (1.0 + q)) for q in (1.0, self.enough)), key=lambda share: share[1])

"""The linear target as random features on the sphere see it in d dimensions: by the spectrum of their kernel.

So do noisy linear ones. `equivalent` then has the risk at given n, N and d, `limits.ridge` that of n, N, d → ∞.
"""

from __future__ import annotations

import numpy as np

from lazyscope.activations.zonal import spectrum
from lazyscope.problems import LinearTarget, SpectralTarget
from lazyscope.regimes import RandomFeatures

_TINY = 1e-14  # of the trace: an eigenvalue of noise


def spectral_target(problem: LinearTarget, regime: RandomFeatures, d: int) -> SpectralTarget:
    """Return the target as the features see it in d dimensions: the spectrum of their kernel, σ centred by E σ(g).

    What the target has beyond its linear part is of degree two, as in the simulations. Noisy linear features
    b₁⟨w, x⟩ + b⋆z have d eigenvalues b₁²/d, and noise, infinitely many tiny ones.

    >>> spectral_target(LinearTarget(noise=0.5), RandomFeatures("relu"), 60).energies[:3]
    array([0., 1., 0.])
    """
    sigma, energy = regime.activation, problem.signal**2
    if regime.surrogate:
        values = np.array([sigma.b1**2 / d, _TINY * sigma.lambda_tilde])  # the least bounds those of the noise
        signal, many = np.array([energy, 0.0]), np.array([d, 1.0])
        return SpectralTarget(values, signal, many, sigma.lambda_tilde, problem.noise)
    eigenvalues, multiplicity, tail, _ = spectrum(sigma, d)
    mean = sigma.lambda_k(0)
    eigenvalues = np.append((np.copysign(np.sqrt(eigenvalues[0]), mean) - mean) ** 2, eigenvalues[1:])
    energies = np.zeros(eigenvalues.size)
    energies[1:3] = energy, problem.nonlinear**2
    return SpectralTarget(eigenvalues, energies, multiplicity, tail, problem.noise)

"""Random features that are Gaussian: random combinations of the eigenfunctions of a kernel, for any spectrum.

φ_j(x) = Σ_i √ξ_i w_{ji}g_i(x), w and g standard normal, target Σ_i β_ig_i, β_i² its energies. Ridge regression with
f = N^{−½} Σ_j a_jφ_j on n samples has, over all x, the risk |β − N^{−½} diag(√ξ)Wᵀa|².
"""

from __future__ import annotations

import numpy as np

from lazyscope.numerics.ridge import ridge_path
from lazyscope.problems import SpectralTarget


def gaussian_risk(target: SpectralTarget, N: int, n: int, ridge: float, rng: np.random.Generator) -> float:
    """Draw features and samples, fit, and return the risk: 2nN flops a term and a decomposition of min(n, N)³.

    >>> target = SpectralTarget([1.0, 0.5], [1.0, 1.0])
    >>> gaussian_risk(target, 50, 20, 1e-9, np.random.default_rng(0)) < 1e-12  # two terms, no noise: learnt
    True
    """
    W = rng.standard_normal((N, target.eigenvalues.size)) * np.sqrt(target.eigenvalues)
    G, beta = rng.standard_normal((n, target.eigenvalues.size)), np.sqrt(target.energies)
    y = G @ beta + target.noise * rng.standard_normal(n)
    coefficients, _ = ridge_path(G @ W.T, y[:, None], [N * ridge])
    return float(np.sum((beta - W.T @ coefficients[:, 0, 0]) ** 2))

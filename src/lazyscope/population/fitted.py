"""What n samples add to the population risk of random features that are fitted to them, to first order in N/n.

The coefficients of a least-squares fit are off by δ = Ĥ⁻¹(1/n)Σ r φ, r the residual of the best ones and H = E[φφᵀ], so
that the risk R grows by E[δᵀHδ]. Were φ Gaussian and r independent of it, this would be exactly

    R · N/(n − N − 1),

the mean of an inverse Wishart matrix. r knows the leverage φᵀH⁻¹φ a little: both are large where |x| is. To first order
the true value is E[r² φᵀH⁻¹φ]/n, which by Cauchy and Schwarz exceeds RN/n by at most a factor √(E r⁴)/E r², √3 for a
Gaussian residual, as the leverage hardly varies in many dimensions: what may be missing is √3 − 1 times the term.
"""

from __future__ import annotations

from math import sqrt

from lazyscope.errors import NoTheorem


def added(risk: float, N: int, n: int) -> float:
    """Return R·N/(n − N − 1).

    >>> round(added(0.5, 100, 10_101), 6)
    0.005
    """
    if n <= N + 1:
        raise NoTheorem.of("The expansion in N/n", "n > N + 1", f"n = {n}, N = {N}", "Use simulate.")
    return risk * N / (n - N - 1)


def uncertain(risk: float, N: int, n: int) -> float:
    """Return what the term may be off by: √3 − 1 times itself.

    >>> round(uncertain(0.5, 100, 10_101), 6)
    0.00366
    """
    return (sqrt(3.0) - 1.0) * added(risk, N, n)

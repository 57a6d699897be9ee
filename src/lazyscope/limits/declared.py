"""Exponents and bounds that theorems declare, and experiments measure.

Most are of Bai & Lee (2019), where m is the width and ‖w_r‖ = m^{−1/4}/B_x; then f^Q = O(1), while f^L under random
signs and all that follows f^Q are O(m^{−1/4}).
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.problems import MultiIndex

COUPLING = {
    "linear_plain": 0.25,
    "linear": -0.25,
    "quadratic": 0.0,
    "gap": -0.25,
    "rest": -0.25,
    "risk": -0.25,
    "gradient": -0.25,
    "hessian": -0.25,
}
"""Exponents of m in §3 and Lemmas 10 to 14: f^L without signs, f^L under signs, f^Q, f − f^Q, f − f^L − f^Q, and the
differences of risk, gradient and Hessian between the network and its quadratic model."""

LANDSCAPE = {"Lemma 1": -1.0, "Theorem 2": -0.25, "Corollary 3": -0.25}
"""Exponents of m that bound the error terms of the landscape's inequalities (§4)."""

EXPRESSIVITY = -0.5
"""Exponent of m in the error of Theorem 7's W⋆: a mean over m/2 independent neurons."""

SAMPLES = {"NTK": 2, "quadratic model": 1}
"""Exponents of d in the samples that 2-XOR needs (§5.2): a lower bound (Wei et al. 2019) and an upper one."""

PARTICLES = -1.0
"""Exponent of N that bounds the excess risk of N particles over the best measure (Montanari 2019, "Mean field")."""

LAZINESS = -1.0
"""Exponent of the output scale α in how far weights and kernel move at the lazy end (Montanari 2019)."""

WIDTH = -0.5
"""Exponent of N in how far the weights move in relation to their size, and a bound for how far the tangent kernel and
the function leave those of the linearisation, at n given samples (Lee et al. 2019, Theorem 2.1)."""


INCLUSION = {("erf", "forward"): 1.0, ("erf", "central"): 2.0, ("relu", "forward"): 0.5, ("relu", "central"): 0.5}
"""Powers of ε with which networks of 2N neurons tend to an NT function (`weights.tangent_as_network`): Taylor's
remainder where σ is smooth; where it has a kink, inputs within ε of it are a share ε of all."""


def cubic_share(parameters: int, d: int) -> float:
    """Return the most that a class with isotropic weights can learn of a cubic function of one direction, in the mean.

    Of he₃(⟨u, x⟩) the part 3/(d + 2) is ⟨u, x⟩ times a function of ‖x‖. The rest is a spherical harmonic of degree 3,
    one of B(d, 3) = (d + 4)d(d − 1)/6; turned at random, its projection on a space of so many parameters has the mean
    parameters/B at most.

    >>> round(cubic_share(100, 100), 3), round(cubic_share(100 * 100, 100), 3)
    (0.03, 0.088)
    """
    harmonics = (d + 4) * d * (d - 1) / 6.0
    return 3.0 / (d + 2.0) + min(1.0, parameters / harmonics)


def higher_order(k: int, randomized: bool) -> FloatArray:
    """Return the exponents of m that §6.1 declares for f^{(1)} … f^{(k)}, and its bound for what follows.

    >>> higher_order(2, True), higher_order(2, False)
    (array([-0.25,  0.  , -0.25]), array([ 0.25,  0.  , -0.25]))
    """
    j = np.arange(1.0, k + 1.0)
    below = np.where(j < k, -j / (2 * k), 0.0) if randomized else (k - j) / (2 * k)
    return np.append(below, -1.0 / (2 * k))


def polynomial_samples(p: int) -> tuple[int, int]:
    """Return the exponents of d in the samples that (βᵀx)^p needs by §5.2, ‖x‖ = √d: tangent kernel, quadratic model.

    With B_x = 1 the bounds are n_L ~ p²α²‖β‖^{2p} and n_Q ~ p³α²‖β‖^{2p}/d; inputs of length √d put d^p in the place of
    ‖β‖^{2p}, and the ratio is p/d.

    >>> polynomial_samples(3)
    (3, 2)
    """
    return p, p - 1


def few_direction_samples(problem: MultiIndex, learner: str, level: float) -> float:
    """Return the exponent of d in the samples that a learner needs to bring the risk to `level`; powers of log d aside.

    Lazy methods pay for the degree up to which they need the target, SGD max(leap − 1, 1) (Ben Arous et al. 2021, Abbe
    et al. 2023). A giant step finds the directions of the linear part at n ~ d (Ba et al. 2022); ∞ where there is none.

    >>> [few_direction_samples(MultiIndex(9, "he3"), name, 0.5) for name in ("kernel", "SGD", "giant step")]
    [3.0, 2.0, inf]
    """
    if learner == "SGD":
        return float(max(problem.leap - 1, 1))
    if learner == "giant step":
        return 1.0 if problem.information_exponent == 1 else np.inf
    beyond = 1.0 - np.cumsum(problem.energies) / problem.energy
    return float(np.argmax(beyond < level))


def matrix_concentration(m: int, d: int, largest: float) -> float:
    """Return Lemma 8's bound on E_s max_r ‖A_r‖_op: 4 √(log(2md) max_r ‖E A_r²‖), `largest` being the maximum."""
    return 4.0 * sqrt(log(2.0 * m * d) * largest)


def generalisation(Bx: float, Bw: float, M_op: float, n: int) -> float:
    """Return Theorem 6's main term B_x² B_w² M_{x,op}/√n and 1/√n, constants and logarithms left out."""
    return Bx**2 * Bw**2 * M_op / sqrt(n) + 1.0 / sqrt(n)


def stationary_norm(C: float, below: float, error: float, lam0: float) -> float:
    """Return Theorem 4's bound on ‖Ŵ‖_{2,4}/‖W⋆‖_{2,4} at a stationary point of second order (App. B.6).

        λ‖Ŵ‖⁸ ≤ Cλ‖W⋆‖⁸ + 2(OPT − L_λ(Ŵ)) + ε,     λ₀ = λ‖W⋆‖⁸, `below` = OPT − L_λ(Ŵ), `error` = ε, C of Corollary 3.

    >>> round(stationary_norm(8297.9, 0.0, 0.0, 0.01), 3)
    3.089
    """
    return float(max(C + (2.0 * below + error) / lam0, 0.0) ** 0.125)

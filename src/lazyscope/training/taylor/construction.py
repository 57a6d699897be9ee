"""The W⋆ of Theorem 7, in closed form: a quadratic model that expresses α(βᵀx)^p (Bai & Lee 2019, §5.2, App. C.3–C.4).

With w⋆_r = 2m^{−1/4} √a₊ β in the half with a_r = +1 and 2m^{−1/4} √a₋ β in the other, a = a₊ − a₋ = a(w_{0,r}),

    f^Q_{W⋆}(x) = (2/m) Σ_{r≤m/2} σ″(w_{0,r}·x) a(w_{0,r}) · (βᵀx)²  →  E[σ″(w₀·x) a(w₀)] (βᵀx)²  =  α(βᵀx)^p

asks for random features that express (βᵀx)^q, q = p − 2. The proof there finds a(w₀) by an isometry of Hilbert spaces;
it has a formula. u = w₀·x and v = B_x w₀·β/‖β‖ are standard normal of correlation t = βᵀx/(B_x‖β‖), so that
E[σ″(u) he_q(v)] = c_q(σ″) t^q, and

    a(w₀) = α (B_x‖β‖)^q he_q(v)/c_q(σ″),     E[a²] = α² (B_x‖β‖)^{2q}/c_q(σ″)²,

which is the norm that Lemma 9 bounds: c_q(relu)² are its c_q. Sums of monomials: W₁ + W₂Σ, Σ
random signs (footnote 5 there).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from lazyscope.activations import Activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.numerics.quadrature import MAX_DEGREE, gaussian_nodes, hermite_functions, root_density
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import flipped, random_signs

_NOTHING = 1e-10  # of √E[σ″²]: a Hermite coefficient that quadrature cannot tell from zero


@dataclass(frozen=True, eq=False)
class Monomial:
    """α(βᵀx)^p, p ≥ 2.

    >>> Monomial(0.5, [1.0, 1.0], 3)(np.array([[1.0, 1.0]]))
    array([4.])
    """

    alpha: float
    beta: FloatArray
    p: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", real_number(self.alpha, "Monomial", "alpha"))
        beta = real_array(self.beta, "Monomial", "beta", "be a direction β, a one-dimensional sequence, not zero")
        if beta.ndim != 1 or not np.any(beta):
            got = f"shape {beta.shape}" if beta.ndim != 1 else "zero"
            raise InvalidParameter.of("Monomial", "beta", "be a direction β, a one-dimensional sequence, not zero", got)
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "p", whole_number(self.p, "Monomial", "p", least=2))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return α(βᵀx)^p at the rows of X."""
        return np.asarray(self.alpha * (X @ self.beta) ** self.p)

    def second_moment(self, sigma: Activation, Bx: float) -> float:
        """E[a(w₀)²], the least there is with this form of a."""
        q = self.p - 2
        return (self.alpha * (Bx * float(np.linalg.norm(self.beta))) ** q / feature_coefficient(sigma, q)) ** 2

    def expected_norm(self, sigma: Activation, Bx: float) -> float:
        """E‖W⋆‖⁴_{2,4} = 8‖β‖⁴ E[a²]."""
        return 8.0 * float(self.beta @ self.beta) ** 2 * self.second_moment(sigma, Bx)

    def bound(self, Bx: float, delta: float) -> float:
        """Theorem 7's B_{w,⋆}⁴ = 32π (q³ ∨ 1) α² B_x^{2q} ‖β‖^{2p}/δ, with probability 1 − δ/2 (App. C.4)."""
        q = self.p - 2
        return 32.0 * pi * max(q**3, 1) * self.alpha**2 * Bx ** (2 * q) * float(self.beta @ self.beta) ** self.p / delta


def monomials(problem: RidgeMonomial | SparseParity) -> tuple[Monomial, ...]:
    """Return the monomials whose sum is the target; 2-XOR is x₁x₂ = ((x₁ + x₂)² − (x₁ − x₂)²)/4.

    >>> [(term.alpha, term.beta.tolist(), term.p) for term in monomials(SparseParity(3))]
    [(0.25, [1.0, 1.0, 0.0], 2), (-0.25, [1.0, -1.0, 0.0], 2)]
    """
    if isinstance(problem, RidgeMonomial):
        return (Monomial(problem.alpha, problem.direction, problem.degree),)
    if problem.k != 2 or not (isinstance(problem.inputs, str) and problem.inputs == "hypercube"):
        instead = "Pass SparseParity(d, k=2), or monomials of your own."
        raise NoTheorem.of("The construction", "a sum of monomials: 2-XOR on the hypercube", problem, instead)
    first, second = np.eye(problem.d)[:2]
    return Monomial(0.25, first + second, 2), Monomial(-0.25, first - second, 2)


def feature_coefficient(sigma: Activation, q: int) -> float:
    """c_q(σ″) = E[σ″(g) he_q(g)] = √((q+1)(q+2)) E[σ(g) he_{q+2}(g)]; refuse a power that σ″ does not see.

    >>> print(f"{feature_coefficient(Activation('relu3'), 2)**2:.6f} {1 / (4 * np.pi):.6f}")
    0.079577 0.079577
    >>> feature_coefficient(Activation("relu3"), 3)
    Traceback (most recent call last):
    lazyscope.errors.NoTheorem: Theorem 7 of Bai & Lee (2019) assumes that σ″ has a Hermite component of degree p − 2 \
(for relu3: p − 2 ∈ {0, 1, 2, 4, 6, …}). Got p − 2 = 3 for relu3 instead. Choose another power, or another σ.
    """
    require_smooth(sigma, 2)
    if q + 2 > MAX_DEGREE:
        raise InvalidParameter.of("Monomial", "p", f"be at most {MAX_DEGREE}", q + 2)
    c = sigma.hermite_coefficients(1.0, max(q, 30) + 2)
    seen = np.sqrt((np.arange(len(c) - 2) + 1.0) * (np.arange(len(c) - 2) + 2.0)) * c[2:]
    if abs(seen[q]) <= _NOTHING * float(np.linalg.norm(seen)):
        raise NoTheorem.of(
            "Theorem 7 of Bai & Lee (2019)",
            "that σ″ has a Hermite component of degree p − 2 (for relu3: p − 2 ∈ {0, 1, 2, 4, 6, …})",
            f"p − 2 = {q} for {sigma.name}",
            "Choose another power, or another σ.",
        )
    return float(seen[q])


def express(model: TaylorModel, terms: Sequence[Monomial], rng: np.random.Generator) -> FloatArray:
    """Return W⋆, (m, d), with f^Q_{W⋆} ≈ the sum of the monomials: the error falls like m^{−1/2}.

    `rng` draws the signs of the second monomial, the third, …; a single one needs none.

    >>> model = TaylorModel.symmetric(20_000, 3, "relu3", np.random.default_rng(0), Bx=3**0.5)
    >>> X = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0]])
    >>> W = express(model, monomials(SparseParity(3)), np.random.default_rng(1))
    >>> model.piece(2, W, X).round(1)
    array([ 1., -1.])
    """
    half = model.m // 2
    first, second = model.W0[:half], model.W0[half:]
    if model.m % 2 or not (np.all(model.a[:half] == 1) and np.all(model.a[half:] == -1) and np.all(first == second)):
        must = "have the symmetric initialisation of Eq. 3"
        raise InvalidParameter.of("express", "model", must, "another one", "Use TaylorModel.symmetric.")
    W = np.zeros(model.W0.shape)
    for number, term in enumerate(terms):
        if len(term.beta) != model.d:
            raise InvalidParameter.of("express", "terms", f"have β of length d = {model.d}", len(term.beta))
        a = _coefficients(model, term)
        roots = 2.0 * model.m**-0.25 * np.sqrt(np.concatenate([np.maximum(a, 0.0), np.maximum(-a, 0.0)]))
        moved = roots[:, None] * term.beta
        W += flipped(moved, random_signs(model.m, rng)) if number else moved
    return W


def _coefficients(model: TaylorModel, term: Monomial) -> FloatArray:
    """Return a(w_{0,r}) for r ≤ m/2."""
    q, length = term.p - 2, float(np.linalg.norm(term.beta))
    v = np.asarray(model.W0[: model.m // 2] @ term.beta, dtype=np.float64) * (model.Bx / length)
    polynomial = hermite_functions(v, q)[q] / root_density(v)
    scale = term.alpha * (model.Bx * length) ** q / feature_coefficient(model.sigma, q)
    return np.asarray(scale * polynomial)


def expected_norm(terms: Sequence[Monomial], sigma: Activation, Bx: float) -> float:
    """Return E‖W⋆‖⁴_{2,4}: for a sum the sum where no neuron serves two, else the bound (Σ_j (E‖W_j‖⁴)^{1/4})⁴.

    For p = 2 the a(w₀) are constants, and a monomial has the neurons of one half alone.

    >>> print(f"{expected_norm(monomials(SparseParity(4)), Activation('relu3'), 2.0) / np.pi:.6f}")
    8.000000
    """
    norms = [term.expected_norm(sigma, Bx) for term in terms]
    if all(term.p == 2 for term in terms) and len({np.sign(term.alpha) for term in terms}) == len(terms):
        return sum(norms)
    return sum(sqrt(sqrt(norm)) for norm in norms) ** 4


def norm_bound(terms: Sequence[Monomial], Bx: float, delta: float) -> float:
    """Return Theorem 7's bound on ‖W⋆‖⁴_{2,4}, of a sum by the triangle inequality, δ shared evenly."""
    return sum(sqrt(sqrt(term.bound(Bx, delta / len(terms)))) for term in terms) ** 4


def neuron_length(problem: SparseParity | RidgeMonomial, sigma: Activation, m: int) -> float:
    """Return ‖w‖ at which m/2 neurons of one sign, all alike, have the target's size: (√m/2) E σ(‖w‖g) = rms of f⋆."""
    g, weights = gaussian_nodes(sigma.kinks, 1.0, 4)
    mean = float(np.sum(weights * sigma(g) * root_density(g)))
    size = 1.0
    if isinstance(problem, RidgeMonomial):
        moments = np.sum(weights * (g * np.linalg.norm(problem.direction)) ** (2 * problem.degree) * root_density(g))
        size = abs(problem.alpha) * sqrt(float(moments))
    degree = sigma.degree
    assert degree is not None
    return float((2.0 * size / (sqrt(m) * mean)) ** (1.0 / degree))

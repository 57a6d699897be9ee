"""Functions of several directions: their series, energies, information exponents and leaps; what is refused."""

from itertools import permutations

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.problems import links


def he(k, z):
    """He_k, not normalised."""
    return np.polynomial.hermite_e.hermeval(z, np.eye(1, k + 1, k)[0])


# Function of the columns of z, indices, information exponent, leap. Leaps: Abbe, Boix-Adserà and Misiakiewicz 2023
# (and, for the multilinear ones, their paper of 2022 on the merged staircase), exponents: Ben Arous et al. 2021.
KNOWN = {
    "z1 + z1z2": (lambda z: z[0] + z[0] * z[1], 2, 1, 1),
    "z1 + z1z2 + z1z2z3": (lambda z: z[0] + z[0] * z[1] + z[0] * z[1] * z[2], 3, 1, 1),
    "the staircase of four": (lambda z: np.cumprod(z, axis=0).sum(axis=0), 4, 1, 1),
    "z1z2": (lambda z: z[0] * z[1], 2, 2, 2),
    "z1z2z3": (lambda z: z[0] * z[1] * z[2], 3, 3, 3),
    "z1z2z3z4": (lambda z: z[0] * z[1] * z[2] * z[3], 4, 4, 4),
    "z1 + z1z2z3": (lambda z: z[0] + z[0] * z[1] * z[2], 3, 1, 2),
    "z1 + z1z2z3z4": (lambda z: z[0] + z[0] * z[1] * z[2] * z[3], 4, 1, 3),
    "z1 + z2 + z1z2": (lambda z: z[0] + z[1] + z[0] * z[1], 2, 1, 1),
    "z1 + z2 + z3 + z1z2z3": (lambda z: z[0] + z[1] + z[2] + z[0] * z[1] * z[2], 3, 1, 1),
    "z1 + z1z2 + z2z3 + z3z4": (lambda z: z[0] + z[0] * z[1] + z[1] * z[2] + z[2] * z[3], 4, 1, 1),
    "z1 + z2z3": (lambda z: z[0] + z[1] * z[2], 3, 1, 2),
    "z1 + z2z3z4": (lambda z: z[0] + z[1] * z[2] * z[3], 4, 1, 3),
    "z1z2 + z1z3 + z2z3": (lambda z: z[0] * z[1] + z[0] * z[2] + z[1] * z[2], 3, 2, 2),
    "z1z2 + z1z2z3": (lambda z: z[0] * z[1] * (1 + z[2]), 3, 2, 2),
    "z1z2 + z3z4": (lambda z: z[0] * z[1] + z[2] * z[3], 4, 2, 2),
    "z1z2 + z1z2z3z4": (lambda z: z[0] * z[1] * (1 + z[2] * z[3]), 4, 2, 2),
    "z1 + z1z2 + z1z2z3z4": (lambda z: z[0] * (1 + z[1] + z[1] * z[2] * z[3]), 4, 1, 2),
    "He2(z1) + He2(z2)": (lambda z: he(2, z[0]) + he(2, z[1]), 2, 2, 2),
    "z1 + He2(z2)": (lambda z: z[0] + he(2, z[1]), 2, 1, 2),
    "z1 + z1He2(z2)": (lambda z: z[0] + z[0] * he(2, z[1]), 2, 1, 2),
    "z1 + z1He3(z2)": (lambda z: z[0] + z[0] * he(3, z[1]), 2, 1, 3),
    "z1 + z1z2 + He4(z2)": (lambda z: z[0] + z[0] * z[1] + he(4, z[1]), 2, 1, 1),
    "He3(z1) + He3(z1)z2": (lambda z: he(3, z[0]) * (1 + z[1]), 2, 3, 3),
    "He2(z1) + z1z2": (lambda z: he(2, z[0]) + z[0] * z[1], 2, 2, 2),
    "He2(z1)He2(z2)": (lambda z: he(2, z[0]) * he(2, z[1]), 2, 4, 4),
    "He3(z1) + z2": (lambda z: he(3, z[0]) + z[1], 2, 1, 3),
    "|z1| + |z2|": (lambda z: np.abs(z[0]) + np.abs(z[1]), 2, 2, 2),
    "sign(z1z2)": (lambda z: np.sign(z[0] * z[1]), 2, 2, 2),
    "sign(z1z2z3)": (lambda z: np.sign(z[0] * z[1] * z[2]), 3, 3, 3),
    "max(z1, 0) z2": (lambda z: np.maximum(z[0], 0.0) * z[1], 2, 1, 1),
    "tanh(z1) + z1 tanh(z2)²": (lambda z: np.tanh(z[0]) + z[0] * np.tanh(z[1]) ** 2, 2, 1, 2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_information_exponents_and_leaps_of_the_literature(name):
    function, r, exponent, leap = KNOWN[name]
    target = ls.MultiIndex(9, lambda Z: function(Z.T), indices=r)
    assert (target.information_exponent, target.leap) == (exponent, leap)
    assert f"leap {leap}" in str(target)


def test_the_greedy_order_is_the_best_of_all():
    """The definition itself, a minimum over all orders, on random monomials."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        powers = np.unique(rng.integers(0, 3, (rng.integers(1, 6), 4)), axis=0)
        powers = powers[powers.sum(axis=1) > 0]
        if not len(powers):
            continue
        costs = []
        for order in permutations(powers.tolist()):
            known, largest = set(), 0
            for power in order:
                largest = max(largest, sum(p for i, p in enumerate(power) if i not in known))
                known |= {i for i, p in enumerate(power) if p}
            costs.append(largest)
        assert links.leap(powers) == min(costs)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("product", lambda Z: np.prod(Z, axis=1)),
        ("staircase", lambda Z: Z[:, 0] + Z[:, 0] * Z[:, 1] + np.prod(Z, axis=1)),
        ("committee-square", lambda Z: np.sum(Z**2, axis=1)),
        ("committee-relu", lambda Z: np.sum(np.maximum(Z, 0.0), axis=1)),
        ("committee-erf2", lambda Z: ls.Activation("erf2")(Z).sum(axis=1)),
    ],
)
def test_named_links_are_their_functions(name, function):
    """The series of a name, exact, against that of the same callable by quadrature; and both as functions."""
    named, called = ls.MultiIndex(7, name, indices=3), ls.MultiIndex(7, function, indices=3)
    assert called.mean == pytest.approx(named.mean, abs=1e-9)
    assert called.energy == pytest.approx(named.energy, rel=1e-7)
    np.testing.assert_allclose(
        called.energies[:5], np.pad(named.energies, (0, 5))[: called.energies[:5].size], atol=1e-7
    )
    np.testing.assert_allclose(called.curvature, named.curvature, atol=1e-7)
    Z = np.random.default_rng(0).standard_normal((6, 3))
    np.testing.assert_allclose(called.h(Z), named.h(Z), atol=1e-9)
    assert named.h(Z.astype(np.float32)).dtype == np.float32


def test_a_committee_of_one_is_a_neuron():
    for name, alone in (("committee-relu", "relu"), ("product", "he1"), ("staircase", "he1")):
        one, other = ls.MultiIndex(5, name), ls.MultiIndex(5, alone)
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
        assert str(one) == str(other)


def test_a_product_of_two_is_a_quadratic_target_to_sgd_and_to_limits():
    """z₁z₂ = ⟨x, Bx⟩ with B of rank two; NT learns of it what it learns of any quadratic target, RF nothing."""
    problem = ls.MultiIndex(40, "product", indices=2)
    assert float(ls.limit(problem, ls.NeuralTangent(), rho=0.5).risk) == 0.25
    assert float(ls.limit(problem, ls.RandomFeatures("erf"), rho=0.5).risk) == 1.0
    small = ls.MultiIndex(6, "product", indices=2, direction=np.eye(6)[[3, 1]], noise=0.1)
    protocol = ls.SGD(steps=6000, batch=20, step_sizes=(0.02,), test=20_000)
    found = ls.simulate(small, ls.Trained(), width=4, protocol=protocol)
    assert float(found.trace[-1]) == pytest.approx(float(found.tested), abs=0.02)  # a closed form against samples
    assert float(found.risk) < 0.1


def test_directions_are_where_they_are_said_to_be():
    """Labels are drawn in a basis whose first axes are the directions: weights follow them there."""
    from lazyscope.training.sgd.stream import draw, law_of

    u = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 2)))[0].T
    problem = ls.MultiIndex(5, "product", direction=u, indices=2)
    law = law_of(problem)
    np.testing.assert_allclose(law.see(u), np.eye(2, 5), atol=1e-12)
    np.testing.assert_allclose(law.see(np.eye(5)) @ law.see(np.eye(5)).T, np.eye(5), atol=1e-12)
    X, y = draw(law, 100, np.random.default_rng(0))
    np.testing.assert_allclose(y, X[:, 0] * X[:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"d": 1}, "at most d = 1"),
        ({"indices": 0}, "indices"),
        ({"link": "relu"}, "committee-relu"),
        ({"link": "committee-nothing"}, "committee-erf"),
        ({"link": lambda Z: 0.0 * Z[:, 0] + 2.0}, "constant"),
        ({"link": lambda Z: np.exp(np.sum(Z**2, axis=1))}, "finite moments"),
        ({"link": lambda Z: 1.0 / np.abs(Z[:, 0] * Z[:, 1])}, "finite moments"),
        ({"link": lambda Z: np.sign(Z[:, 0] + 0.3 * Z[:, 1])}, "smooth"),
        ({"link": lambda Z: Z}, "one finite number"),
        ({"link": lambda Z: Z[:, 0], "indices": 5, "d": 9}, "named ones"),
        ({"direction": [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]}, "cosine of 1"),
        ({"direction": [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]}, "length 2"),
        ({"direction": [1.0, 0.0, 0.0]}, "2 orthonormal rows"),
    ],
)
def test_what_is_no_function_of_two_directions_is_refused(arguments, word):
    with pytest.raises(ls.InvalidParameter, match=word) as caught:
        ls.MultiIndex(**{"d": 3, "link": "product", "indices": 2, **arguments})
    assert "\n" not in str(caught.value)

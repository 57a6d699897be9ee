"""The tangent model at n ~ d: the checked numbers, the formula at given d on its way there, simulations, refusals."""

import numpy as np
import pytest

import lazyscope as ls

INF = float("inf")
TARGET = ls.LinearTarget(noise=0.5)


@pytest.mark.parametrize(
    ("name", "psi2", "ridge", "risk"),
    [("relu", 2, 0, 0.2589), ("relu", 1, 0.05, 0.5155), ("tanh", 2, 0, 0.1755), ("tanh", 1, 0.05, 0.4029),
     ("relu", 2, 0.05, 0.2849)],
)  # fmt: skip
def test_the_numbers_that_simulations_confirmed(name, psi2, ridge, risk):
    found = ls.limit(TARGET, ls.NeuralTangent(name), psi2=psi2, ridge=ridge)
    assert float(found.risk) == pytest.approx(risk, abs=5e-5)
    assert float(found.risk) == pytest.approx(float(found.bias + found.variance), rel=1e-14)


@pytest.mark.parametrize("name", ["relu", "tanh"])
@pytest.mark.parametrize(("psi2", "ridge"), [(2.0, 0.0), (0.5, 0.05), (5.0, 1.0)])
def test_given_sizes_approach_it_like_one_over_d(name, psi2, ridge):
    """The second route: kernel ridge regression at given d, whose spectrum knows nothing of this limit."""
    regime = ls.NeuralTangent(name)
    d = np.array([100, 1000, 10_000, 100_000])
    theory = ls.limit(TARGET, regime, psi2=psi2, ridge=ridge)
    for part in ("bias", "variance", "train"):  # of opposite signs, the first two: their sum may start at 1/d²
        finite = [
            float(
                ls.limit(ls.HarmonicTarget(k, [0.0, 1.0], noise=0.5), regime, width=INF, samples=psi2 * k, ridge=ridge)[
                    part
                ]
            )
            for k in d.tolist()
        ]
        away = np.abs(np.array(finite) - float(theory[part]))
        if part == "train" and ridge == 0.0:
            assert np.all(away == 0.0)
            continue
        slope = np.polyfit(np.log(d[1:]), np.log(away[1:]), 1)[0]  # at d = 100 terms in 1/d² are 1 % of those in 1/d
        assert slope == pytest.approx(-1.0, abs=0.02) and away[-1] < 1e-4


def test_simulations_of_wide_networks_agree():
    """d = 60, N = 20 d: n/(Nd) = 1/600, so that the width counts for less than the standard error."""
    for name, psi2, ridge in (("relu", 2.0, 0.0), ("tanh", 1.0, 0.05)):
        regime, d = ls.NeuralTangent(name), 60
        simulated = ls.simulate(TARGET, regime, width=20 * d, samples=int(psi2 * d), d=d, ridge=ridge, draws=16)
        theory = float(ls.limit(TARGET, regime, psi2=psi2, ridge=ridge).risk)
        assert abs(float(simulated.risk) - theory) < 4.0 * float(simulated.stderr)


def test_compare_holds_the_two_together():
    found = ls.compare(TARGET, ls.NeuralTangent("relu"), width=400, samples=60, d=30, ridge=0.1, draws=6)
    assert bool((found.z < 4).all())


def test_a_large_ridge_learns_nothing_and_many_samples_everything():
    found = ls.limit(TARGET, ls.NeuralTangent("relu"), psi2=[1e-9, 1.0, 1e9, INF], ridge=[0.0, 1e-12, 1.0, 1e12])
    assert np.all(np.isfinite(found.risk)) and float(found.residual.max()) < 1e-12
    assert np.allclose(found.risk[0], 1.0, atol=1e-8) and np.allclose(found.risk[:3, 3], 1.0, atol=1e-3)
    assert np.all(found.risk[3] == 0.0) and np.all(found.train[3] == 0.25)


def test_what_the_theorem_does_not_cover_is_refused():
    relu = ls.NeuralTangent("relu")
    for problem, regime, match in (
        (ls.LinearTarget(nonlinear=0.5), relu, "F⋆ = 0"),
        (ls.LinearTarget(inputs="gaussian"), relu, "on the sphere"),
        (ls.LinearTarget(), ls.NeuralTangent("square"), "Eσ′"),
        (ls.LinearTarget(), ls.NeuralTangent("relu", weights=np.arange(1.0, 4.0)), "weights uniform"),
    ):
        with pytest.raises(ls.NoTheorem, match=match):
            ls.limit(problem, regime, psi2=2, ridge=0)
    with pytest.raises(ls.InvalidParameter, match="psi1 parameter of limit must be left out"):
        ls.limit(ls.LinearTarget(), relu, psi1=2, psi2=2, ridge=0)
    with pytest.raises(ls.NoTheorem, match="F⋆ = 0"):
        ls.simulate(ls.LinearTarget(nonlinear=0.5), relu, width=5, samples=5, d=5, ridge=0)

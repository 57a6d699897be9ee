"""The functions of a pool: identities, leave-one-out by refitting, and the truth where the spectrum is known."""

import numpy as np
import pytest

from lazyscope.lenses.forecast import curve, extrapolate, pool
from lazyscope.lenses.forecast.chance import ends
from lazyscope.lenses.forecast.curve import Functions
from lazyscope.lenses.forecast.misfit import misfit
from lazyscope.limits.spectral.equivalent import Spectrum, risks

D = 900
XI = np.arange(1, D + 1.0) ** -1.3
ENERGY = np.arange(1, D + 1.0) ** -1.8


def known(t, xi, energy, noise):
    """The functions of a population with a known spectrum, written out as sums."""
    kappa = np.exp(t)
    missed = kappa / (xi[:, None] + kappa)
    df1, gap = np.sum(1.0 - missed, axis=0), np.sum(missed * (1.0 - missed), axis=0)
    G = energy @ missed**2 + noise**2
    return Functions.through(t, kappa, df1, gap, G[None, None], (energy @ missed + noise**2)[None, None])


def gaussian(P, seed, noise=0.0, targets=8):
    """A pool of Gaussian features with that spectrum, several targets of the same energies and random signs."""
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((P, D))
    beta = np.sqrt(ENERGY)[:, None] * rng.choice([-1.0, 1.0], (D, targets))
    X = phi * np.sqrt(XI)
    return X @ X.T, phi @ beta + noise * rng.standard_normal((P, targets))


def test_the_formula_is_that_of_the_deterministic_equivalents():
    n, N = np.array([20.0, 100.0, 400.0])[:, None, None], np.array([30.0, 100.0, 1000.0, np.inf])[:, None]
    ridge = np.array([1e-3, 0.1, 3.0])
    found = curve.errors(known(np.linspace(-16.0, 10.0, 300), XI, ENERGY, 0.3), n, N, ridge)
    truth = risks(Spectrum(XI, np.ones(D), ENERGY), 0.3, N, n, ridge)
    assert np.allclose(found.risk[0, 0], truth["risk"] + 0.09, rtol=2e-5)  # splines between nodes
    assert np.allclose(found.degrees_of_freedom, truth["degrees_of_freedom"], rtol=1e-5)
    assert np.max(found.residual) < 1e-8


def test_without_a_ridge_the_error_is_infinite_at_the_peak_and_finite_beside_it():
    functions = known(np.linspace(-16.0, 10.0, 300), XI, ENERGY, 0.0)
    found = curve.errors(functions, np.array(100.0), np.array([50.0, 100.0, 200.0, np.inf]), np.array(0.0)).risk[0, 0]
    truth = risks(
        Spectrum(XI, np.ones(D), ENERGY), 0.0, np.array([50.0, 200.0, np.inf]), np.array(100.0), np.array(0.0)
    )
    assert found[1] > 1e3 and np.allclose(found[[0, 2, 3]], truth["risk"], rtol=1e-4)


def test_leave_one_out_is_what_refitting_gives():
    K, Y = gaussian(40, 1, targets=2)
    table = pool.pool(K.copy(), Y)
    at = len(table.kappa) // 2
    ridge = np.exp(table.log_ridge[at])
    errors = []
    for i in range(40):
        kept = np.arange(40) != i
        a = np.linalg.solve(K[np.ix_(kept, kept)] + ridge * np.eye(39), Y[kept])
        errors.append(Y[i] - K[i, kept] @ a)
    df2 = table.df1[at] - table.gap[at]
    assert np.allclose(np.mean(np.square(errors), axis=0) * (40 - df2) / 40, table.G[0, :, at], rtol=1e-8)


def test_the_tables_obey_their_identities():
    table = pool.pool(*gaussian(60, 2, targets=1))
    x = np.log(table.kappa)
    inner = slice(30, -30)
    assert np.allclose(-np.gradient(table.df1, x)[inner], table.gap[inner], rtol=2e-2)  # κ df₁′ = −(df₁ − df₂)
    assert np.allclose(np.gradient(table.M[0, 0], x)[inner], (table.M - table.G)[0, 0, inner], rtol=0.1, atol=1e-3)
    assert np.allclose(table.df1 + np.exp(table.log_ridge) / table.kappa, 60.0, rtol=1e-9)
    assert np.all(np.diff(table.kappa) > 0) and np.all(np.diff(table.df1) < 0)


def distance(P, seed, noise):
    """Root-mean-square relative distance of the forecast, mean over targets, from the truth."""
    n, N = P * np.array([0.1, 0.4, 1.0])[:, None, None], np.array([50.0, 400.0, np.inf])[:, None]
    ridge = np.array([1e-2, 1.0])
    functions = Functions.of(pool.pool(*gaussian(P, seed, noise, targets=24)))
    truth = risks(Spectrum(XI, np.ones(D), ENERGY), noise, N, n, ridge)["risk"] + noise**2
    return float(np.sqrt(np.mean((curve.errors(functions, n, N, ridge).risk[0].mean(axis=0) / truth - 1.0) ** 2)))


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_pool_of_gaussian_features_tells_the_truth_and_more_rows_tell_it_better(noise):
    few, many = (np.mean([distance(P, seed, noise) for seed in range(4)]) for P in (60, 480))
    assert many < 0.03
    assert many < 0.6 * few  # P^−½ would be 0.35


def test_the_jackknife_knows_the_spread_over_pools():
    sizes = np.array(60.0), np.array(np.inf), np.array(0.1)
    found = [curve.errors(Functions.of(pool.pool(*gaussian(80, s, 0.3, 1))), *sizes).risk[:, 0] for s in range(60)]
    spread = np.std([np.log(risk[0]) for risk in found])
    told = np.sqrt(np.mean([curve.spread(risk[:, None])[0] ** 2 for risk in found]))
    assert 0.7 < told / spread < 1.4  # 60 pools know a spread to a tenth


def long_rows(P, seed, stretch):
    """Rows of unequal length, the kernel ⟨x, x′⟩ + ⟨x, x′⟩² and a target that is quadratic."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((P, 12)) * np.exp(stretch * rng.standard_normal(P))[:, None]
    linear = X @ X.T / 12.0
    return linear + linear**2, (X[:, 0] + X[:, 1] * X[:, 2])[:, None]


def joined(stretch):
    """What rows that are unlike add to the band of n = P/4 without a ridge: the mean over pools."""
    found = []
    for seed in range(6):
        K, Y = long_rows(200, seed, stretch)
        parts, diagonal = extrapolate.rehearsed(K, Y), float(np.mean(np.diagonal(K)))
        own = Functions.of(pool.pool(K, Y))
        known = misfit(parts, own, 200, diagonal, np.var(Y, axis=0))
        sizes = np.array(50.0), np.array(np.inf), np.array(1e-6 * diagonal)
        df1 = curve.errors(own, *sizes).degrees_of_freedom
        found.append(float(known.at(df1, sizes[0], sizes[1], 200.0)))
        assert known.at(df1, np.array(200.0), sizes[1], 200.0) == 0.0  # leave-one-out itself
    return float(np.mean(found))


def test_rows_that_are_not_alike_widen_the_band():
    assert joined(0.8) > 2.0 * joined(0.0)


def test_noise_that_is_seen_ends_the_fall():
    """Beyond the rows: G of a floor that the table shows is continued to the floor, and that of a power law falls."""
    x = np.linspace(0.0, 6.0, 24)
    below = np.array([-6.0])
    rng = np.random.default_rng(0)
    for floor, expected in ((0.6, np.log(0.6 + 0.4 * np.exp(-6.0))), (0.0, -6.0)):
        exact = np.log(floor + (1.0 - floor) * np.exp(x))
        copies = exact + np.concatenate([np.zeros((1, 24)), 1e-3 * rng.standard_normal((20, 24))])
        mean, spread = extrapolate._averaged(x, copies[:, None], below)
        assert abs(mean[0, 0, 0] - expected) < 3.0 * spread[0, 0] + 0.1


def test_chance_is_the_covariance_of_many_targets_of_noise():
    """The second route: 2,000 targets of pure noise on one pool, whatever their law."""
    rng = np.random.default_rng(0)
    K, _ = gaussian(150, 3)
    for Y in (rng.standard_normal((150, 2000)), rng.choice([-1.0, 1.0], (150, 2000))):
        table = pool.pool(K.copy(), Y)
        nodes = [int(np.argmin(np.abs(table.df1 - df1))) for df1 in (2.0, 10.0, 30.0, 75.0)]
        seen = np.log(table.G[0][:, nodes] / table.G[0][:, -1:])
        told = table.chance[np.ix_(nodes, nodes)]
        assert np.allclose(np.cov(seen.T) / told, 1.0, atol=0.15)  # three times √(2/2000) of a variance, log adds 5 %


def test_noise_learns_nothing_and_a_signal_is_seen_to_end():
    """Sixteen targets of noise; one of four linear directions, learnt with df₁ = 5; one that goes on for ever."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    K = X @ X.T + 1.0 + np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=-1))
    linear = X @ np.ones((4, 16)) / 2.0 + 0.5 * rng.standard_normal((300, 16))
    table = pool.pool(K, np.hstack([rng.standard_normal((300, 16)), linear]))
    first = int(np.argmax(table.df1 < 150.0))
    nodes, weights = ends(table, first)
    nothing, never = weights[0, :, 0], weights[0, :, -1]
    assert np.allclose(weights.sum(axis=-1), 1.0) and nodes[-1] == first and np.all(np.diff(table.df1[nodes]) > 0.0)
    assert np.mean(nothing[:16]) > 0.5 and np.max(nothing[16:]) < 1e-6  # beforehand: ½
    assert np.mean(never[16:]) < 0.25  # beforehand: ¼
    K, Y = gaussian(300, 4, targets=16)
    table = pool.pool(K, Y)
    _, weights = ends(table, int(np.argmax(table.df1 < 150.0)))
    assert np.median(weights[0, :, -1]) > 0.9


def test_equal_eigenvalues_leave_nothing_to_chance():
    y = np.random.default_rng(2).standard_normal((100, 1))
    table = pool.pool(np.eye(100), y)
    assert np.allclose(table.chance, 0.0, atol=1e-15)
    functions = extrapolate.continued(table, 400.0)
    found, _ = functions.errors(Functions.of(table), np.array(400.0), np.array(np.inf), np.array([1.0, 100.0]))
    assert np.all(np.isfinite(found.risk)) and np.all(found.risk[0] >= 0.99 * np.mean(y**2))


def test_a_kernel_that_is_not_positive_is_refused():
    from lazyscope.errors import InvalidParameter

    for K, words in (
        (-np.eye(30), "positive"),
        (np.zeros((30, 30)), "not zero"),
        (np.triu(np.ones((30, 30))), "symmetric"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            pool.decompose(K)

"""Mean field: particles, their gradient, convexity along mixtures, and the minimum over measures with its gap."""

from importlib import import_module

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.wide.mean_field import ParticlesDraw, mean_field
from lazyscope.regimes import MeanField
from lazyscope.training.mean_field.conditional_gradient import best_atom, best_masses, minimise
from lazyscope.training.mean_field.particles import Descent, Particles, Sample, descend

TARGET = ls.QuadraticTarget([2.0, 1.0, 0.5, 0.25])
MIXTURE = ls.GaussianMixture([0.8, 0.5, -0.6])


def on_ball(m, bound):
    """Project on Σ|m_i| ≤ bound: soft thresholding."""
    size = np.abs(m)
    if size.sum() <= bound:
        return m
    falling = np.sort(size)[::-1]
    levels = (np.cumsum(falling) - bound) / np.arange(1, size.size + 1)
    return np.sign(m) * np.maximum(size - levels[np.flatnonzero(falling > levels)[-1]], 0.0)


@pytest.mark.parametrize("problem", [TARGET, MIXTURE])
def test_samples_are_centred_and_scaled(problem):
    sample = Sample.of(problem, 500, 3, 0)
    assert sample.X.shape == (500, problem.d)
    assert abs(float(sample.y.mean())) < 1e-6 and np.mean(sample.y.astype(float) ** 2) == pytest.approx(1.0, abs=1e-5)
    again = Sample.of(problem, 500, 3, 0)
    assert np.array_equal(sample.X, again.X) and np.array_equal(sample.y, again.y)


@pytest.mark.parametrize("name", ["relu", "tanh", "square"])
@pytest.mark.parametrize("n", [101, 2500])  # halves of less than a block; of one and a part
def test_a_step_follows_the_gradient(name, n):
    """Against finite differences, in float64, of the mean squared error; each gradient is multiplied by N."""
    sigma, rng, N = ls.Activation(name), np.random.default_rng(0), 5
    sample = Sample.of(TARGET, n, 0, 0)
    rho = Particles.start(4, N, rng)
    rho.a[:] = rng.uniform(-0.5, 0.5, N)
    rho.W *= np.float32(0.5)  # inside the ball: nothing is projected
    rho.c = np.float32(0.1)
    X, y = sample.X.astype(float), sample.y.astype(float)

    def risk(a, W, c):
        return np.mean((y - sigma(X @ W) @ a / N - c) ** 2)

    a, W, c = rho.a.astype(float), rho.W.astype(float), float(rho.c)
    h, rate = 1e-5, 1e-3
    grad_a = [(risk(a + h * e, W, c) - risk(a - h * e, W, c)) / (2 * h) for e in np.eye(N)]
    grad_W = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        bump = np.zeros_like(W)
        bump[index] = h
        grad_W[index] = (risk(a, W + bump, c) - risk(a, W - bump, c)) / (2 * h)
    grad_c = (risk(a, W, c + h) - risk(a, W, c - h)) / (2 * h)
    assert Descent(sample, sigma, rho).step(rate, bound=10.0) == pytest.approx(risk(a, W, c), rel=1e-5)
    assert np.allclose((a - rho.a) / rate, N * np.array(grad_a), atol=2e-3)
    assert np.allclose((W - rho.W) / rate, N * grad_W, atol=2e-3)
    assert (c - float(rho.c)) / rate == pytest.approx(grad_c, abs=2e-3)


def test_compiled_and_plain_arithmetic_agree():
    """ReLU has a loop of its own; a callable of the same values takes the general path."""
    sample = Sample.of(MIXTURE, 600, 0, 0)
    ends = []
    for sigma in ("relu", ls.Activation(lambda u: np.maximum(u, 0.0), kinks=(0.0,))):
        rho, risks = descend(sample, MeanField(sigma), 7, bound=2.0, steps=40, rng=np.random.default_rng(5), rate=0.05)
        ends.append((rho.W, risks))
    assert np.allclose(ends[0][1], ends[1][1], rtol=1e-4) and np.allclose(ends[0][0], ends[1][0], atol=1e-3)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_two_threads_make_the_same_steps_bit_for_bit(name, monkeypatch):
    ends = []
    for worth in (0, 10**12):
        monkeypatch.setattr(import_module("lazyscope.training.mean_field.particles"), "_WORTH_A_THREAD", worth)
        rho = Particles.start(4, 6, np.random.default_rng(1))
        descent = Descent(Sample.of(TARGET, 2500, 0, 0), ls.Activation(name), rho)
        assert (descent.threads is None) == (worth > 0)
        risks = [descent.step(0.05, bound=2.0) for _ in range(20)]
        ends.append((risks, rho.W.copy(), rho.a.copy()))
    assert ends[0][0] == ends[1][0]
    assert np.array_equal(ends[0][1], ends[1][1]) and np.array_equal(ends[0][2], ends[1][2])


def test_descent_goes_down_and_stays_in_its_set():
    rho, risks = descend(
        Sample.of(TARGET, 300, 0, 0), MeanField(), 10, bound=1.5, steps=300, rng=np.random.default_rng(0)
    )
    assert risks[0] == pytest.approx(1.0, abs=1e-5) and np.all(np.diff(risks) < 2e-6)
    assert np.all(np.abs(rho.a) <= 1.5) and np.all(np.linalg.norm(rho.W, axis=0) <= 1.0 + 1e-5)


def test_the_risk_is_convex_in_the_measure_and_not_in_the_weights():
    sigma, sample = ls.Activation("relu"), Sample.of(TARGET, 300, 0, 0)
    first, second = (
        descend(sample, MeanField(), 6, bound=4.0, steps=200, rng=np.random.default_rng(k))[0] for k in (0, 1)
    )
    X, y = sample.X.astype(float), sample.y.astype(float)

    def risk(masses, W, c):
        return np.mean((y - sigma(X @ W) @ masses - c) ** 2)

    f = [sigma(X @ one.W.astype(float)) @ one.a.astype(float) / 6 + float(one.c) for one in (first, second)]
    for t in np.linspace(0.0, 1.0, 5):
        chord = (1 - t) * risk(*first.mixed(second, 0.0)) + t * risk(*first.mixed(second, 1.0))
        slack = chord - risk(*first.mixed(second, t))
        assert slack == pytest.approx(t * (1 - t) * np.mean((f[0] - f[1]) ** 2), abs=1e-9)
    report = mean_field(TARGET, particles=[6], samples=300, steps=300, atoms=5, draws=1)
    assert float(report.convexity) >= 0.0 and float(report.bump) > 0.01


def projected_gradient(X, y, bound, steps=3000):
    """min over ‖G‖_* ≤ bound of the mean of (y − c − ⟨G, xxᵀ⟩)²: the measures' problem for σ = u², another way."""
    n, d = X.shape
    quadratic = np.einsum("ni,nj->nij", X, X).reshape(n, -1)
    quadratic = quadratic - quadratic.mean(axis=0)
    rate = 0.5 * n / np.linalg.eigvalsh(quadratic.T @ quadratic)[-1]
    G = np.zeros((d, d))
    for _ in range(steps):
        r = y - quadratic @ G.ravel()
        G = G + 2.0 * rate * (quadratic.T @ r / n).reshape(d, d)
        values, vectors = np.linalg.eigh(0.5 * (G + G.T))
        G = (vectors * on_ball(values, bound)) @ vectors.T
    return np.mean((y - quadratic @ G.ravel()) ** 2)


def test_the_minimum_over_measures_is_certified_for_the_square():
    sample, bound = Sample.of(TARGET, 200, 0, 0), 0.4
    end = minimise(
        sample, ls.Activation("square"), bound=bound, steps=100, rng=np.random.default_rng(0), tolerance=1e-9
    )
    true = projected_gradient(sample.X.astype(float), sample.y.astype(float), bound)
    assert end.certified and end.gap[-1] < 1e-6
    assert end.risk[-1] == pytest.approx(true, abs=1e-7)
    assert np.all(end.gap >= end.risk - true - 1e-9)  # at every step, not only in the end
    assert np.sum(np.abs(end.masses)) <= bound * (1.0 + 1e-9)


def test_large_samples_give_the_population_minimum():
    """On the population the eigenvalues of B are projected on the ℓ₁ ball; labels are scaled to mean square 1."""
    b = np.array([2.0, 1.0, 0.5, 0.25])
    sample = Sample.of(TARGET, 20_000, 0, 0)
    scaled, bound = b / np.sqrt(2.0 * b @ b), 0.6
    end = minimise(sample, ls.Activation("square"), bound=bound, steps=30, rng=np.random.default_rng(0), tolerance=1e-6)
    # squares of a quadratic form in Gaussians have a relative variance of at most 14: three standard errors
    tolerance = 3.0 * np.sqrt(14.0 / 20_000)
    assert end.risk[-1] == pytest.approx(2.0 * np.sum((scaled - on_ball(scaled, bound)) ** 2), rel=tolerance)


def test_no_particles_do_better_than_the_best_measure_that_was_found():
    work = {"activation": "relu", "bound": 3.0, "samples": 300, "seed": 1}
    least = ParticlesDraw(MIXTURE, 0, steps=60, **work).compute()
    best = min(ParticlesDraw(MIXTURE, N, steps=800, **work).compute()["risk"][-1] for N in (8, 30))
    assert best > least["risk"][-1] - least["gap"][-1]


def test_the_excess_falls_with_the_number_of_particles():
    found = mean_field(MIXTURE, particles=[2, 4, 8, 16, 32], samples=300, steps=800, atoms=60, bound=3.0, draws=2)
    excess = found.excess.values
    assert np.all(excess > 0.0) and excess[-1] < 0.25 * excess[0]
    assert -1.8 < float(found.exponent) < -0.4


def test_atoms_and_masses():
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((200, 3)), rng.standard_normal(200)
    sigma = ls.Activation("relu")
    w = best_atom(X, r, sigma, rng, np.zeros((3, 0)))
    grid = rng.standard_normal((3, 20_000))
    grid /= np.linalg.norm(grid, axis=0)
    assert np.linalg.norm(w) == pytest.approx(1.0)
    assert abs(r @ sigma(X @ w)) > 0.9999 * np.max(np.abs(r @ sigma(X @ grid)))
    A = rng.standard_normal((30, 6))
    gram, target = A.T @ A, rng.standard_normal(6) * 10
    m = best_masses(gram, target, 0.7, np.zeros(6))
    gradient = target - gram @ m
    assert np.sum(np.abs(m)) <= 0.7 + 1e-9
    assert 0.7 * np.max(np.abs(gradient)) - gradient @ m < 1e-6  # its own duality gap


BAD = {
    "sign": lambda: MeanField("sign"),
    "bound": lambda: mean_field(TARGET, bound=0.0),
    "particles": lambda: mean_field(TARGET, particles=[0, 4]),
    "samples": lambda: mean_field(TARGET, samples=0),
    "steps": lambda: mean_field(TARGET, steps=0),
    "problem": lambda: mean_field("quadratic"),
    "correlated inputs": lambda: mean_field(ls.GaussianMixture([0.1, 0.1], [1.0, 2.0]), particles=[2], draws=1),
    "rate": lambda: descend(
        Sample.of(TARGET, 50, 0, 0),
        MeanField("square"),
        3,
        bound=9.0,
        steps=300,
        rng=np.random.default_rng(0),
        rate=1e30,
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value) and 20 < len(str(caught.value)) < 600

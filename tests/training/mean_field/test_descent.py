"""The mean field through the verb: descent, samples and risks of every problem, each by a second route."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.training.mean_field.conditional_gradient import minimise
from lazyscope.training.mean_field.particles import Sample, descend
from lazyscope.training.sources import source_of
from lazyscope.weights import generator

D, N, SAMPLES = 5, 6, 400
SHORT = ls.ParticleDescent(steps=120, bound=3.0)
B = np.array([2.0, 1.0, 0.5, -0.5, 0.0])
DELTA = np.array([0.7, 0.5, -0.3, 0.2, 0.1])


def on_sphere(rng, n):
    X = rng.standard_normal((n, D))
    return X * (np.sqrt(D) / np.linalg.norm(X, axis=1))[:, None]


def quadratic(f, rng, n):
    X = rng.standard_normal((n, D))
    y = (X**2 - 1.0) @ B
    return (f(X) - y / np.sqrt(D)) ** 2 / (2.0 * B @ B / D)  # the target is divided by √d to be learned


def mixture(f, rng, n):
    y = rng.choice([-1.0, 1.0], n)
    X = rng.standard_normal((n, D)) * np.sqrt(1.0 - y[:, None] * DELTA)
    return (f(X) - y) ** 2


def linear(f, rng, n):
    X = on_sphere(rng, n)
    return (f(X) - 1.5 * X[:, 0]) ** 2


def wrong_labels(f, rng, n):
    X = rng.standard_normal((n, D))
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * X[:, 0])), 1.0, -1.0)
    return (f(X) * y <= 0.0).astype(float)


def parity(f, rng, n):
    X = rng.choice([-1.0, 1.0], (n, D))
    return 2.0 * (f(X) * X[:, 0] * X[:, 1] <= 0.0)


def monomial(f, rng, n):
    X = on_sphere(rng, n)
    y = (X.sum(axis=1) / np.sqrt(D)) ** 3
    sixth = 15.0 * D**3 / (D * (D + 2.0) * (D + 4.0))  # E t⁶ of one coordinate on the sphere of radius √d
    return (f(X) - y) ** 2 / sixth


# a problem, its dimension where that is open, and the loss of a predictor at fresh samples by the problem's definition
CASES = {
    "QuadraticTarget": (ls.QuadraticTarget(B), {}, quadratic),
    "GaussianMixture": (ls.GaussianMixture(DELTA), {}, mixture),
    "LinearTarget": (ls.LinearTarget(signal=1.5, noise=0.5), {"d": D}, linear),
    "LinearLabels": (ls.LinearLabels(3.0), {"d": D}, wrong_labels),
    "SparseParity": (ls.SparseParity(D, flip=0.1), {}, parity),
    "RidgeMonomial": (ls.RidgeMonomial(D, 3), {}, monomial),
}


@pytest.mark.parametrize(("problem", "size", "loss"), CASES.values(), ids=CASES)
def test_risks_are_what_the_problems_say_they_are(problem, size, loss):
    """The particles that the verb trained, rebuilt, on samples that are drawn here and scored by definition."""
    regime = ls.MeanField()
    result = ls.simulate(problem, regime, width=N, samples=SAMPLES, protocol=SHORT, seed=3, **size)
    rng = generator(3, 0, 0)
    X, y = source_of(problem, D, rng).labelled(SAMPLES, rng)
    mean, scale = y.mean(), y.std()
    sample = Sample(np.array(X, dtype=np.float32), ((y - mean) / scale).astype(np.float32))
    rho, path = descend(sample, regime, N, bound=3.0, steps=120, rng=generator(3, 0, N))

    def f(x):
        return mean + scale * (np.maximum(x @ rho.W, 0.0) @ rho.a / N + float(rho.c))

    assert float(result.train) == pytest.approx(path[-1], rel=1e-5)
    assert float(result.train) == pytest.approx(np.mean((f(X) - y) ** 2) / scale**2, rel=1e-3)
    losses = loss(f, np.random.default_rng(11), 200_000)
    # the verb tests on 10⁴ samples, of the same spread: three standard errors of both together
    tolerance = 3.0 * losses.std() * np.sqrt(1.0 / 10_000 + 1.0 / 200_000)
    assert abs(float(result.risk) - losses.mean()) < tolerance + 1e-6


@pytest.mark.parametrize(("problem", "size", "loss"), CASES.values(), ids=CASES)
def test_descent_lowers_the_risk_and_draws_have_a_standard_error(problem, size, loss):
    result = ls.simulate(problem, ls.MeanField(), width=20, samples=1000, draws=3, protocol=SHORT, **size)
    trace = result.trace.values
    assert result.trace.dims == ("step",) and result.step.values[-1] == 120
    assert np.all(np.diff(trace) < 1e-5) and trace[-1] == pytest.approx(float(result.train), rel=1e-5)
    # ½ is the error of a coin, and to predict zero costs F₁² + F⋆² of a LinearTarget
    trivial = {"LinearLabels": 0.5, "LinearTarget": 1.5**2}.get(type(problem).__name__, 1.0)
    assert float(result.risk) < 0.9 * trivial
    assert float(result.stderr) == pytest.approx(result.risk_draws.values.std(ddof=1) / np.sqrt(3))
    single = ls.simulate(problem, ls.MeanField(), width=20, samples=1000, protocol=SHORT, **size)
    assert float(single.risk) == result.risk_draws.values[0] and "stderr" not in single


def test_descent_is_projected_gradient_descent():
    """Twelve steps against a plain loop in float64 that knows the risk only, and takes its gradient by differences."""
    problem, n, rate, bound, few = ls.SparseParity(3), 24, 0.3, 0.7, 3
    sample = Sample.of(problem, n, 0, 0)
    rho, path = descend(sample, ls.MeanField("tanh"), few, bound=bound, steps=12, rng=generator(0, 0, few), rate=rate)
    X, y = sample.X.astype(float), sample.y.astype(float)
    W = generator(0, 0, few).standard_normal((3, few))
    state = np.concatenate([np.zeros(few), (W / np.linalg.norm(W, axis=0)).ravel(), [0.0]])

    def risk(state):
        return np.mean((y - np.tanh(X @ state[few:-1].reshape(3, few)) @ state[:few] / few - state[-1]) ** 2)

    mobility = np.append(np.full(4 * few, float(few)), 1.0)  # each particle's own gradient is multiplied by N
    risks, touched = [risk(state)], False
    for _ in range(12):
        slope = [(risk(state + h) - risk(state - h)) / 2e-6 for h in 1e-6 * np.eye(state.size)]
        state = state - rate * mobility * np.array(slope)
        norms = np.linalg.norm(state[few:-1].reshape(3, few), axis=0)
        touched |= bool(np.any(np.abs(state[:few]) > bound) and np.any(norms > 1.0))
        state[:few] = np.clip(state[:few], -bound, bound)
        state[few:-1] = (state[few:-1].reshape(3, few) / np.maximum(norms, 1.0)).ravel()
        risks.append(risk(state))
    assert touched  # both projections were at work
    assert np.allclose(path, risks, atol=1e-5)  # float32
    assert np.allclose(rho.a, state[:few], atol=1e-4) and np.allclose(rho.W.ravel(), state[few:-1], atol=1e-4)


@pytest.mark.parametrize("name", ["softplus", "relu"])
@pytest.mark.parametrize("problem", [ls.SparseParity(2, inputs="sphere"), ls.QuadraticTarget([1.0, -0.5])], ids=str)
def test_the_minimum_over_measures_against_least_squares_on_a_grid(problem, name):
    """In the plane all unit vectors are a grid of angles: masses by non-negative least squares, Σm = A a heavy row."""
    from scipy.optimize import nnls

    sample, bound = Sample.of(problem, 60, 0, 0), 2.0 if name == "softplus" else 0.8
    sigma = ls.Activation(name)
    X, y = sample.X.astype(float), sample.y.astype(float)
    y = y - y.mean()

    def on_grid(count):
        angles = 2.0 * np.pi * np.arange(count) / count
        atoms = sigma(X @ np.stack([np.cos(angles), np.sin(angles)]))
        atoms = atoms - atoms.mean(axis=0)
        signed = np.concatenate([atoms, -atoms, np.zeros((60, 1))], axis=1)  # the last takes what is not used
        heavy = 1e4
        rows = np.concatenate([signed, np.full((1, signed.shape[1]), heavy)])
        masses, _ = nnls(rows, np.append(y, heavy * bound), maxiter=20_000)
        assert masses.sum() == pytest.approx(bound, abs=1e-6)
        return np.mean((y - signed @ masses) ** 2)

    coarse, fine = on_grid(360), on_grid(720)
    found = minimise(sample, sigma, bound=bound, steps=100, rng=np.random.default_rng(0), tolerance=1e-7)
    if name == "softplus":  # smooth: δ(h − δ), by masses on both neighbours, which the coarse grid has at least twice
        excess = coarse - fine
    else:  # kinks: an atom of slope 1 is at most π/720 away from the grid, f at most A·π/720·‖x‖
        moved = bound * np.pi / 720 * np.sqrt(np.mean(np.sum(X**2, axis=1)))
        excess = fine - (np.sqrt(fine) - moved) ** 2
    assert -excess - 2e-6 < found.risk[-1] - fine < 2e-6
    assert np.all(found.risk - found.gap < fine + 1e-6)  # a lower bound at every step
    assert 0.05 < fine < 0.95  # neither all nor nothing


def test_wider_measures_learn_a_parity_that_few_particles_cannot():
    few, many = (
        ls.simulate(
            ls.SparseParity(8), ls.MeanField(), width=N, samples=1000, draws=2, protocol=ls.ParticleDescent(300)
        )
        for N in (2, 60)
    )
    assert float(many.risk) < 0.02 < 0.3 < float(few.risk)


def test_one_seed_one_number_and_width_is_the_number_of_particles():
    target, regime = ls.QuadraticTarget(B), ls.MeanField()
    one, same = (ls.simulate(target, regime, width=4, samples=100, protocol=SHORT, seed=s) for s in (1, 1))
    assert one.identical(same) and int(one.width) == 4 and float(one.rho) == 0.8
    both = ls.simulate(target, regime, width=[2, 4], samples=100, protocol=SHORT, seed=1)
    assert float(both.risk.sel(width=4)) == float(one.risk) and both.trace.dims == ("width", "step")
    other = ls.simulate(target, regime, width=4, samples=100, protocol=SHORT, seed=2)
    assert float(other.risk) != float(one.risk)
    opened = ls.simulate(ls.LinearLabels(), regime, width=4, d=2, samples=100, protocol=SHORT)
    assert float(opened.psi1) == 2.0 and float(opened.psi2) == 50.0


def test_the_report_takes_every_problem():
    small = {"particles": [2, 4], "samples": 150, "steps": 60, "atoms": 8, "draws": 1}
    for problem, size, _ in CASES.values():
        found = ls.mean_field(problem, **size, **small)
        assert float(found.convexity) >= 0.0 and np.all(found.risk.values >= float(found.lower_bound))


def test_no_rate_is_fitted_where_nothing_is_left():
    """σ = u² on the quadratic target: as many particles as eigenvectors are the minimum, and there is no excess."""
    found = ls.mean_field(
        ls.QuadraticTarget([1.0, 0.5]), activation="square", particles=[8, 16], samples=100, steps=300, bound=0.5
    )
    assert bool(found.certified) and np.all(found.excess < 1e-5) and "exponent" not in found


PARITY, MF = ls.SparseParity(4), ls.MeanField()
BAD = {
    "no samples": lambda: ls.simulate(PARITY, MF, width=3),
    "one sample": lambda: ls.simulate(ls.QuadraticTarget([1.0]), MF, width=3, samples=1),
    "one class": lambda: ls.simulate(ls.LinearLabels(), MF, width=3, d=3, samples=1),
    "no particles": lambda: ls.simulate(PARITY, MF, samples=50, width=0),
    "half a particle": lambda: ls.simulate(PARITY, MF, samples=50, width=1.5),
    "width left out": lambda: ls.simulate(PARITY, MF, samples=50),
    "ridge": lambda: ls.simulate(ls.LinearTarget(), MF, width=3, d=5, samples=50, ridge=0.1),
    "method": lambda: ls.simulate(ls.LinearLabels(), MF, width=3, d=5, samples=50, method="margin"),
    "d of its own": lambda: ls.simulate(PARITY, MF, width=3, samples=50, d=4),
    "no d": lambda: ls.simulate(ls.LinearTarget(), MF, width=3, samples=50),
    "d too small": lambda: ls.simulate(ls.LinearTarget(nonlinear=1.0), MF, width=3, d=1, samples=50),
    "SGD": lambda: ls.simulate(PARITY, MF, width=3, samples=50, protocol=ls.SGD()),
    "protocol of particles": lambda: ls.simulate(
        ls.QuadraticTarget([1.0]), ls.Trained(), width=1, protocol=ls.ParticleDescent()
    ),
    "of particles, parity": lambda: ls.simulate(
        PARITY, ls.NeuralTangent("relu3"), width=2, samples=9, protocol=ls.ParticleDescent()
    ),
    "of particles, open": lambda: ls.simulate(
        ls.LinearTarget(), ls.RandomFeatures("relu"), d=5, width=2, samples=9, ridge=0.1, protocol=ls.ParticleDescent()
    ),
    "correlated inputs": lambda: ls.simulate(ls.GaussianMixture([0.1, 0.1], [1.0, 2.0]), MF, width=3, samples=50),
    "draws": lambda: ls.simulate(PARITY, MF, width=3, samples=50, draws=0),
    "huge": lambda: ls.simulate(PARITY, MF, width=3, samples=10**15),
    "no width": lambda: ls.simulate(ls.QuadraticTarget([1.0]), ls.Trained()),
    "limit": lambda: ls.limit(ls.QuadraticTarget([1.0]), MF, rho=1.0),
    "exact": lambda: ls.exact(PARITY, MF, width=3),
    "compare": lambda: ls.compare(ls.QuadraticTarget([1.0]), MF, width=3),
    "steps": lambda: ls.ParticleDescent(steps=0),
    "bound": lambda: ls.ParticleDescent(bound=-1.0),
    "infinite bound": lambda: ls.ParticleDescent(bound=np.inf),
    "report without d": lambda: ls.mean_field(ls.LinearTarget()),
    "report of no problem": lambda: ls.mean_field(3.0),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value) and 20 < len(str(caught.value)) < 600

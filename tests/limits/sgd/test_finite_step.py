"""SGD at a finite step size: the noise against exact moments, the prediction against flow and against simulations."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import lazyscope as ls
from lazyscope.limits.flow.curve import beginning, flow
from lazyscope.limits.sgd.diffusion import Diffusion, Stretch, second_moment
from lazyscope.limits.sgd.finite_step import finite_step, stages


def symmetric(rng, d):
    M = rng.standard_normal((d, d))
    return 0.5 * (M + M.T)


@pytest.mark.parametrize("d", [2, 3])
def test_the_noise_of_a_step_is_exact(d):
    """Five Gauss–Hermite points a direction integrate the polynomial of degree eight exactly."""
    rng = np.random.default_rng(d)
    E, X, s = symmetric(rng, d), symmetric(rng, d), 0.7
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    total = np.zeros((d, d))
    for index in product(range(5), repeat=d):
        x = nodes[list(index)]
        weight = np.prod(weights[list(index)]) / np.sqrt(2.0 * np.pi) ** d
        r = x @ E @ x - np.trace(E) + s
        total += weight * r**2 * (x @ X @ x) * np.outer(x, x)
    assert np.allclose(second_moment(E, s, X), total, rtol=1e-12)


def test_its_leading_part_is_isotropic():
    """‖E[r²(xᵀKx)xxᵀ] − L Tr K·I‖ is of relative order 1/d, for K and E that do not grow."""
    errors = []
    for d in (20, 80):
        rng = np.random.default_rng(0)
        W = rng.standard_normal((d, d)) / d
        K, E = W @ W.T, symmetric(rng, d) / d
        L = 2.0 * np.sum(E**2)
        errors.append(np.linalg.norm(second_moment(E, 0.0, K) / (L * np.trace(K)) - np.eye(d), 2))
    assert errors[1] < 0.35 * errors[0]


def test_small_steps_are_flow_and_the_noise_is_of_first_order():
    target, N, total = ls.QuadraticTarget.exponential(40, seed=1), 20, 6.0
    added = []
    for size in (4e-4, 2e-4):
        found = finite_step(target, ls.Trained(), width=N, step_size=size, batch=10, samples=[round(total / size) * 10])
        added.append(float(found.risk[0] - found.flow[0]))
    assert 1.7 < added[0] / added[1] < 2.3 and added[0] > 0.0
    tangent = [
        finite_step(target, ls.NeuralTangent(), width=N, step_size=size, batch=10, samples=[round(total / size) * 10])
        for size in (4e-4, 2e-4)
    ]
    ratio = float((tangent[0].risk - tangent[0].flow)[0] / (tangent[1].risk - tangent[1].flow)[0])
    assert 1.9 < ratio < 2.1


def test_a_walk_without_noise_is_flow():
    target, times = ls.QuadraticTarget.exponential(40, seed=1), np.array([0.5, 2.0, 8.0])
    for layer in ("trained", "fixed"):
        start = beginning(target, 20, None, "drawn", layer, 0, 0)
        path = Diffusion(start.b, start.W, 100, layer == "trained", np.random.default_rng(0))
        t, risk = np.array(list(path.risks([Stretch(8.0, 1e-9)]))).T
        line = flow(target, ls.Trained(), width=20, times=times, second_layer=layer, tolerance=1e-5).risk.values
        assert np.allclose(np.interp(times, t, risk), line, rtol=0.01)


@pytest.mark.parametrize("layer", ["trained", "fixed"])
def test_without_noise_finite_steps_are_gradient_descent(layer):
    """Batches without end: plain gradient descent on the population risk, long after all is learned."""
    target, N, size = ls.QuadraticTarget.exponential(30, seed=1), 15, 0.01
    start = beginning(target, N, None, "drawn", layer, 0, 0)
    b, W, a, c, points, descended = start.b, start.W.copy(), start.a, 0.0, [100, 300, 1000, 3000, 6000], []
    for step in range(1, 6001):
        K = W @ W.T
        E = a * K - np.diag(b)
        s = float(np.trace(a * K)) + c
        slope_W, slope_a = 4.0 * a * (2.0 * E + s * np.eye(30)) @ W, 4.0 * np.sum(E * K) + 2.0 * s * np.trace(K)
        W, a, c = W - size * slope_W, a - (layer == "trained") * size * slope_a, c - size * 2.0 * s
        if step in points:
            E = a * W @ W.T - np.diag(b)
            descended.append((2.0 * np.sum(E**2) + (a * np.sum(W**2) + c) ** 2) / (2.0 * b @ b))
    path = Diffusion(b, start.W, 10**9, layer == "trained", np.random.default_rng(0))
    t, risk = np.array(list(path.risks([Stretch(60.0, size)]))).T
    walked = np.exp(np.interp(np.array(points) * size, t, np.log(risk)))
    assert np.allclose(walked, descended, rtol=0.01)  # what the walk's own steps leave of flow, see above


def traces(target, regime, N, size, total, draws, batch=100):
    """Simulated and predicted risks, draws × points, for the same weights."""
    plan = ls.SGD(steps=round(total / size), batch=batch, step_sizes=(size,), decay=(), test=1)
    simulated, predicted, lines = [], [], []
    for k in range(draws):
        run = ls.simulate(target, regime, width=N, protocol=plan, seed=k)
        late = run.samples.values * size / batch > 0.05 * total
        samples = run.samples.values[late].astype(int)
        found = finite_step(target, regime, width=N, step_size=size, batch=batch, samples=samples, seed=k, paths=1)
        simulated.append(run.trace.values[late])
        predicted.append(found.risk.values)
        lines.append(found.flow.values)
    return np.array(simulated), np.array(predicted), np.array(lines)


def follows(simulated, predicted, lines, d):
    """Within three standard errors of the simulated mean; and for the same weights, where these do not hide anything,
    within three standard errors of the difference, but for the 1/d of the noise that the prediction leaves out.

    A standard error from a few draws is itself uncertain: three are counted by Student's law. Also returned: how many
    such units the noise is worth at the end. Beyond one, a prediction without it would be refused."""
    draws = len(simulated)
    three = student.isf(norm.sf(3.0), draws - 1)
    stderr = simulated.std(axis=0, ddof=1) / np.sqrt(draws)
    gap = simulated - predicted
    paired, noise = gap.std(axis=0, ddof=1) / np.sqrt(draws), (predicted - lines).mean(axis=0)
    near = np.all(np.abs(gap.mean(axis=0)) < three * stderr)
    nearer = np.all(np.abs(gap.mean(axis=0)) < three * paired + 4.0 / d * noise)
    return bool(near and nearer), float(noise[-1] / (three * paired[-1]))


@pytest.mark.parametrize("size", [0.002, 0.004])
def test_trained_networks_follow_the_prediction(size):
    found = traces(ls.QuadraticTarget.exponential(100), ls.Trained(), 50, size, 5.0, 5)
    agrees, noise = follows(*found, d=100)
    assert agrees and noise > 1.0  # without the noise they would not agree


@pytest.mark.parametrize("size", [0.01, 0.02])
def test_tangent_models_follow_the_prediction(size):
    found = traces(ls.QuadraticTarget.exponential(100), ls.NeuralTangent(), 50, size, 10.0, 8)
    agrees, noise = follows(*found, d=100)
    assert agrees and noise > 1.0


def test_larger_initial_weights_are_noisier():
    """Gradients are larger for them: the noise must start where the flow does."""
    how = {"width": 10, "batch": 10, "samples": [20_000], "step_size": 1e-4}
    target = ls.QuadraticTarget.exponential(20, seed=1)
    found = [finite_step(target, ls.Trained(init=init), **how) for init in (1.0, 2.0)]
    noise = [float((one.risk - one.flow)[0]) for one in found]
    assert noise[1] > 1.5 * noise[0] > 0.0


def test_decays_are_those_of_the_protocol():
    plan = ls.SGD(steps=1000)
    sizes = [one.step_size for one in stages(1000, 0.01, plan.decay) for _ in range(one.count)]
    assert np.allclose(sizes, [plan.rate(0.01, step) for step in range(1000)])


def test_a_step_size_that_is_not_stable_is_named():
    target = ls.QuadraticTarget.exponential(100)
    with pytest.raises(ls.NoTheorem, match=r"assumes εg < 1 − .*Pass a step size below 0\.0"):
        finite_step(target, ls.Trained(), width=50, step_size=0.03, samples=[100_000])
    how = {"width": 50, "samples": [1000]}
    with pytest.raises(ls.NoTheorem, match=r"stable.*Pass a step size below 0\.\d+") as caught:
        finite_step(target, ls.NeuralTangent(), step_size=10.0, **how)
    most = float(str(caught.value).split("below ")[1].split(",")[0])  # below it there is a number
    found = finite_step(target, ls.NeuralTangent(), step_size=0.9 * most, **how)
    assert np.all(np.isfinite(found.risk)) and np.all(found.risk > found.flow)
    with pytest.raises(ls.NotConverged, match="its noise feeds itself"):
        finite_step(target, ls.NeuralTangent(), step_size=0.9 * most / 2.0, batch=1, **how)


TARGET = ls.QuadraticTarget([2.0, 1.0, 0.5])
BAD = {
    "step size": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.0, samples=[100]),
    "samples that fill no batch": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.01, samples=[150]),
    "samples out of order": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.01, samples=[200, 100]),
    "width": lambda: finite_step(TARGET, ls.Trained(), width=0, step_size=0.01, samples=[100]),
    "batch": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.01, samples=[100], batch=0),
    "paths": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.01, samples=[100], paths=0),
    "decay": lambda: finite_step(TARGET, ls.Trained(), width=2, step_size=0.01, samples=[100], decay=((2.0, 1.0),)),
    "decay that is no pair": lambda: finite_step(
        TARGET, ls.Trained(), width=2, step_size=0.01, samples=[100], decay=[1.0]
    ),
    "decay that is a number": lambda: finite_step(
        TARGET, ls.Trained(), width=2, step_size=0.01, samples=[100], decay=5
    ),
    "step size that is not a number": lambda: finite_step(
        TARGET, ls.Trained(), width=2, step_size=np.nan, samples=[100]
    ),
    "activation": lambda: finite_step(TARGET, ls.Trained("relu"), width=2, step_size=0.01, samples=[100]),
    "output scale": lambda: finite_step(TARGET, ls.Trained(alpha=2.0), width=2, step_size=0.01, samples=[100]),
    "regime": lambda: finite_step(TARGET, ls.RandomFeatures(), width=2, step_size=0.01, samples=[100]),
    "problem": lambda: finite_step(ls.GaussianMixture([0.1]), ls.Trained(), width=2, step_size=0.01, samples=[100]),
    "B": lambda: finite_step(ls.QuadraticTarget([1.0, -1.0]), ls.Trained(), width=2, step_size=0.01, samples=[100]),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value) and 20 < len(str(caught.value)) < 600

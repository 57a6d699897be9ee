"""From lazy to rich: the closed form and its two limits, flow and SGD on it, and what is measured on the way."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.experiments.wide import lazy_to_rich as experiment
from lazyscope.experiments.wide.lazy_to_rich import lazy_to_rich
from lazyscope.limits.flow.curve import flow
from lazyscope.training.sgd.lazy_to_rich import measures
from lazyscope.training.sgd.scaled import ScaledNetworks
from lazyscope.training.sgd.square import compressed
from lazyscope.training.sgd.stream import draw, law_of
from lazyscope.training.sgd.tangent import Tangents

D = 60
TARGET = ls.QuadraticTarget.exponential(D)
TANGENT = float(ls.exact(TARGET, ls.NeuralTangent(), width=D // 2).risk)
FLOOR = float(ls.limit(TARGET, ls.Trained(), rho=0.5).risk)


def end(alpha, init=1.0):
    return float(ls.exact(TARGET, ls.Trained(alpha=alpha, init=init), width=D // 2).risk)


def test_large_scales_are_the_tangent_model_and_small_ones_the_trained_network():
    assert end(1e3) == pytest.approx(TANGENT, rel=0.03) and end(1e7) == pytest.approx(TANGENT, rel=1e-5)
    assert end(1e-2) == pytest.approx(FLOOR, rel=0.03) and end(1e-7) == pytest.approx(FLOOR, rel=1e-5)
    between = [end(alpha) for alpha in np.geomspace(1e-3, 1e4, 30)]
    assert np.all(np.diff(between) > 0.0)


def test_initial_weights_count_as_the_square_of_their_scale():
    assert end(2.0, init=3.0) == pytest.approx(end(18.0), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 20.0])
def test_flow_ends_at_the_closed_form(alpha):
    late = flow(TARGET, ls.Trained(alpha=alpha), width=D // 2, times=[600.0 * alpha, 6000.0 * alpha], tolerance=1e-6)
    assert float(late.risk[-1]) == pytest.approx(end(alpha), abs=1e-5)


@pytest.mark.parametrize(("alpha", "end_of"), [(0.01, "trained"), (1000.0, "tangent")])
def test_flow_ends_within_three_percent_of_both_limits(alpha, end_of):
    """N = d/2. SGD does so too, below, and the closed form above."""
    late = flow(TARGET, ls.Trained(alpha=alpha), width=D // 2, times=[300.0 * max(1.0, 10 * alpha)], tolerance=1e-6)
    assert float(late.risk[-1]) == pytest.approx(FLOOR if end_of == "trained" else TANGENT, rel=0.03)


def test_flow_of_a_large_scale_is_tangent_flow():
    times = [0.5, 5.0, 50.0]
    lazy = flow(TARGET, ls.Trained(alpha=1e5), width=D // 2, times=times, tolerance=1e-6).risk.values
    assert np.allclose(lazy, flow(TARGET, ls.NeuralTangent(), width=D // 2, times=times).risk.values, atol=1e-3)


@pytest.fixture(scope="module")
def report():
    return lazy_to_rich(ls.QuadraticTarget.exponential(10), width=5, alpha=[0.003, 1.0, 1000.0])


def test_sgd_ends_at_the_closed_form_and_at_both_limits(report):
    assert np.allclose(report.end, report.exact, rtol=0.03)
    assert float(report.end[0]) == pytest.approx(float(report.floor), rel=0.03)
    assert float(report.end[-1]) == pytest.approx(float(report.tangent), rel=0.03)


def test_lazy_training_moves_little_and_stays_near_its_linearisation(report):
    last = report.isel(point=-1)
    for name in ("curvature", "distance", "movement", "drift"):
        assert np.all(np.diff(last[name].values) < 0.0), name
    assert float(last.distance[-1]) < 0.05 and float(last.movement[-1]) < 0.02
    assert float(last.alignment[0]) > 0.99 > float(last.alignment[-1])
    # movement ∝ 1/α in the lazy regime
    lazier = lazy_to_rich(ls.QuadraticTarget.exponential(10), width=5, alpha=[4000.0])
    assert float(lazier.movement[0, -1]) == pytest.approx(float(last.movement[-1]) / 4.0, rel=0.05)


def test_measures_are_what_samples_say():
    problem, N, alpha = ls.QuadraticTarget.exponential(6, seed=2), 4, 1.5
    law, rng = law_of(problem), np.random.default_rng(0)
    W0 = rng.standard_normal((N, 6)).astype(np.float32)
    pack = ScaledNetworks([W0], [N], [0.01], ls.Activation("square"), alpha)
    tangent = Tangents([W0], [N], [0.01], ls.Activation("square"))
    for _ in range(30):
        X, y = draw(law, 50, rng)
        pack.step(X.copy(), y, 1.0)
        tangent.step(X, y, 1.0)
    risk, curvature, distance, movement, drift, alignment = measures(law, pack, tangent)
    x, y = draw(law, 200_000, np.random.default_rng(1))
    f, other = (model.outputs(x)[:, 0] + model.c[0] for model in (pack, tangent))
    V = pack.state.astype(float)
    size = np.sqrt(law.energy)
    assert np.mean((f - y) ** 2) / law.energy == pytest.approx(risk, rel=0.05)
    assert np.sqrt(np.mean((f - other) ** 2)) / size == pytest.approx(distance, rel=0.03)
    linear = 2.0 / N * np.sum((x @ W0.T) * (x @ V), axis=1)
    assert np.sqrt(np.mean((f - pack.c[0] - linear) ** 2)) / size == pytest.approx(curvature, rel=0.03)
    assert movement == pytest.approx(np.linalg.norm(V) / alpha / np.linalg.norm(W0), rel=1e-6)
    W = W0.T + V / alpha
    assert drift == pytest.approx(np.linalg.norm(W @ W.T - W0.T @ W0) / np.linalg.norm(W0.T @ W0), rel=1e-5)
    assert 0.0 < alignment <= 1.0


@pytest.mark.parametrize("name", ["square", "tanh", "relu"])
def test_steps_follow_the_gradient(name):
    """V ← V − ε·N·∂(mean squared error)/∂W/α, against finite differences in float64 of the defining formula."""
    rng = np.random.default_rng(0)
    d, N, alpha, size = 5, 3, 2.0, 1e-3
    sigma = ls.Activation(name)
    W0, X, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((N, d), (40, d), (40,)))
    pack = ScaledNetworks([W0], [N], [size], sigma, alpha)
    pack.state[:] = rng.standard_normal(pack.state.shape)
    W = W0.T + pack.state.astype(float) / alpha

    def loss(W):
        h = sigma(X.astype(float) @ W) - sigma(X.astype(float) @ W0.T.astype(float))
        return np.mean((alpha / N * h.sum(axis=1) - y) ** 2)

    before, step = pack.state.copy(), 1e-6
    gradient = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        bump = np.zeros_like(W)
        bump[index] = step
        gradient[index] = (loss(W + bump) - loss(W - bump)) / (2.0 * step)
    pack.step(X, y, 1.0)
    assert np.allclose((before - pack.state) / size, N * gradient / alpha, atol=2e-3 * np.max(np.abs(gradient)) * N)


def test_more_weights_than_dimensions_cost_no_more_and_change_nothing():
    rng = np.random.default_rng(0)
    problem = ls.QuadraticTarget.exponential(4, seed=1)
    law, W0 = law_of(problem), rng.standard_normal((9, 4)).astype(np.float32)
    full = ScaledNetworks([W0], [9], [0.01], ls.Activation("square"), 0.7)
    assert full.state.shape[1] == len(compressed(W0)) == 4
    G = np.zeros((4, 4))
    V = np.zeros((4, 9))
    for _ in range(20):
        X, y = draw(law, 30, rng)
        W, r = W0.T + V / 0.7, full.outputs(X)[:, 0] + full.c[0] - y
        V -= 2 * 0.01 * 2 / 30 * (X.T * r) @ (X @ W)
        full.step(X, y, 1.0)
    W = W0.T + V / 0.7
    G = 0.7 / 9 * (W @ W.T - W0.T @ W0)
    assert np.allclose(full.form(0), G, atol=1e-4)


def test_one_sample_a_step_takes_the_same_path():
    """The compiled path for batches of one is for NT and NN: a scaled network must not be taken for NT."""
    target = ls.QuadraticTarget.exponential(6, seed=1)
    for batch, steps in ((1, 600), (4, 150)):
        plan = ls.SGD(steps=steps, batch=batch, step_sizes=(1e-3 * batch,), decay=(), test=10)
        rich = float(ls.simulate(target, ls.Trained(alpha=0.3), width=3, protocol=plan).risk)
        tangent = float(ls.simulate(target, ls.NeuralTangent(), width=3, protocol=plan).risk)
        assert tangent - rich > 0.02  # for both


def test_weights_are_those_of_the_tangent_model():
    W = weights.draw(TARGET, ls.NeuralTangent(), D // 2, weights.generator(0, 0, D // 2))
    B = np.diag(TARGET.B) / np.sqrt(D) + 2.0 * W.T @ W / (D // 2)
    tail = np.linalg.eigvalsh(B)[: D // 2]
    assert end(2.0) == pytest.approx(np.sum(tail**2) / np.sum(TARGET.B**2 / D), rel=1e-10)


BAD = {
    "alpha zero": lambda: ls.Trained(alpha=0.0),
    "alpha negative": lambda: ls.Trained(alpha=-1.0),
    "alpha text": lambda: ls.Trained(alpha="big"),
    "init": lambda: ls.Trained(init=0.0),
    "report alpha": lambda: lazy_to_rich(TARGET, width=3, alpha=[1.0, -1.0]),
    "report width": lambda: lazy_to_rich(TARGET, width=0, alpha=[1.0]),
    "report problem": lambda: lazy_to_rich(ls.GaussianMixture([0.1]), width=1, alpha=[1.0]),
    "two step sizes": lambda: lazy_to_rich(TARGET, width=3, alpha=[1.0], protocol=ls.SGD(steps=10)),
    "limit with a scale": lambda: ls.limit(TARGET, ls.Trained(alpha=1.0), rho=0.5),
    "exact with a scale, relu": lambda: ls.exact(TARGET, ls.Trained("relu", alpha=1.0), width=3),
    "flow of an indefinite target": lambda: flow(
        ls.QuadraticTarget([1.0, -1.0]), ls.Trained(alpha=1.0), width=1, times=[1.0]
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value) and 20 < len(str(caught.value)) < 600


def moved(panels, panel, **changes):
    """The same findings with some variables of one panel replaced."""
    return {**panels, panel: panels[panel].assign(**changes)}


def test_the_protocol_of_a_training_is_part_of_its_fingerprint(sizes):
    (piece,) = experiment.work(sizes["lazy-to-rich"])[0].pieces()
    assert piece.protocol is not None and piece.protocol == piece.plan


def test_from_lazy_to_rich(tiny):
    panels = tiny("lazy-to-rich").panels
    one = panels["alpha"]
    assert np.all(np.diff(one.exact_line) > 0.0)
    assert float(one.exact_line[0]) < 1.1 * float(one.floor) and float(one.exact_line[-1]) > 0.95 * float(one.tangent)
    assert np.allclose(one.exponent, -1.0, atol=0.05)
    assert np.allclose(panels["training"].flow[:, -1], panels["training"].risk[:, -1], rtol=0.1)
    assert "the closed form at α = 3" in experiment.verdict(moved(panels, "alpha", end=1.5 * one.end))[-1]
    assert "the end at NT" in experiment.verdict(moved(panels, "alpha", tangent=2.0 * one.tangent))[-1]
    assert "the exponent of drift" in experiment.verdict(moved(panels, "alpha", exponent=0.5 * one.exponent))[-1]


def test_a_run_that_overflows_between_two_looks_ends_in_one_error():
    protocol = ls.SGD(steps=300, batch=100, step_sizes=(0.1,), decay=())
    with pytest.raises(ls.NotConverged, match="SGD diverged at α = 2"):  # and no warning, which would be an error here
        lazy_to_rich(ls.QuadraticTarget([1.0]), width=1, alpha=[2.0], init=1.31, protocol=protocol)

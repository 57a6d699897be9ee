"""Gradient flow: the closed forms against a general ODE solver, Theorem 3's floor, exact NT and RF, and SGD."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lazyscope as ls
from lazyscope import weights
from lazyscope.limits.flow.curve import beginning, flow
from lazyscope.limits.flow.matrix import solve
from lazyscope.limits.flow.moments import Bins
from lazyscope.limits.flow.riccati import riccati
from lazyscope.limits.flow.typical import typical

CLOSE = 1e-8


def general_solver(start, times):
    """Normalised risks by DOP853 on all of (W, a, c): no closed form in it."""
    B, d = np.diag(start.b), start.b.size

    def parts(y):
        W, (a, c) = y[:-2].reshape(start.W.shape), y[-2:]
        E = a * W @ W.T - B
        return W, a, c, E, np.trace(E) + c - start.b0

    def slope(_, y):
        W, a, _, E, s = parts(y)
        K = W @ W.T
        layer = (-4.0 * np.sum(E * K) - 2.0 * s * np.trace(K)) * start.trained_layer
        return np.concatenate([(-4.0 * a * (2.0 * E + s * np.eye(d)) @ W).ravel(), [layer, -2.0 * s]])

    begin = np.append(start.W.ravel(), [start.a, start.c])
    found = solve_ivp(slope, (0.0, times[-1]), begin, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    risks = []
    for y in found.y.T:
        *_, E, s = parts(y)
        risks.append((2.0 * np.sum(E**2) + s**2) / start.energy)
    return np.array(risks)


def starts():
    target = ls.QuadraticTarget.exponential(10, seed=3)
    rng = np.random.default_rng(0)
    full = np.linalg.qr(rng.standard_normal((6, 6)))[0] * np.array([3.0, 2.0, 1.0, 0.5, 0.2, 0.0])
    rotated = ls.QuadraticTarget(full @ full.T, b0=0.7)
    for layer in ("trained", "fixed"):
        for N in (4, 10, 25):
            yield f"{layer}, N = {N}", beginning(target, N, None, "drawn", layer, 0, 0)
    for N in (3, 6, 9):
        W0 = 0.3 * rng.standard_normal((6, N))
        yield f"given (W₀, c₀), full B, N = {N}", beginning(rotated, None, (W0, -1.0), "drawn", "fixed", 0, 0)
    uneven = ls.QuadraticTarget([0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 2.0])
    for layer in ("trained", "fixed"):
        for N in (3, 7, 12):
            name = f"{layer}, N = {N}, zero and equal eigenvalues"
            yield name, beginning(uneven, N, None, "drawn", layer, 0, 0)


STARTS = dict(starts())


@pytest.mark.parametrize("name", STARTS)
def test_closed_form_agrees_with_a_general_solver(name):
    start, times = STARTS[name], np.geomspace(0.02, 15.0, 12)
    curve = solve(start, times[-1], tolerance=1e-9)
    assert np.max(np.abs(curve.at("risk", times) / start.energy - general_solver(start, times))) < CLOSE


@pytest.mark.parametrize(("alpha", "N"), [(0.2, 4), (5.0, 12)])
def test_an_output_scale_agrees_with_a_general_solver(alpha, N):
    """f = (α/N)Σ(⟨w,x⟩² − ⟨w⁰,x⟩²) + c, W = W₀ + V/α: all of (V, c) by DOP853."""
    target, d, times = ls.QuadraticTarget.exponential(8, seed=4), 8, np.array([0.1, 0.7, 4.0])
    W0 = weights.draw(target, ls.NeuralTangent(), N, weights.generator(0, 0, N)).T
    B = np.diag(target.B) / np.sqrt(d)

    def parts(y):
        W = W0 + y[:-1].reshape(W0.shape) / alpha
        E = alpha / N * (W @ W.T - W0 @ W0.T) - B
        return W, E, np.trace(E) + np.trace(B) + y[-1]

    def slope(_, y):
        W, E, s = parts(y)
        return np.append((-(8.0 * E + 4.0 * s * np.eye(d)) @ W).ravel(), -2.0 * (1.0 + 1.0 / alpha) * s)

    begin = np.zeros(W0.size + 1)
    found = solve_ivp(slope, (0.0, times[-1]), begin, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    line = flow(target, ls.Trained(alpha=alpha), width=N, times=times, tolerance=1e-9).risk.values
    for y, risk in zip(found.y.T, line, strict=True):
        _, E, s = parts(y)
        assert (2.0 * np.sum(E**2) + s**2) / (2.0 * np.sum(B**2)) == pytest.approx(risk, abs=CLOSE)


def test_the_matrix_is_the_one_of_the_risk():
    start = STARTS["trained, N = 4"]
    curve = solve(start, 10.0, tolerance=1e-9)
    for t in (0.5, 9.0):
        G, one = curve.matrix(t), np.array([t])
        s = np.trace(G) - start.b.sum() - start.b0 + curve.at("c", one)[0]
        assert 2.0 * np.sum((G - np.diag(start.b)) ** 2) + s**2 == pytest.approx(curve.at("risk", one)[0], abs=1e-8)
        assert np.linalg.matrix_rank(G, tol=1e-9) == 4


@pytest.mark.parametrize("N", [3, 8, 12, 30])
@pytest.mark.parametrize("layer", ["trained", "fixed"])
def test_flow_ends_at_the_floor_of_theorem_3(N, layer):
    target = ls.QuadraticTarget(np.linspace(0.4, 2.5, 12))
    end = flow(target, ls.Trained(), width=N, times=[1e4], second_layer=layer, tolerance=1e-9)
    floor = float(ls.limit(target, ls.Trained(), rho=N / 12).risk)
    assert float(end.risk[0]) == pytest.approx(floor, abs=CLOSE)
    typical_end = flow(target, ls.Trained(), width=N, times=[1e4], second_layer=layer, weights="typical")
    assert float(typical_end.risk[0]) == pytest.approx(floor, abs=1e-4)


def test_a_rotated_target_flows_alike():
    """B full or diagonal: the weights are drawn in its eigenbasis, and nothing else is seen of the basis."""
    values = np.array([2.0, 1.5, 0.7, 0.3])
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    B = (Q * values) @ Q.T
    times = [0.0, 0.5, 3.0, 20.0]
    one = flow(ls.QuadraticTarget(np.sort(values)), ls.Trained(), width=3, times=times, tolerance=1e-8)
    other = flow(ls.QuadraticTarget((B + B.T) / 2), ls.Trained(), width=3, times=times, tolerance=1e-8)
    assert np.allclose(one.risk, other.risk, atol=1e-8)


@pytest.mark.parametrize(("N", "layer"), [(40, "fixed"), (160, "trained"), (320, "fixed"), (320, "trained")])
def test_in_many_dimensions_few_matrices_are_enough(N, layer):
    """From d = 100 on K is computed at some of the points only; Newton's method with all of them is the judge."""
    target, times = ls.QuadraticTarget.exponential(160, seed=5), np.geomspace(0.05, 300.0, 40)
    start = beginning(target, N, None, "drawn", layer, 0, 0)
    assert Bins.of(start.b).b.size < 100  # neighbours do share a group here
    few, all_of_them = solve(start, times[-1], 1e-4), solve(start, times[-1], 2e-6)
    assert few.evaluations < 0.5 * all_of_them.evaluations and few.evaluations < 12 * len(few.panels)
    difference = few.at("risk", times) - all_of_them.at("risk", times)
    assert np.max(np.abs(difference)) / start.energy < 2e-4  # estimates of errors are good to a factor of two
    shares = (few.at("diagonal", times) - all_of_them.at("diagonal", times)) / np.max(all_of_them.at("diagonal", times))
    assert np.sqrt(np.mean(shares**2)) < 2e-3


def test_weights_that_are_not_typical_fall_back_on_newton_s_method():
    """d = 100, one neuron that sees one direction a hundred times less than another."""
    target, rng = ls.QuadraticTarget.exponential(100, seed=5), np.random.default_rng(0)
    W0 = 0.3 * rng.standard_normal((100, 2)) * np.geomspace(0.01, 1.0, 100)[:, None]
    times = np.array([1e-3, 0.01, 0.1, 1.0])
    coarse = flow(target, ls.Trained(), start=(W0, 1.0), times=times)
    fine = flow(target, ls.Trained(), start=(W0, 1.0), times=times, tolerance=1e-6)
    assert np.allclose(coarse.risk, fine.risk, atol=3e-4)


def test_eigendirections_are_learned_largest_first():
    values = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    target, tiny = ls.QuadraticTarget(values), (1e-3 * np.eye(5), 0.0)
    path = flow(target, ls.Trained(), start=tiny, times=np.linspace(0.0, 40.0, 9))
    reached = path.reached.values
    assert np.array_equal(path.eigenvalue.values, values[::-1])
    assert np.all(np.diff(reached) > 0.0) and np.all(np.isfinite(reached))
    assert float(path.learned[-1, 0]) == pytest.approx(1.0, abs=1e-4)
    # from a multiple of I the matrix stays diagonal: six scalar equations, and another solver's dense output
    b = values[::-1]

    def slope(_, y):
        s = y.sum() - b.sum()
        return np.append(16.0 * y[:-1] * (b - y[:-1] - 0.5 * s), -2.0 * s)

    dense = solve_ivp(slope, (0.0, 2.0), np.append(np.full(5, 1e-6), 0.0), method="LSODA", rtol=1e-10, atol=1e-14)
    halves = [np.interp(0.5, dense.y[i] / b[i], dense.t) for i in range(5)]
    assert np.allclose(reached, halves, rtol=5e-3)
    between = 0.5 * (reached[2] + reached[3])
    early = flow(target, ls.Trained(), start=tiny, times=[0.0, between])
    assert np.isinf(early.reached.values).tolist() == [False, False, False, True, True]


def tangent_targets():
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((12, 12)))[0]
    full = (Q * np.repeat([0.0, 0.5, 2.0], 4)) @ Q.T
    return {"diagonal": ls.QuadraticTarget.exponential(12, seed=1), "full": ls.QuadraticTarget(0.5 * (full + full.T))}


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("N", [6, 12, 40])
def test_tangent_flow_is_exact_in_the_end_and_right_on_the_way(N, kind):
    target, d = tangent_targets()[kind], 12
    times = np.array([0.3, 2.0, 10.0])
    path = flow(target, ls.NeuralTangent(), width=N, times=[*times, 1e9])
    exact = float(ls.exact(target, ls.NeuralTangent(), width=N).risk)
    assert float(path.risk[-1]) == pytest.approx(exact, abs=1e-10)
    W = weights.draw(target, ls.NeuralTangent(), N, weights.generator(0, 0, N)).T
    B = (np.diag(target.B) if kind == "diagonal" else target.B) / np.sqrt(d)

    def slope(_, y):
        V, c = y[:-1].reshape(W.shape), y[-1]
        E = (W @ V.T + V @ W.T) / N - B
        s = np.trace(E) + np.trace(B) + c
        return np.append((-4.0 * (2.0 * E + s * np.eye(d)) @ W).ravel(), -2.0 * s)

    found = solve_ivp(slope, (0.0, 10.0), np.zeros(W.size + 1), method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times)
    for y, risk in zip(found.y.T, path.risk.values, strict=False):
        V = y[:-1].reshape(W.shape)
        E = (W @ V.T + V @ W.T) / N - B
        s = np.trace(E) + np.trace(B) + y[-1]
        assert (2.0 * np.sum(E**2) + s**2) / (2.0 * np.sum(B**2)) == pytest.approx(risk, abs=CLOSE)


def test_features_flow_is_exact_in_the_end_and_right_on_the_way():
    target, N = ls.QuadraticTarget.exponential(12, seed=1), 20
    path = flow(target, ls.RandomFeatures(), width=N, times=[0.5, 4.0, 1e9])
    assert float(path.risk[-1]) == pytest.approx(float(ls.exact(target, ls.RandomFeatures(), width=N).risk), abs=1e-9)
    W = weights.draw(target, ls.RandomFeatures(), N, weights.generator(0, 0, N))
    x = np.random.default_rng(0).standard_normal((200_000, 12))
    phi, y = (x @ W.T) ** 2 - 1.0, (x**2 - 1.0) @ target.B / np.sqrt(12)
    U, V = phi.T @ phi / len(x), phi.T @ y / len(x)
    found = solve_ivp(lambda _, a: -2.0 * (U @ a / N - V), (0.0, 4.0), np.zeros(N), rtol=1e-9, t_eval=[0.5, 4.0])
    for a, risk in zip(found.y.T, path.risk.values, strict=False):
        sampled = np.mean((y - phi @ a / N) ** 2) / np.mean(y**2)
        assert sampled == pytest.approx(risk, abs=0.01)  # 2·10⁵ samples of a heavy-tailed target


@pytest.mark.parametrize("N", [3, 6, 25])
@pytest.mark.parametrize("rotated", [False, True])
def test_features_flow_agrees_with_a_general_solver(N, rotated):
    """U and V from all fourth moments of a Gaussian, entry by entry; N = 25 > d(d+1)/2 leaves U singular."""
    d, times = 5, np.array([0.2, 1.0, 6.0])
    values = np.array([0.0, 0.7, 0.7, 1.5, 2.0])
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((d, d)))[0] if rotated else np.eye(d)
    full = (Q * values) @ Q.T
    target = ls.QuadraticTarget(0.5 * (full + full.T) if rotated else values)
    W = weights.draw(target, ls.RandomFeatures(), N, weights.generator(0, 0, N))
    delta, B = np.eye(d), full / np.sqrt(d)
    fourth = sum(np.einsum(f"{a},{b}->abcd", delta, delta) for a, b in (("ab", "cd"), ("ac", "bd"), ("ad", "bc")))
    second = np.einsum("ia,ib,jc,jd,abcd->ij", W, W, W, W, fourth, optimize=True)
    sizes = np.sum(W**2, axis=1)
    U = second - sizes[:, None] - sizes + 1.0
    V = np.einsum("ia,ib,cd,abcd->i", W, W, B, fourth, optimize=True) - sizes * np.trace(B)

    def slope(_, a):
        return -2.0 * (U @ a / N - V)

    found = solve_ivp(slope, (0.0, 6.0), np.zeros(N), method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    energy = 2.0 * np.sum(B**2)
    truth = [(energy - 2.0 * V @ a / N + a @ U @ a / N**2) / energy for a in found.y.T]
    assert np.allclose(flow(target, ls.RandomFeatures(), width=N, times=times).risk, truth, atol=CLOSE)


def test_typical_weights_are_what_draws_tend_to():
    """The deterministic equivalent of Tr K and ‖K‖² at one (λ, u), and of the risk along the flow: error ∝ 1/d."""
    errors = []
    for d in (30, 120):
        target = ls.QuadraticTarget(-np.log1p(-(np.arange(d) + 0.5) / d))
        times = np.geomspace(1.0, 30.0, 6)
        middle = flow(target, ls.Trained(), width=d // 2, times=times, weights="typical", tolerance=1e-5).risk.values
        drawn = [
            flow(target, ls.Trained(), width=d // 2, times=times, draw=k, tolerance=1e-4).risk.values for k in range(6)
        ]
        errors.append(np.sqrt(np.mean((np.array(drawn) - middle) ** 2)))
    assert errors[1] < 0.5 * errors[0] and errors[1] < 0.02
    rng = np.random.default_rng(0)
    d, N = 200, 120
    lam, u = np.sort(rng.uniform(0.0, 4.0, d)), rng.uniform(0.05, 0.3, d)
    K = riccati(rng.standard_normal((d, N)) / np.sqrt(d * N))(lam, u).full
    one = typical(lam[None], u[None], 1.0 / d, N)
    assert one.diagonal.sum() == pytest.approx(np.trace(K), rel=0.02)
    assert one.norm[0] == pytest.approx(np.sum(K**2), rel=0.04)


def test_sgd_tends_to_the_flow_at_first_order_in_the_step_size():
    target, N, batch, total = ls.QuadraticTarget.exponential(16, seed=2), 8, 8, 4.0
    sizes, seeds = np.array([0.04, 0.02, 0.01]), range(20)
    line = [float(flow(target, ls.Trained(), width=N, times=[total], seed=k).risk[0]) for k in seeds]
    deviation = []
    for size in sizes:
        plan = ls.SGD(steps=round(total / size), batch=batch, step_sizes=(float(size),), decay=(), test=1)
        ends = [float(ls.simulate(target, ls.Trained(), width=N, protocol=plan, seed=k).risk) for k in seeds]
        gap = np.subtract(ends, line)
        deviation.append((np.mean(gap), np.std(gap) / np.sqrt(len(gap))))
    means, errors = np.array(deviation).T
    assert np.all(means > 3.0 * errors)  # noise only ever adds here
    slope = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    spread = np.sqrt(np.sum((errors / means) ** 2)) / np.log(4.0)
    assert abs(slope - 1.0) < 0.25 + 2.0 * spread  # first order; the larger steps begin to bend


TARGET = ls.QuadraticTarget([2.0, 1.0, 0.5])
BAD = {
    "B that is not ⪰ 0": lambda: flow(ls.QuadraticTarget([1.0, -1.0]), ls.Trained(), width=1, times=[1.0]),
    "times out of order": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0, 0.5]),
    "equal times": lambda: flow(TARGET, ls.NeuralTangent(), width=2, times=[1.0, 1.0]),
    "negative times": lambda: flow(TARGET, ls.Trained(), width=2, times=[-1.0, 0.5]),
    "no times": lambda: flow(TARGET, ls.Trained(), width=2, times=[]),
    "infinite time": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0, np.inf]),
    "no width": lambda: flow(TARGET, ls.Trained(), times=[1.0]),
    "width": lambda: flow(TARGET, ls.NeuralTangent(), width=0, times=[1.0]),
    "start of a wrong shape": lambda: flow(TARGET, ls.Trained(), start=(np.ones((2, 3)), 0.0), times=[1.0]),
    "start without c": lambda: flow(TARGET, ls.Trained(), start=np.ones((3, 2)), times=[1.0]),
    "start of a linear model": lambda: flow(TARGET, ls.NeuralTangent(), start=(np.ones((3, 2)), 0.0), times=[1.0]),
    "a direction that starts at 0": lambda: flow(TARGET, ls.Trained(), start=(np.eye(3)[:, :2], 0.0), times=[1.0]),
    "another activation": lambda: flow(TARGET, ls.Trained("relu"), width=2, times=[1.0]),
    "another problem": lambda: flow(ls.GaussianMixture([0.1, 0.1]), ls.Trained(), width=2, times=[1.0]),
    "no regime": lambda: flow(TARGET, ls.Bayes(), width=2, times=[1.0]),
    "weights": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], weights="usual"),
    "second layer": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], second_layer="frozen"),
    "second layer of an output scale": lambda: flow(
        TARGET, ls.Trained(alpha=2.0), width=2, times=[1.0], second_layer="fixed"
    ),
    "tolerance": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], tolerance=0.0),
    "huge tolerance": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], tolerance=1.0),
    "tolerance of a scaled network": lambda: flow(TARGET, ls.Trained(alpha=1.0), width=2, times=[1.0], tolerance=-1.0),
    "time that is not a number": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0, np.nan]),
    "times as text": lambda: flow(TARGET, ls.Trained(), width=2, times="soon"),
    "table of times": lambda: flow(TARGET, ls.Trained(), width=2, times=[[1.0], [2.0]]),
    "B that is not a number": lambda: flow(ls.QuadraticTarget([1.0, np.nan]), ls.Trained(), width=2, times=[1.0]),
    "full B that is not ⪰ 0": lambda: flow(
        ls.QuadraticTarget([[1.0, 2.0], [2.0, 1.0]]), ls.Trained(), width=2, times=[1.0]
    ),
    "start that is not a number": lambda: flow(TARGET, ls.Trained(), start=(np.full((3, 2), np.nan), 0.0), times=[1.0]),
    "c₀ that is not a number": lambda: flow(TARGET, ls.Trained(), start=(np.ones((3, 2)), np.nan), times=[1.0]),
    "start of a scaled network": lambda: flow(
        TARGET, ls.Trained(alpha=1.0), width=2, start=(np.ones((3, 2)), 0.0), times=[1.0]
    ),
    "typical weights of a scaled network": lambda: flow(
        TARGET, ls.Trained(alpha=1.0), width=2, weights="typical", times=[1.0]
    ),
    "half a neuron": lambda: flow(TARGET, ls.Trained(), width=1.5, times=[1.0]),
    "draw": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], draw=-1),
    "seed": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], seed=-1),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    message = str(caught.value)
    assert "\n" not in message and 20 < len(message) < 600 and message.rstrip()[-1] in ".?"

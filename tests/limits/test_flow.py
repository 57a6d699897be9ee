"""Gradient flow: the closed forms against a general ODE solver, Theorem 3's floor, exact NT and RF, and SGD."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lazyscope as ls
from lazyscope import weights
from lazyscope.limits.flow import beginning, flow
from lazyscope.limits.flow_matrix import solve
from lazyscope.limits.flow_riccati import NarrowRiccati, WideRiccati, riccati
from lazyscope.limits.flow_saddle import strict_saddle
from lazyscope.limits.flow_typical import typical

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
    W0 = 0.3 * rng.standard_normal((6, 3))
    yield "given (W₀, c₀), full B", beginning(rotated, None, (W0, -1.0), "drawn", "fixed", 0, 0)


STARTS = dict(starts())


@pytest.mark.parametrize("name", STARTS)
def test_closed_form_agrees_with_a_general_solver(name):
    start, times = STARTS[name], np.geomspace(0.02, 15.0, 12)
    curve = solve(start, times[-1], tolerance=1e-9)
    assert np.max(np.abs(curve.at("risk", times) / start.energy - general_solver(start, times))) < CLOSE


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


def test_riccati_both_forms_and_extreme_ranges():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((7, 20)) / 10.0
    lam, u = np.sort(rng.uniform(-2, 3, 7)), rng.uniform(0.01, 1.0, 7)
    F = np.exp(lam)
    direct = (F[:, None] * W) @ np.linalg.solve(np.eye(20) + 16.0 * W.T @ ((F**2 * u)[:, None] * W), W.T * F)
    assert isinstance(riccati(W), WideRiccati) and isinstance(riccati(W[:, :4]), NarrowRiccati)
    for form in (riccati(W), NarrowRiccati(W)):
        assert np.allclose(form(lam, u).full, direct, rtol=1e-12, atol=1e-15)
    # learned to the end, with e^λ beyond every float: K → 1/(16u) on the span
    huge = riccati(W)(np.array([0.0, 1.0, 50.0, 900.0, 2000.0, 3000.0, 9000.0]), u)
    assert np.all(np.isfinite(huge.full)) and np.allclose(huge.diagonal[3:], 1.0 / (16.0 * u[3:]), rtol=1e-9)
    narrow = riccati(W[:, :3])(np.array([0.0, 1.0, 50.0, 900.0, 2000.0, 3000.0, 9000.0]), u).full
    assert np.allclose(np.diagonal(narrow)[4:], 1.0 / (16.0 * u[4:]), rtol=1e-9)
    assert np.all(np.abs(narrow[:4]) < 1e-9)


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


@pytest.mark.parametrize("N", [6, 12, 40])
def test_tangent_flow_is_exact_in_the_end_and_right_on_the_way(N):
    target, d = ls.QuadraticTarget.exponential(12, seed=1), 12
    times = np.array([0.3, 2.0, 10.0])
    path = flow(target, ls.NeuralTangent(), width=N, times=[*times, 1e9])
    exact = float(ls.exact(target, ls.NeuralTangent(), width=N).risk)
    assert float(path.risk[-1]) == pytest.approx(exact, abs=1e-10)
    W = weights.draw(target, ls.NeuralTangent(), N, weights.generator(0, 0, N)).T
    B = np.diag(target.B) / np.sqrt(d)

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


def test_saddles_against_a_brute_force_hessian():
    target = ls.QuadraticTarget([3.0, 2.0, 1.0, 0.5], b0=0.4)
    rng = np.random.default_rng(0)
    B = np.diag(target.B)

    def risk(theta, N):
        W, c = theta[:-1].reshape(4, N), theta[-1]
        E = W @ W.T - B
        return 2.0 * np.sum(E**2) + (np.trace(E) + c - target.b0) ** 2

    def brute(theta, N, h=1e-4):
        size, steps = theta.size, np.eye(theta.size) * h
        f = lambda *moves: risk(theta + sum(moves), N)  # noqa: E731
        grad = np.array([(f(e) - f(-e)) / (2 * h) for e in steps])
        H = [[(f(a, b) - f(a, -b) - f(-a, b) + f(-a, -b)) / (4 * h * h) for b in steps] for a in steps]
        return np.linalg.norm(grad), np.linalg.eigvalsh(np.array(H).reshape(size, size))[0]

    for N in (1, 2, 5):
        W, c = rng.standard_normal((4, N)), 0.3
        found = strict_saddle(target, W, c)
        slope, curvature = brute(np.append(W.ravel(), c), N)
        assert found.gradient * 8 * 3**1.5 == pytest.approx(slope, rel=1e-5)
        assert found.smallest_curvature * 24 == pytest.approx(curvature, abs=1e-4)
        assert found.kind == "slope" and found.closed_form is None
    for kept, N in (([0], 1), ([1], 1), ([0, 1], 2), ([1, 3], 2), ([0, 1], 3), ([], 2), ([0, 1, 2, 3], 5)):
        W = np.zeros((4, N))
        for j, i in enumerate(kept):
            W[i, j] = np.sqrt(target.B[i])
        W = W @ np.linalg.qr(rng.standard_normal((N, N)))[0]
        found = strict_saddle(target, W, float(target.B.sum() - np.sum(W**2)) + target.b0)
        best = sorted(kept) == list(range(min(N, 4)))
        assert found.kind == ("minimum" if best else "strict saddle")
        assert min(found.smallest_curvature, 0.0) == pytest.approx(found.closed_form, abs=1e-9)


def test_a_large_saddle_by_lanczos():
    d, N = 40, 15
    target = ls.QuadraticTarget(np.linspace(1.0, 2.0, d))
    W = np.zeros((d, N))
    W[np.arange(N), np.arange(N)] = np.sqrt(target.B[:N])  # the smallest directions: as wrong as can be
    found = strict_saddle(target, W, float(target.B.sum() - np.sum(W**2)))
    assert found.kind == "strict saddle"
    assert found.smallest_curvature == pytest.approx(found.closed_form, abs=1e-6)
    assert found.closed_form == pytest.approx((1.0 - 2.0) / 2.0)


TARGET = ls.QuadraticTarget([2.0, 1.0, 0.5])
BAD = {
    "B that is not ⪰ 0": lambda: flow(ls.QuadraticTarget([1.0, -1.0]), ls.Trained(), width=1, times=[1.0]),
    "saddle of such a B": lambda: strict_saddle(ls.QuadraticTarget([1.0, -1.0]), np.ones((2, 1)), 0.0),
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
    "tolerance": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], tolerance=0.0),
    "seed": lambda: flow(TARGET, ls.Trained(), width=2, times=[1.0], seed=-1),
    "weights of a saddle": lambda: strict_saddle(TARGET, np.ones((2, 2)), 0.0),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    message = str(caught.value)
    assert "\n" not in message and 20 < len(message) < 600 and message.rstrip()[-1] in ".?"

"""SGD as a differential equation: its integrals, its right-hand side, its solutions, and SGD itself."""

from itertools import product
from math import pi, sqrt

import numpy as np
import pytest
from scipy.special import erf, ndtr

import lazyscope as ls
from lazyscope.experiments.dynamics.plateau import PlateauDraw
from lazyscope.limits.sgd.order_parameters import integrals
from lazyscope.limits.sgd.order_parameters.equations import covariance, rates
from lazyscope.limits.sgd.order_parameters.integrals import ERF, RELU, SQUARE
from lazyscope.limits.sgd.order_parameters.machine import Machine
from lazyscope.limits.sgd.order_parameters.relu import orthant4
from lazyscope.numerics.quadrature import panels

# Checked against SGD at d = 1000 (theory.md §12): erf(u/√2), N = r = 2, η = ½, Q₀ = ¼I, R₀ = diag(.02, .01)
TIMES = (0, 1, 5, 20, 50, 100, 150, 200)
ERRORS = (0.449443, 0.223219, 0.029018, 0.015208, 0.014876, 0.013680, 0.006702, 0.001081)
START = (0.25 * np.eye(2), np.diag([0.02, 0.01]))
PAIRS = [(a, b, c) for a, b in ((1.0, 1.0), (1e-6, 1e3), (1e3, 1e3), (1e-6, 1e-6), (0.3, 7.0))
         for c in (-1.0, -0.999999, -0.7, 0.0, 0.3, 0.999999, 1.0)]  # fmt: skip


def committee(name="erf2", r=2, d=1000, **options):
    return ls.MultiIndex(d, f"committee-{name}", indices=r, **options)


def three_fields(a, b, c):
    """Fields (u, v, w) with variances a, 2, b; u and w have the correlation c, and v some of both."""
    mixed = np.array([[1.0, 0.0, 0.0], [0.4, 1.0, -0.5], [c, 0.0, sqrt(max(0.0, 1.0 - c * c))]])
    mixed *= np.sqrt(np.array([a, 2.0, b]) / np.sum(mixed**2, axis=1))[:, None]
    return mixed @ mixed.T


def line(scale):
    """A rule for E F(g), g ~ N(0, 1), for F with a kink at 0 that varies over 1/√(1 + scale)."""
    near = np.linspace(0.0, 40.0, 81) / sqrt(1.0 + scale)
    edges = np.unique(np.concatenate([near[near < 12.0], np.linspace(0.0, 12.0, 25)]))
    g, w = panels(np.concatenate([-edges[:0:-1], edges]))
    return g, w * np.exp(-0.5 * g * g) / sqrt(2.0 * pi)


def given(C, kind, g):
    """E[σ(u) | w], E[σ′(u) | w] and E[σ′(u) v | w] at w = √C_ww g: Gaussian in what is left of u."""
    u, v, w = 0, 1, 2
    z = sqrt(C[w, w]) * g
    m, s2 = C[u, w] / C[w, w] * z, max(C[u, u] - C[u, w] ** 2 / C[w, w], 0.0)
    uv = C[u, v] - C[u, w] * C[v, w] / C[w, w]
    if kind == ERF:
        t = sqrt(1.0 + s2)
        slope = sqrt(2.0 / pi) / t * np.exp(-0.5 * (m / t) ** 2)
        bend = -m / t**2 * slope
        value = erf(m / t / sqrt(2.0))
    elif kind == RELU:
        s = max(sqrt(s2), 1e-300)
        with np.errstate(over="ignore"):
            density = np.exp(-0.5 * (m / s) ** 2) / s / sqrt(2.0 * pi)
        slope = ndtr(m / s)
        bend = density
        value = m * slope + s * s * density
    else:
        slope, bend, value = 2.0 * m, 2.0, m * m + s2
    return value, slope, slope * C[v, w] / C[w, w] * z + bend * uv


SIGMA = {
    ERF: lambda u: erf(u / sqrt(2.0)),
    RELU: lambda u: np.maximum(u, 0.0),
    SQUARE: lambda u: u * u,
}


@pytest.mark.parametrize("kind", [ERF, RELU, SQUARE])
@pytest.mark.parametrize(("a", "b", "c"), PAIRS)
def test_pairs_and_triples_agree_with_quadrature(kind, a, b, c):
    """I₂ and I₃: what is left of u given w is Gaussian; w itself is integrated numerically."""
    C = three_fields(a, b, c)
    sharp = 1.0 / max(1.0 - c * c, 1e-12) if kind == RELU else C[2, 2] + (C[0, 2] / sqrt(C[2, 2])) ** 2
    g, weight = line(sharp)
    value, _, moment = given(C, kind, g)
    sigma = SIGMA[kind](sqrt(C[2, 2]) * g)
    size = sqrt(integrals.two(kind, C, 0, 0) * integrals.two(kind, C, 2, 2))
    assert integrals.two(kind, C, 0, 2) == pytest.approx(weight @ (value * sigma), abs=1e-10 * max(1.0, size))
    size = max(1.0, sqrt(C[1, 1] * C[2, 2]))
    if kind == SQUARE:
        size *= max(1.0, sqrt(C[0, 0]) * C[2, 2])
    assert integrals.three(kind, C, 0, 1, 2) == pytest.approx(weight @ (moment * sigma), abs=1e-10 * size)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1e-6, 1e3), (1e3, 1e3), (1e-6, 1e-6)])
@pytest.mark.parametrize("c", [-1.0, -0.99, 0.2, 0.999, 1.0])
def test_four_error_functions_are_two_under_another_law(a, b, c):
    """σ′(u)σ′(v) of erf is a Gaussian weight: E[σ′σ′ σσ] = (2/π)|Λ|^−½ E[σσ] with covariance C − C P(I + PᵀCP)⁻¹PᵀC."""
    A = np.random.default_rng(3).standard_normal((4, 4))
    A[3] = c * A[2] / np.linalg.norm(A[2]) + sqrt(max(0.0, 1.0 - c * c)) * A[3] / np.linalg.norm(A[3])
    A *= np.sqrt(np.array([a, b, b, a]) / np.sum(A**2, axis=1))[:, None]
    C = A @ A.T
    Lambda = np.eye(2) + C[:2, :2]
    law = (C - C[:, :2] @ np.linalg.solve(Lambda, C[:2]))[2:, 2:]
    g, weight = line(law[0, 0])
    z = sqrt(law[0, 0]) * g
    s2 = max(law[1, 1] - law[0, 1] ** 2 / law[0, 0], 0.0)
    other = erf(law[0, 1] / law[0, 0] * z / sqrt(2.0 * (1.0 + s2)))
    expected = 2.0 / pi / sqrt(np.linalg.det(Lambda)) * (weight @ (erf(z / sqrt(2.0)) * other))
    assert integrals.four(ERF, C, 0, 1, 2, 3) == pytest.approx(expected, abs=1e-10)
    assert integrals.slopes(ERF, C, 0, 1) == pytest.approx(2.0 / pi / sqrt(np.linalg.det(Lambda)), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0, 1.0), (1e-6, 1e3, 1.0, 1e3)])
def test_four_rectified_fields_agree_with_quadrature(seed, sizes):
    """Three fields by quadrature over their positive octant; the fourth given them is a normal distribution."""
    A = np.random.default_rng(seed).standard_normal((4, 6))
    A *= np.sqrt(np.array(sizes) / np.sum(A**2, axis=1))[:, None]
    C = A @ A.T
    x, w = panels(np.array([0.0, 1.5, 4.0, 9.0]))
    fields = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.multiply.outer(np.multiply.outer(w, w), w).ravel()
    D = np.sqrt(np.diag(C))
    K = C / np.outer(D, D)
    inverse = np.linalg.inv(K[1:, 1:])
    density = np.exp(-0.5 * np.einsum("ni,ij,nj->n", fields, inverse, fields)) * sqrt(
        np.linalg.det(inverse) / (2 * pi) ** 3
    )
    mean = fields @ inverse @ K[1:, 0]
    spread = sqrt(K[0, 0] - K[0, 1:] @ inverse @ K[1:, 0])
    expected = weight @ (density * ndtr(mean / spread) * fields[:, 1] * fields[:, 2]) * D[2] * D[3]
    assert integrals.four(RELU, C, 0, 1, 2, 3) == pytest.approx(expected, abs=1e-10 * max(1.0, D[2] * D[3]))


def test_orthants_that_are_known():
    for rho, known in ((0.0, 1 / 16), (0.5, 1 / 5)):
        C = np.full((4, 4), rho) + (1.0 - rho) * np.eye(4)
        assert orthant4(C) == pytest.approx(known, abs=1e-13)


@pytest.mark.parametrize("kind", [ERF, RELU, SQUARE])
def test_parallel_fields_are_one_field(kind):
    """A field that is a copy of another gives the integral with the index of the other; opposite ReLUs never meet."""
    A = np.random.default_rng(1).standard_normal((3, 3))
    B = np.vstack([A, A[0], -A[0]])
    C = B @ B.T
    for i, j, k, m in product(range(3), repeat=4):
        copies = [3 if q == 0 else q for q in (i, j)]
        assert integrals.four(kind, C, *copies, k, m) == pytest.approx(
            integrals.four(kind, C, i, j, k, m), abs=1e-13 * abs(C).max() ** 3
        )
    if kind == RELU:
        assert integrals.four(RELU, C, 0, 4, 1, 2) == 0.0


def test_the_square_has_a_matrix_form():
    """ρ = gᵀDg + k − ε: E[ρσ′g] = 2((Tr DC + k)C + 2CDC), E[ρ²σ′σ′] = 4(E[ρ²]C + C E∇²ρ² C)."""
    rng = np.random.default_rng(0)
    N, r, noise, step, k = 3, 2, 0.4, 0.3, 0.7
    W, b, a = rng.standard_normal((N, 6)), np.array([1.0, 0.5]), np.array([1.0, -0.3, 2.0])
    state = np.concatenate([(W @ W.T).ravel(), W[:, :r].ravel(), a, [k]])
    C, D = covariance(state, N, r, 1.0), np.diag(np.concatenate([a, -b]))
    mean = np.trace(D @ C) + k
    drift = 2.0 * (mean * C + 2.0 * C @ D @ C)[:N] * a[:, None]
    square = 2.0 * np.trace(D @ C @ D @ C) + mean**2 + noise**2
    spread = 4.0 * (square * C + C @ (8.0 * D @ C @ D + 4.0 * mean * D) @ C)[:N, :N] * np.outer(a, a)
    layer = np.diag(C)[:N] * mean + 2.0 * np.diag(C @ D @ C)[:N]
    moved = rates(SQUARE, state, b, N, 1.0, noise, step, 1, 1)
    np.testing.assert_allclose(moved[: N * N].reshape(N, N), -drift[:, :N] - drift[:, :N].T + step * spread, rtol=1e-11)
    np.testing.assert_allclose(moved[N * N : N * (N + r)].reshape(N, r), -drift[:, N:], rtol=1e-11)
    np.testing.assert_allclose(moved[-N - 1 :], [*-layer, -mean], rtol=1e-11)


def test_the_eight_numbers():
    path = ls.order_parameters(committee(), ls.Trained("erf2"), times=TIMES, step_size=0.5, overlaps=START)
    np.testing.assert_allclose(path.epsilon_g, ERRORS, rtol=0, atol=2e-6)
    assert 5.0 < float(path.plateau_begin) < 20.0 and 50.0 < float(path.plateau_end) < 150.0
    np.testing.assert_allclose(path.risk, 2.0 * path.epsilon_g / committee().energy)


@pytest.mark.parametrize("name", ["erf2", "relu", "square"])
def test_neurons_have_no_names(name):
    Q, R = np.array([[0.5, 0.1, 0.0], [0.1, 0.4, 0.2], [0.0, 0.2, 0.6]]), np.array([[0.1, 0.2], [0.3, 0.0], [0.0, 0.1]])
    order = [2, 0, 1]
    ask = {"times": [0.5, 3.0], "step_size": 0.1, "second_layer": "trained"}
    one, other = (
        ls.order_parameters(committee(name, noise=0.2), ls.Trained(name), overlaps=start, **ask)
        for start in ((Q, R), (Q[np.ix_(order, order)], R[order]))
    )
    np.testing.assert_allclose(one.risk, other.risk, rtol=1e-8)
    np.testing.assert_allclose(one.R.values[:, order], other.R, atol=1e-8)


@pytest.mark.parametrize("name", ["erf", "erf2", "relu", "square"])
def test_a_network_that_is_the_target_stays(name):
    """Q = R = I and c = −E h without noise is a fixed point of risk 0; with noise it is none."""
    machine = Machine.of(committee(name), ls.Trained(name), 2)
    state = machine.start(np.eye(2), np.eye(2))
    state[-1] = 0.0
    states = machine.path(state, np.array([0.0, 5.0]), 0.3)
    np.testing.assert_allclose(states[1], states[0], atol=1e-12)
    assert np.all(machine.squared_error(states) < 1e-13)
    noisy = Machine.of(committee(name, noise=0.5), ls.Trained(name), 2)
    assert noisy.squared_error(noisy.path(state, np.array([1.0]), 0.02))[0] > 1e-5


def test_small_steps_on_squares_are_the_flow():
    """η → 0 on squares is gradient flow on ⟨x, Bx⟩, B of rank 2, with time 2t: its loss is twice ours."""
    d, times = 6, np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0])
    W = 0.7 * np.random.default_rng(0).standard_normal((d, 3)) / sqrt(d)
    target = ls.QuadraticTarget([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    theirs = ls.flow(target, ls.Trained(), times=times, start=(W, 2.0), second_layer="fixed", tolerance=1e-9)
    ours = ls.order_parameters(
        committee("square", d=d), ls.Trained(), times=2 * times, step_size=0, overlaps=(W.T @ W, W[:2].T)
    )
    np.testing.assert_allclose(ours.risk, theirs.risk, rtol=0, atol=1e-6)
    near = ls.order_parameters(
        committee("square", d=d), ls.Trained(), times=2e3 * times, step_size=1e-3, overlaps=(W.T @ W, W[:2].T)
    )
    np.testing.assert_allclose(near.risk, theirs.risk, rtol=0, atol=5e-3)


@pytest.mark.parametrize("name", ["erf2", "relu", "square"])
def test_sgd_lies_on_the_equation(name):
    """Twelve runs from the same overlaps in d = 250, before the plateau ends: three standard errors of their mean."""
    problem = committee(name, d=250, noise=0.2)
    runs = [PlateauDraw(problem, name, 0.25, (0.15, 0.05), 0.1, 4.0, k).compute() for k in range(12)]
    start = (0.25 * np.eye(2), np.diag([0.15, 0.05]))
    path = ls.order_parameters(problem, ls.Trained(name), times=runs[0]["time"], step_size=0.1, overlaps=start)
    risks = np.array([run["risk"] for run in runs])
    z = (risks.mean(axis=0) - path.risk.values) / (risks.std(axis=0, ddof=1) / sqrt(12))
    assert np.max(np.abs(z)) < 3.0


def test_the_claim_starts_where_simulate_does():
    """The overlaps at t = 0 are those of the weights of (0, 0, N), and the risk there is the measured one."""
    problem, regime = committee(d=40), ls.Trained("erf2", init=0.6)
    found = ls.limit(problem, regime, width=3, times=[0.0, 2.0], step_size=[0.2, 0.5])
    assert found.risk.dims == ("times", "step_size") and found.R.sizes["neuron"] == 3
    one = ls.SGD(steps=1, batch=1, step_sizes=(1e-12,), decay=(), test=100_000, second_layer="sum")
    measured = ls.simulate(problem, regime, width=3, protocol=one)
    assert float(found.risk[0, 0]) == pytest.approx(float(measured.tested), rel=0.02)  # 10⁵ samples: ±0.5 %
    several = ls.limit(problem, regime, width=[1, 3], times=2.0, step_size=0.2)
    assert several.risk.values[1] == pytest.approx(float(found.risk[1, 0])) and "Q" not in several


@pytest.mark.parametrize(
    ("problem", "regime", "ask", "error", "word"),
    [
        (committee("tanh"), ls.Trained("tanh"), {"width": 17}, ls.NoTheorem, "at most 16 neurons"),
        (ls.MultiIndex(9, "he3"), ls.Trained("sign"), {}, ls.NoTheorem, "σ with a derivative"),
        (
            ls.MultiIndex(9, "he3"),
            ls.Trained("cube"),
            {"width": 1, "step_size": 2.0, "times": 50.0},
            ls.NotConverged,
            "smaller",
        ),
        (committee(), ls.Trained("erf2", alpha=2.0), {}, ls.NoTheorem, "No limit result"),
        (committee(), ls.Trained("erf2"), {"width": 2.5}, ls.InvalidParameter, "whole number"),
        (committee(), ls.Trained("erf2"), {"width": np.inf}, ls.InvalidParameter, "whole number"),
        (committee(), ls.Trained("erf2"), {"width": 1000}, ls.NoTheorem, "at most 64"),
        (committee(), ls.Trained("erf2"), {"times": [-1.0]}, ls.InvalidParameter, "times"),
        (committee(), ls.Trained("erf2"), {"times": [1e9]}, ls.InvalidParameter, "at most"),
        (committee(), ls.Trained("erf2"), {"step_size": -0.1}, ls.InvalidParameter, "step_size"),
        (committee(), ls.Trained("erf2"), {"step_size": None}, ls.InvalidParameter, "step_size"),
        (committee("square"), ls.Trained(), {"step_size": 3.0, "times": 50.0}, ls.NotConverged, "smaller step"),
    ],
)
def test_what_has_no_equation_is_refused_in_a_line(problem, regime, ask, error, word):
    with pytest.raises(error, match=word) as caught:
        ls.limit(problem, regime, **({"width": 2, "times": 1.0, "step_size": 0.5} | ask))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("overlaps", "word"),
    [
        (1.0, "pair"),
        ((np.eye(2), np.eye(3)), "shapes"),
        ((np.eye(2), 2.0 * np.eye(2)), "negative eigenvalues"),
        ((np.array([[1.0, 0.5], [0.0, 1.0]]), 0.1 * np.eye(2)), "symmetric"),
    ],
)
def test_overlaps_that_no_weights_have_are_refused(overlaps, word):
    with pytest.raises(ls.InvalidParameter, match=word):
        ls.order_parameters(committee(), ls.Trained("erf2"), times=[1.0], step_size=0.1, overlaps=overlaps)

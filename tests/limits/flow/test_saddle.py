"""Strict saddles: the certificate against a brute-force Hessian, and by Lanczos where that is too large."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.limits.flow.saddle import strict_saddle


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
    "saddle of such a B": lambda: strict_saddle(ls.QuadraticTarget([1.0, -1.0]), np.ones((2, 1)), 0.0),
    "offset of a saddle": lambda: strict_saddle(TARGET, np.ones((3, 2)), np.nan),
    "weights of a saddle": lambda: strict_saddle(TARGET, np.ones((2, 2)), 0.0),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value)

"""SGD on both layers of the linearisation: zero at the start, a step that is the gradient, what exact says."""

import numpy as np

import lazyscope as ls
from lazyscope.training.sgd.joint import JointTangents


def test_the_model_is_zero_at_the_start_and_steps_along_its_gradient():
    rng, sigma, d, N, n, step = np.random.default_rng(0), ls.Activation("softplus"), 5, 7, 30, 0.3
    W = rng.standard_normal((N, d), dtype=np.float32)
    pack = JointTangents([W, W], [N, N], [step, 0.5 * step], sigma)
    X, y = rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal(n, dtype=np.float32)
    assert np.all(pack.outputs(X) == 0.0)  # Eq. 7: the network at the start is taken out
    H = (X @ W.T).astype(np.float64)
    values, slopes = sigma(H) - sigma.hermite(0), sigma.derivative(H)
    a, V, c = np.zeros(N), np.zeros((N, d)), 0.0
    for _ in range(3):
        r = (values @ a + np.einsum("ni,id,nd->n", slopes, V, X)) / N + c - y
        gradient = values.T @ r, np.einsum("n,ni,nd->id", r, slopes, X), r.sum()
        a, V, c = (old - 2.0 * step / n * g for old, g in zip((a, V, c), gradient, strict=True))
        pack.step(X, y, 1.0)
    assert np.allclose(pack.a[:N], a, rtol=1e-4, atol=1e-5)
    assert np.allclose(pack.state[:, :N], V.T, rtol=1e-4, atol=1e-5)
    assert np.isclose(pack.c[0], c, rtol=1e-4)
    assert not np.allclose(pack.a[N:], a, rtol=0.1)  # the other step size went elsewhere


def test_sgd_reaches_what_exact_says_and_more_than_nt():
    target, protocol = ls.QuadraticTarget.exponential(12, seed=3), ls.SGD(steps=20_000, step_sizes=(0.03,))
    at = {"width": 12, "protocol": protocol}
    joint = ls.simulate(target, ls.JointTangent("gelu"), **at).risk
    floor = ls.exact(target, ls.JointTangent("gelu"), width=12).risk
    tangent = ls.exact(target, ls.NeuralTangent("gelu"), width=12).risk
    assert abs(joint - floor) < 0.04 < tangent - floor + 0.03

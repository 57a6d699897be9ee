"""The eigendecomposition: that of NumPy, at every size, scale and order in memory, and in the memory of its matrix."""

import numpy as np
import pytest

from lazyscope.numerics.eigen import symmetric


@pytest.mark.parametrize("P", [1, 2, 3, 127, 128, 129, 130, 257, 300])  # blocks of 128 reflectors, P − 1 of them
@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_it_is_an_eigendecomposition_at_every_size_and_scale(P, scale):
    X = np.random.default_rng(P).standard_normal((P, P // 2 + 1))  # half of the eigenvalues are 0
    K = X @ X.T
    w, U = symmetric(scale * K)
    rounding = 8.0 * P * np.finfo(float).eps
    assert np.max(np.abs(w / scale - np.linalg.eigvalsh(K))) < rounding * np.max(w / scale)
    assert np.max(np.abs(U.T @ U - np.eye(P))) < rounding
    assert np.max(np.abs(K @ U - U * (w / scale))) < rounding * np.max(w / scale)


def test_zeros_and_eigenvalues_that_are_equal():
    for K in (np.zeros((5, 5)), np.eye(200), np.ones((150, 150))):
        w, U = symmetric(K.copy())
        assert np.allclose((U * w) @ U.T, K, atol=1e-12) and np.allclose(U.T @ U, np.eye(len(K)), atol=1e-12)


def test_the_vectors_take_the_memory_of_the_matrix_in_either_order():
    A = np.random.default_rng(0).standard_normal((40, 40))
    for K in (A + A.T, np.asfortranarray(A + A.T)):
        w, U = symmetric(K)
        assert np.shares_memory(U, K) and U.flags.f_contiguous
        assert np.allclose((U * w) @ U.T, A + A.T)

"""Products through pointers: the same as NumPy's, in place, and without the interpreter's lock."""

import threading
import time

import numpy as np
import pytest

from lazyscope.numerics.blas import gemm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("trans_a", [False, True])
def test_it_is_the_product(dtype, trans_a):
    rng = np.random.default_rng(0)
    A, B, C = (np.asfortranarray(rng.standard_normal(shape), dtype=dtype) for shape in ((5, 7), (7, 3), (5, 3)))
    expected = 2.0 * A @ B - 0.5 * C
    gemm(2.0, np.asfortranarray(A.T) if trans_a else A, B, -0.5, C, trans_a=trans_a)
    # seven products of numbers of order one
    assert np.max(np.abs(C - expected)) < 50 * np.finfo(dtype).eps


def test_what_would_be_read_wrongly_is_refused():
    A, C = np.ones((4, 3)), np.ones((4, 4), order="F")
    with pytest.raises(AssertionError, match="Fortran order"):
        gemm(1.0, A, A.T, 0.0, C)
    with pytest.raises(AssertionError, match="shapes agree"):
        gemm(1.0, np.asfortranarray(A), np.asfortranarray(A), 0.0, C)


@pytest.mark.slow  # it looks at the clock
def test_other_threads_run_meanwhile():
    A = np.asfortranarray(np.random.default_rng(0).standard_normal((1500, 1500)))
    C, counted, stop = np.zeros_like(A, order="F"), [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    began, before = time.perf_counter(), counted[0]
    for _ in range(4):
        gemm(1.0, A, A, 0.0, C)
    seconds, turns = time.perf_counter() - began, counted[0] - before
    stop.set()
    thread.join()
    # it sleeps half a millisecond a turn; with the lock held it would have one turn a product
    assert turns > 20 or seconds < 0.02

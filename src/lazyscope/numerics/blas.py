"""Matrix products of SciPy's BLAS, and its LAPACK, without the interpreter's lock, so that samples are drawn meanwhile.

`scipy.linalg.blas` holds the lock during a product. The same functions are exported for Cython, as pointers; called
through ctypes they let go of it. (NumPy's `@` lets go as well, but it cannot add to a matrix in place; and to use both
in one loop is 25 times slower on two cores: each brings its own pool of threads, and the pool that waits spins.)
Benchmarks: `side_by_side`, `sgd_against_torch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_LETTER = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_NUMBER = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}
_SMALL = 4_000_000  # multiplications in a product: a twentieth of a millisecond
_YES, _NO = ctypes.c_char(b"T"), ctypes.c_char(b"N")


def threads_for(multiplications: int) -> AbstractContextManager[object]:
    """Keep small products on one thread: to wake a second costs more than it saves, and ten times so if it is busy."""
    if multiplications > _SMALL:
        return nullcontext()
    return cast("AbstractContextManager[object]", _pools().limit(limits=1, user_api="blas"))


def hold_threads(most: int | None) -> None:
    """Keep all products of this process on so many threads from now on; None: on as many as at the first call.

    A line of the explorer is made of products of some hundred rows: where a browser keeps a core busy, a second thread
    is waited for at each of them, and the line takes ten times as long.

    >>> hold_threads(1)
    >>> threads()
    1
    >>> hold_threads(None)
    """
    usual = _usual_threads()
    _pools().limit(limits=usual if most is None else most, user_api="blas")


def threads() -> int:
    """Return on how many threads a large product runs.

    >>> with threads_for(0):
    ...     threads()
    1
    """
    return max((pool.num_threads for pool in _pools().lib_controllers if pool.user_api == "blas"), default=1)


@cache
def _usual_threads() -> int:
    return threads()


@cache
def cores() -> int:
    """Return how many processors this process may use: containers and affinity are seen."""
    from joblib import cpu_count

    return int(cpu_count())


@cache
def _pools() -> Any:
    """Return the pools of threads of NumPy's and SciPy's BLAS; to look for them takes milliseconds, so it is done once.

    SciPy's is loaded first: a library that comes later would not be found.
    """
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def gemm(
    alpha: float, A: NDArray[Any], B: NDArray[Any], beta: float, C: NDArray[Any], *, trans_a: bool = False
) -> None:
    """Replace C by alpha·AB + beta·C, Aᵀ for A where trans_a; all in Fortran order, float32 or float64: 2mnk flops.

    >>> A, C = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2), order="F")
    >>> gemm(1.0, A, A, -1.0, C)
    >>> C
    array([[ 6.,  9.],
           [14., 21.]])
    """
    (k, m), n, number = (A.shape if trans_a else A.shape[::-1]), B.shape[1], C.dtype
    assert A.flags.f_contiguous and B.flags.f_contiguous and C.flags.f_contiguous, "Fortran order"
    assert A.dtype == number and B.dtype == number, "one type"
    assert B.shape[0] == k and C.shape == (m, n), "shapes agree"
    call, first, of_A, of_B, of_C = _prepared(number, trans_a, m, n, k, alpha, beta)
    call(*first, A.ctypes.data, *of_A, B.ctypes.data, *of_B, C.ctypes.data, *of_C)


@lru_cache(maxsize=64)
def _prepared(
    dtype: np.dtype[Any], trans_a: bool, m: int, n: int, k: int, alpha: float, beta: float
) -> tuple[Callable[..., None], tuple[Any, ...], tuple[Any], tuple[Any, Any], tuple[Any]]:
    """Return BLAS's function and its arguments before, between and after the matrices; a loop uses the same ones."""
    refer, number = ctypes.byref, _NUMBER[dtype]
    rows, columns, inner = (refer(ctypes.c_int(size)) for size in (m, n, k))
    leading = [refer(ctypes.c_int(max(1, size))) for size in (k if trans_a else m, k, m)]
    return (
        _function(_LETTER[dtype] + "gemm"),
        (refer(_YES if trans_a else _NO), refer(_NO), rows, columns, inner, refer(number(alpha))),
        (leading[0],),
        (leading[1], refer(number(beta))),
        (leading[2],),
    )


def lapack(name: str, *arguments: Any, info: bool = True) -> int:
    """Call a function of LAPACK, letters, whole numbers and arrays in its own order; return its `info`, if it has one.

    >>> w, beside = np.array([2.0, 2.0]), np.array([1.0])
    >>> lapack("dsterf", 2, w, beside), w  # eigenvalues of a tridiagonal matrix
    (0, array([1., 3.]))
    """
    kept: list[Any] = [_argument(argument) for argument in (*arguments, *([0] if info else []))]
    call = _function(name, len(kept), "cython_lapack")
    call(*(argument.ctypes.data if isinstance(argument, np.ndarray) else ctypes.byref(argument) for argument in kept))
    return int(kept[-1].value) if info else 0


def _argument(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument
    return ctypes.c_char(argument) if isinstance(argument, bytes) else ctypes.c_int(argument)


@cache
def _function(name: str, arguments: int = 13, module: str = "cython_blas") -> Callable[..., None]:
    from importlib import import_module

    capsule = import_module(f"scipy.linalg.{module}").__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)

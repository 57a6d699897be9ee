"""Loops over arrays as machine code, by numba. Benchmark: `one_sample_a_step`, against the same loop in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function of arrays and numbers with numba when it is first called, and keep the code on disk.

    Not when it is defined: numba takes half a second to load, and most of lazyscope does without. The code runs
    without the interpreter's lock, divides as NumPy does (no check for zero, which would forbid vector instructions),
    and never reorders a sum: the same bits on every processor.

    >>> @compiled
    ... def total(x):
    ...     s = 0.0
    ...     for value in x:
    ...         s += value
    ...     return s
    >>> import numpy as np
    >>> total(np.array([1.0, 2.0]))
    3.0
    """
    machine_code = cache(lambda: jitted(function))

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return machine_code()(*arguments)

    return cast(F, call)


def jitted(function: F) -> F:
    """Have numba compile a function at its first call, now that numba is loaded; for code that calls other such code.

    Where neither the package nor the home can be written to, the code is kept for this process only.
    """
    import numba

    how: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=_has_source(function), **how)(function))
    except RuntimeError:  # numba found no place for its cache
        return cast(F, numba.njit(**how)(function))


def _has_source(function: Callable[..., Any]) -> bool:
    """Say whether code can be kept beside a file: not for what was typed at a prompt."""
    from pathlib import Path

    return Path(function.__code__.co_filename).is_file()

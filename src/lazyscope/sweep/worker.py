"""What a worker does: one task, from its own specification alone, with one thread in the linear algebra.

The last bits of a matrix product depend on the number of threads. With one of them, where a task runs and beside how
many others never shows in its numbers.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from lazyscope.errors import LazyscopeError
from lazyscope.evidence.work import Work
from lazyscope.sweep.plan import NUMERICS
from lazyscope.sweep.store import Outcome


def compute(work: Work, key: str, numerics: str) -> Outcome:
    """Compute one task. An error becomes part of the outcome: a sweep does not end because one of its tasks does."""
    began = time.perf_counter()
    row, failure = None, None
    try:
        if numerics != NUMERICS[work.fidelity]:
            raise LazyscopeError("This worker runs another version of lazyscope than the driver. Install the same one.")
        hold_one_thread()
        row = work.compute()
        bad = [name for name, values in row.items() if values.dtype.kind == "f" and np.isnan(values).any()]
        if bad:
            row, failure = None, f"NaN in {', '.join(bad)}, which no result may have."
    except LazyscopeError as error:
        failure = str(error)
    except MemoryError as error:
        failure = f"Out of memory ({error})." if str(error) else "Out of memory."
    except Exception as error:  # a mistake in the code, ours or a library's: kept with the task it belongs to
        failure = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome(key, row, failure, time.perf_counter() - began, versions())


def hold_one_thread() -> None:
    """Hold the linear algebra of this process to one thread, for good, or refuse to compute.

    For good: the limit belongs to the process, and a Dask worker runs several tasks in threads of one process, none of
    which may lift it while another is at work. All libraries are loaded first: one that comes later would not be held.
    """
    import scipy.linalg  # noqa: F401 (brings a BLAS of its own)
    from threadpoolctl import ThreadpoolController

    pools = ThreadpoolController()  # to look for them takes milliseconds: once for both
    pools.limit(limits=1)
    # threadpoolctl ignores a thread while another of the same process has set a limit of its own
    most = max((library["num_threads"] for library in pools.info() if library["user_api"] == "blas"), default=1)
    if most > 1:
        raise LazyscopeError(
            f"Another thread of this process holds its linear algebra at {most} threads, and the last bits depend on "
            "their number. Run the sweep in a process of its own."
        )


@contextmanager
def threads_given_back() -> Iterator[None]:
    """Put the number of threads back at the end of this block, for a process that does other things too."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits():
        yield


@cache
def versions() -> str:
    """Return what the numbers were computed with, down to the kernels of the BLAS: part of their provenance."""
    import scipy
    from threadpoolctl import threadpool_info

    from lazyscope import __version__

    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    names = {"lazyscope": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    return json.dumps(names | {"python": platform.python_version(), "blas": ", ".join(sorted(blas))})

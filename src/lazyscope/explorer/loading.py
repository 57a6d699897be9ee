"""First imports, all in one thread, before the first answer is computed.

Threads that import at once packages whose modules import one another, as Dask's and SciPy's do, would wait for each
other forever; Python sees that and gives one of them a module that is half made. Its request then fails by an
`ImportError`, once in some thousand starts. What no answer imports, no two answers can import at once.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import threading
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

_OTHERS = (
    "dask.array",  # xarray asks it what an array is, where it is installed
    "scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "scipy.special", "scipy.stats",
    "threadpoolctl", "xarray", "xarray.indexes",
)  # fmt: skip
_OURS = ("lazyscope.limits", "lazyscope.population", "lazyscope.training", "lazyscope.runs")


def begun() -> asyncio.Future[None]:
    """Begin in a daemon thread; return a future that is done when all is imported."""
    loop = asyncio.get_running_loop()
    loaded: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not loaded.done():
            loaded.set_result(None)

    def work() -> None:
        try:
            load()
        finally:  # a mistake on the way must not make all requests wait for ever
            with suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(tell)

    threading.Thread(target=work, name="imports", daemon=True).start()
    return loaded


def load() -> None:
    """Import whatever a view may need; what cannot be imported says so where it is needed.

    >>> import sys
    >>> load()
    >>> "lazyscope.limits.margin.separability" in sys.modules
    True
    """
    from lazyscope.evidence.registry import claims
    from lazyscope.numerics.exponential import exp_in_place

    for name in (*_OTHERS, *(name for package in _OURS for name in _modules(package))):
        with suppress(ImportError):
            importlib.import_module(name)
    claims()
    exp_in_place(np.zeros(1))  # numba imports most of itself when it first compiles, or loads what it has compiled


def _modules(package: str) -> Iterator[str]:
    """Yield a package and all that is in it."""
    yield package
    inside = importlib.import_module(package)
    yield from (found.name for found in pkgutil.walk_packages(inside.__path__, f"{package}."))

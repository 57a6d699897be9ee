"""Neurons in blocks that fit in cache, blocks on all cores: matrix products and elementwise passes side by side.

A block's products run on one thread of BLAS each. The blocks, and the order in which they are added up, do not depend
on how many cores there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any, TypeVar

from numpy.typing import DTypeLike, NDArray

from lazyscope.numerics.blas import threads, threads_for

_ENTRIES = 1 << 16  # of a block: 0.25 MB in float32, 0.5 MB in float64
_SMALL = 2e7  # flops that are not worth a second thread

Part = TypeVar("Part")


def blocks_of(rows: int, columns: int) -> list[slice]:
    """Split the rows of a (rows, columns) table into blocks.

    >>> len(blocks_of(10_000, 1000)), blocks_of(3, 1)
    (157, [slice(0, 3, None)])
    """
    size = max(16, _ENTRIES // max(1, columns) // 8 * 8)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def over_blocks(task: Callable[[slice], Part], blocks: Sequence[slice], flops: float) -> list[Part]:
    """Return task(block) for every block, in order, on as many threads as BLAS may use.

    >>> over_blocks(lambda part: part.stop, [slice(0, 2), slice(2, 3)], 1.0)
    [2, 3]
    """
    if (workers := threads()) < 2 or len(blocks) < 2 or flops < _SMALL:
        return [task(block) for block in blocks]
    with threads_for(0), ThreadPoolExecutor(min(workers, len(blocks))) as pool:
        return list(pool.map(task, blocks))


def scratch(count: int, rows: int, columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return memory of this thread, (count, rows, columns), to be used until the next call: fresh pages cost time.

    >>> import numpy as np
    >>> scratch(2, 3, 4, np.float64).shape
    (2, 3, 4)
    """
    import numpy as np

    size = count * rows * columns * np.dtype(dtype).itemsize
    memory = getattr(_own, "memory", None)
    if memory is None or memory.size < size:
        memory = _own.memory = np.empty(size, dtype=np.uint8)
    return memory[:size].view(dtype).reshape(count, rows, columns)


_own = local()

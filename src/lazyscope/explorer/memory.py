"""Memory of a server that runs for days: what is freed goes back to the system.

The C library of Linux keeps a pool for each thread, and after the first large array also large ones in it, where a
small object that stays holds all that was freed below it: fifty sliders took 100 MB in a minute. Here are one pool
and, from 128 kB on, pages of the system for each array. Answers take as long as before.
"""

from __future__ import annotations

import ctypes
import sys

_LIMIT = 128 * 1024  # bytes, where the C library begins, too; to name it makes it stay there
_SETTINGS = {-8: 1, -3: _LIMIT, -1: _LIMIT}  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of <malloc.h>


def give_back() -> None:
    """Set it for this process, before its threads start; nothing where the C library is another one than glibc."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        for setting, value in _SETTINGS.items():
            library.mallopt(setting, value)

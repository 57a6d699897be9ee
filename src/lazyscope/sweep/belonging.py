"""A worker belongs to its driver from its first moment: it leaves Ctrl-C to it, and does not outlive it.

On Linux the kernel ends a worker together with its driver, whatever the worker is doing. Elsewhere a thread of the
worker looks for the driver once a second.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

_LOOK = 1.0  # seconds between two looks of a worker for its driver
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


@dataclass(frozen=True)
class Driver:
    """The process that a worker works for.

    The kernel's signal comes when the *thread* that started the worker ends. It is safe to ask for only where that is
    the main thread, which lives as long as its process. loky pickles what it tells a worker in the thread that starts
    it, just before it does, so that is where to look.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(Driver(12)))
    Driver(process=12, signals=True)
    """

    process: int
    signals: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Say, in the copy that travels, whether the thread that sends it lives as long as its process."""
        return Driver, (self.process, threading.current_thread() is threading.main_thread())


def belong_to(driver: Driver) -> None:
    """Leave Ctrl-C to the driver, and end when it has ended, however it did; loky would idle for five minutes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if driver.signals:
        _ask_for_signal()
    if os.getppid() != driver.process:  # it ended before it could be asked for: no signal will come
        os._exit(1)

    def watch() -> None:
        while os.getppid() == driver.process:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="lazyscope-watch").start()


def _ask_for_signal() -> None:
    """Have the kernel kill this process when its parent ends; where there is no such call, the watch has to do."""
    if sys.platform == "linux":
        import ctypes

        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        except (OSError, AttributeError):  # a system without a C library that can be loaded
            return

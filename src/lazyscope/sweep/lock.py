"""One driver for each store: a lock that the kernel takes back when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lazyscope.errors import InvalidParameter, LazyscopeError


@contextmanager
def alone(store: Path) -> Iterator[None]:
    """Hold the store for this process, or refuse and say who has it; the lock file goes when the holder leaves.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder, "a.sqlite")):
    ...     print(holder(Path(folder, "a.sqlite")) == f"process {os.getpid()} on {socket.gethostname()}")
    True
    """
    path = _lock_file(store)
    descriptor = _acquired(path, store)
    try:
        os.truncate(descriptor, 0)
        with suppress(OSError):  # a full disk: the name is for others to read, the lock holds without
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # before the lock is given back: see `_acquired`
        os.close(descriptor)


def holder(store: Path) -> str | None:
    """Return which process is driving a store, None if there is none."""
    path = _lock_file(store)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return path.read_text(encoding="utf-8", errors="replace") or "another process"
    finally:
        os.close(descriptor)
    return None


def _lock_file(store: Path) -> Path:
    # Beside the store, not the store itself: to close any descriptor of a file drops the locks that SQLite has on it.
    return store.with_name(store.name + "-lock")


def _acquired(path: Path, store: Path) -> int:
    """Return a descriptor of the locked file; of the one that has the name now, not of one that was just removed."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise LazyscopeError(f"The store {store} could not be locked: {error.strerror}, {path}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(descriptor)
            got = f"{store}, which {holder(store) or 'another process'} is filling"
            advice = "Wait until it is done, or use another store."
            raise InvalidParameter.of("sweep", "store", "be filled by one run at a time", got, advice) from None
        os.close(descriptor)

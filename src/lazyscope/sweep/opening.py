"""Checks before a store is opened: whether the file is ours and SQLite can use it, and the errors where not.

A store is known by the first hundred bytes of its file, which SQLite calls the header. They are the same whether the
file is at rest, has a log beside it, or was left in the middle of a checkpoint; and to read them changes nothing.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from lazyscope.errors import LazyscopeError, UnreadableFile

APPLICATION = 0x4C5A5343  # "LZSC", in the header of the file: what says that a database is ours
LAYOUT = 1  # of the tables; in the header too
LOGS = ("-wal", "-journal")  # beside the file while it is being changed; the file is not whole without them
_MAGIC, _HEADER = b"SQLite format 3\0", 100
_PATIENCE = 10.0  # seconds that a connection waits for another to let go
_NO_ROOM = 2**16  # bytes: less is free on a full disk; SQLite asks for half of it at once
_ADVICE = "Choose another file; this one was left as it is."

# To close any descriptor of a file drops the locks that SQLite has on it for this process, so the header of a store
# is not read where this process has it open.
_door = threading.Lock()
_inside: Counter[tuple[int, int]] = Counter()


def recognise(file: Path) -> None:
    """Refuse what is no store of ours, without changing a byte of it or of its log."""
    with _door:
        _look(file)


@contextmanager
def connected(file: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open a store of ours; `mode` is SQLite's: `ro` to read, `rw` to write."""
    with _door:
        _look(file)
        place = _place(file)
        _inside[place] += 1
    try:
        uri = f"file:{quote(str(file.resolve()))}?mode={mode}"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE)) as db:
            _begin(file, db)
            yield db
    finally:
        with _door:
            _inside[place] -= 1


def _begin(file: Path, db: sqlite3.Connection) -> None:
    """Read through the log, if there is one; undo what a process left half done that died while it changed the file."""
    try:
        (layout,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_READONLY:
            raise
        with closing(sqlite3.connect(file, timeout=_PATIENCE)) as repairing:  # what only a writer may undo
            repairing.execute("PRAGMA user_version").fetchone()
        (layout,) = db.execute("PRAGMA user_version").fetchone()
    _check_layout(file, layout)


def _look(file: Path) -> None:
    must = "be a store that lazyscope made, or a new file"
    try:
        if _inside[_place(file)]:
            return
        with file.open("rb") as stream:
            header = stream.read(_HEADER)
    except OSError as error:
        got = error.strerror or error
        raise UnreadableFile(f"The store {file} must be readable. Got {got} instead. Check its permissions.") from None
    if not header:
        raise UnreadableFile(f"The file {file} must {must}. Got an empty file instead. {_ADVICE}")
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise UnreadableFile(f"The file {file} must {must}. Got other content (file is not a database). {_ADVICE}")
    if int.from_bytes(header[68:72], "big") != APPLICATION:
        raise UnreadableFile(f"The file {file} must {must}. Got another database instead. {_ADVICE}")
    _check_layout(file, int.from_bytes(header[60:64], "big"))


def _check_layout(file: Path, layout: int) -> None:
    if layout != LAYOUT:
        got = f"layout {layout} where this version of lazyscope knows {LAYOUT}"
        raise UnreadableFile(f"The store {file} must be of a layout that is known. Got {got} instead. {_ADVICE}")


def _place(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_dev, stat.st_ino


def check_new(file: Path) -> None:
    """Refuse to make a store where the log of another is left, which SQLite would take for the new one's.

    Half-made stores of processes that were killed are cleared away; the caller holds the lock, so they are nobody's.
    """
    for log in (file.with_name(file.name + end) for end in LOGS):
        if log.exists() and log.stat().st_size:
            raise UnreadableFile(
                f"The store {file} must be there where its log is. Got the log {log} without it instead. Put the store "
                "back, or move the log away to begin anew."
            )
    target = file.resolve()
    half = re.compile(rf"\.{re.escape(target.stem)}\.\d+\.part{re.escape(target.suffix)}(-journal)?")
    for path in target.parent.iterdir():
        if half.fullmatch(path.name):
            path.unlink(missing_ok=True)


def damaged(file: Path, what: str) -> UnreadableFile:
    """Return the error for a store that is not whole."""
    return UnreadableFile(
        f"The store {file} must be whole. Got a damaged file instead ({what}). Restore it from a copy, or run again "
        "with another store."
    )


@contextmanager
def told(file: Path) -> Iterator[None]:
    """Return in one line what SQLite finds wrong with the file, and what that means for the results in it."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite names what is spoilt in a message that is no text itself
        raise damaged(file, "a name in it is no text") from error
    except sqlite3.DatabaseError as error:
        if (
            not isinstance(error, sqlite3.OperationalError) or _code(error) is None
        ):  # None: a text that cannot be decoded
            raise damaged(file, " ".join(str(error).split())) from error
        full = _code(error) == sqlite3.SQLITE_FULL or shutil.disk_usage(file.parent).free < _NO_ROOM
        why = "the disk is full" if full else str(error)  # locked, read-only, no longer there
        room = "Make room, and run the same command again." if full else "Run the same command again."
        kept = f"What it holds is kept. {room}" if file.exists() else f"Nothing was computed. {room}"
        raise LazyscopeError(f"The store {file} could not be used: {why}. {kept}") from error


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's number of an error without its details; None if the error is not SQLite's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF

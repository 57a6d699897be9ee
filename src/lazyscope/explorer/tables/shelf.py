"""The tables of a page: examples, and files that were sent, named by what is in them; the oldest are forgotten.

    <shelf>/0123456789abcdef/house.csv

A link has the name and not the table: whoever has the same file, chooses it and opens the link, sees the same.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lazyscope.errors import UnreadableFile
from lazyscope.explorer.tables import reading
from lazyscope.explorer.tables.reading import Columns, Known, Source
from lazyscope.lenses.data.table import EXAMPLES

PATTERN = f"^({'|'.join(EXAMPLES)}|[0-9a-f]{{16}})$"
_FILES = 4
_POOLS = 6
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:]+")


def here(name: str, *arguments: Any) -> Any:
    """Read in this process: in the worker that makes dots, and where there is no server."""
    return getattr(reading, name)(*arguments)


class Shelf:
    """Files and decomposed pools, a few of each; `read` does the reading, in another process where there is one."""

    def __init__(self, read: Callable[..., Any] = here) -> None:
        self.read = read
        self.folder: Path | None = None
        self._pools: OrderedDict[tuple[Any, ...], Known] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes) -> tuple[str, str, Columns]:
        """Keep a file that can be read; return its key, its name and what it has."""
        name = _UNSAFE.sub("_", name)[-100:].strip() or "table"
        if Path(name).suffix.lower() not in reading.SUFFIXES:
            reading.check(Path(name), name)
        key = hashlib.sha256(name.encode() + b"\0" + content).hexdigest()[:16]
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="lazyscope-tables-"))  # for this user alone
        place = self.folder / key
        place.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
        try:
            columns: Columns = self.read("look", Source(name, str(place / name)))
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._forget(place)
        return key, name, columns

    def source(self, key: str) -> Source:
        """Return where a table is."""
        if key in EXAMPLES:
            return Source(key)
        place = self.folder / key if self.folder is not None else None
        files = (
            list(place.iterdir()) if place is not None and re.fullmatch("[0-9a-f]{16}", key) and place.is_dir() else []
        )
        if not files:
            raise reading.forgotten(key)
        return Source(files[0].name, str(files[0]))

    def known(self, key: str, target: str, regime: Any) -> Known:
        """Return the decomposed table, the latest from memory; one at a time is decomposed."""
        wanted = (key, target, type(regime), regime.activation.name)
        with self._lock:
            if wanted not in self._pools:
                source = self.source(key)
                try:
                    self._pools[wanted] = self.read("known", source, target, regime)
                except UnreadableFile:
                    if source.path is not None and not Path(source.path).is_file():  # forgotten meanwhile
                        raise reading.forgotten(source.name) from None
                    raise
                while len(self._pools) > _POOLS:
                    self._pools.popitem(last=False)
            self._pools.move_to_end(wanted)
            return self._pools[wanted]

    def close(self) -> None:
        """Forget everything, and leave no file behind."""
        self._pools.clear()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _forget(self, latest: Path) -> None:
        """Remove the oldest of many files."""
        latest.touch()
        assert self.folder is not None
        places = sorted(self.folder.iterdir(), key=lambda place: place.stat().st_mtime_ns, reverse=True)
        for place in places[_FILES:]:
            shutil.rmtree(place, ignore_errors=True)


SHELF = Shelf()
"""The shelf of this process: views ask it, and a server gives it a `read` of its own."""

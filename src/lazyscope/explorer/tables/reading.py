"""From the bytes that a page sent to a table, and from a table to its forecaster; nothing is unpickled.

Whatever is done to a user's file is done here, in a process of its own (`process`): what is refused is refused in a
line, and what takes long, or all of the memory, does not take the server with it.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import arithmetic
from lazyscope.errors import TooLarge, UnreadableFile

if TYPE_CHECKING:
    import pandas as pd

    from lazyscope.lenses.data.table import Table
    from lazyscope.lenses.forecast.verb import Forecaster

MOST_BYTES = 20_000_000
"""Of a file."""

MOST_ROWS = 2500
"""Of the kernel matrix, drawn at random: 150 MB while it is decomposed, for some seconds."""

SUFFIXES = (".csv", ".tsv", ".npz")
_UNPACKED = 200_000_000  # bytes of all arrays in an archive
_COLUMNS = 5000
_NUMBERS = 40_000_000  # rows × columns, categories one column each
_UNEVEN = 2.0  # E‖x‖⁴/(E‖x‖²)²
FARTHER = 10.0
"""How many times the rows a curve goes, where there are rows to continue from."""


@dataclass(frozen=True)
class Source:
    """Where a table is: a file under the name that its owner gave it, or the name of an example."""

    name: str
    path: str | None = None


@dataclass(frozen=True)
class Columns:
    """What a table has: rows, and columns of which one is the likeliest target."""

    rows: int
    columns: tuple[str, ...]
    target: str


@dataclass(frozen=True, eq=False)
class Known:
    """A decomposed table, ready to answer for up to `far` rows; what was done to it, and advice, in words."""

    forecaster: Forecaster
    about: str
    columns: Columns
    target: str
    rows: int
    far: int
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]


def look(source: Source) -> Columns:
    """Read a table, and say what it has.

    >>> look(Source("diabetes")).target
    'target'
    """
    from lazyscope.lenses.data.columns import unusable

    frame = _frame(source)
    names = [str(name) for name in frame.columns]
    usual = [name for name in names if name.lower() in ("target", "y")]
    text = set(unusable(frame, ""))
    return Columns(len(frame), tuple(names), (usual or [name for name in names if name not in text] or names)[-1])


def table_of(source: Source, target: str) -> tuple[Table, tuple[str, ...]]:
    """Return the table with its target, the usual one if none is named, and the columns that had to be left out."""
    from lazyscope.lenses.data.columns import unusable
    from lazyscope.lenses.data.table import describe

    frame, chosen = _frame(source), target or look(source).target
    dropped = tuple(unusable(frame, chosen))
    table = describe(frame, chosen, drop=dropped, name=Path(source.name).stem)
    categories = [name for name in table.X.columns if table.X[name].dtype.kind != "f"]
    wide = table.X.shape[1] + sum(min(50, table.X[name].nunique()) for name in categories)
    if wide * len(table.y) > _NUMBERS:
        raise TooLarge(
            f"{len(table.y):,} rows of {wide:,} columns, one for each category, are more than {_NUMBERS:,} numbers. "
            "Use fewer rows or columns."
        )
    return table, dropped


def known(source: Source, target: str, regime: Any) -> Known:
    """Decompose the kernel of a table, of at most `MOST_ROWS` of its rows: about 6P³ flops, 3 matrices of P×P."""
    from lazyscope.lenses.forecast.advice import advise
    from lazyscope.lenses.forecast.extrapolate import LEAST_ROWS
    from lazyscope.lenses.forecast.of_table import forecaster
    from lazyscope.regimes import NeuralTangent

    table, dropped = table_of(source, target)
    rows = len(table.y)
    most = FARTHER * min(rows, MOST_ROWS) if rows >= 2 * LEAST_ROWS else 1.0
    with arithmetic("A forecast of this table"):
        found, pool, notes = forecaster(table, regime, MOST_ROWS, 0, most)
    at_hand = rows if found.beyond is not None else max(1, found.rows // 2)
    advice = advise(found, at_hand, widths=not isinstance(regime, NeuralTangent)).lines
    neither = f"columns that are neither numbers, categories nor dates were left out: {', '.join(dropped)}"
    left = (neither,) if dropped else ()
    said = (*left, *table.notes, *notes, *pool.notes, *_uneven(table))
    far = found.rows if found.beyond is None else int(min(FARTHER * found.rows, max(most, 2.0 * rows)))
    return Known(found, str(table), look(source), table.target, rows, far, dropped, said, advice)


def _uneven(table: Table) -> tuple[str, ...]:
    """Say where a few rows are much longer than the others: forecasts of narrow networks need rows that are alike.

    Measured over forecast errors at λ = 10⁻³ and N = 100 or 400 were 1.02 to 1.12 where E‖x‖⁴/(E‖x‖²)² = 1.3 (diabetes)
    and 1.16 to 1.41 where it was 2.8 (breast cancer); where it was 4.1 (digits, scaled), up to 2.3 at λ = 10⁻⁴.
    """
    from lazyscope.lenses.data.preparing import whole

    X = whole(table)
    squares = np.einsum("nd,nd->n", X, X)
    if np.mean(squares**2) < _UNEVEN * np.mean(squares) ** 2:
        return ()
    return (
        "a few rows are much longer than the others: at finite N and a small ridge, errors are larger than forecast",
    )


def check(path: Path, name: str) -> None:
    """Refuse what is no table by its name, or would not be small once it is read."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnreadableFile(f"The file {name} must end in {', '.join(SUFFIXES)}. Got {suffix or 'no ending'} instead.")
    if suffix == ".npz":
        _check_archive(path, name)
        return
    with path.open("rb") as lines:
        columns = max(lines.readline().count(separator) for separator in (b",", b";", b"\t")) + 1
    _bounded(name, "columns", columns, _COLUMNS)


def _check_archive(path: Path, name: str) -> None:
    """Look at the headers of all arrays before one is read: a small archive may hold any number of zeros."""
    must = f"The file {name} must be an archive of arrays, as numpy.savez writes it. Got"
    if not zipfile.is_zipfile(path):
        raise UnreadableFile(f"{must} something else instead.")
    columns, unpacked = 0, 0
    try:
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                with archive.open(one) as member:
                    version = np.lib.format.read_magic(member)
                    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2_0
                    shape, _, dtype = read(member)
                if dtype.hasobject:
                    raise UnreadableFile(f"{must} {one.filename} with Python objects instead, which is not opened.")
                columns += 1 if len(shape) < 2 else int(shape[1])
                unpacked += int(np.prod([float(size) for size in shape])) * dtype.itemsize
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{must} {' '.join(str(error).split())[:120]} instead.") from None
    _bounded(name, "columns", columns, _COLUMNS)
    _bounded(name, "bytes of numbers", unpacked, _UNPACKED)


def _header_2_0(member: Any) -> Any:
    return np.lib.format.read_array_header_2_0(member)


def _bounded(name: str, what: str, got: int, most: int) -> None:
    if got > most:
        raise TooLarge(f"The file {name} must hold at most {most:,} {what}. Got {got:,} instead.")


@lru_cache(maxsize=2)
def _frame(source: Source) -> pd.DataFrame:
    """Return a table as it stands, the latest two from memory."""
    from lazyscope.lenses.data import table

    if source.path is None:
        example = table.example(source.name)
        return example.X.assign(target=example.y)
    path = Path(source.path)
    if not path.is_file():
        raise forgotten(source.name)
    check(path, source.name)
    try:
        return table.read(path)
    except UnreadableFile as error:  # by the name that the user knows
        raise UnreadableFile(str(error).replace(source.path, source.name)) from None
    except MemoryError:
        raise TooLarge(f"The file {source.name} does not fit in memory.") from None


def forgotten(name: str) -> UnreadableFile:
    """Return what is said of a table that is not on the shelf."""
    return UnreadableFile(f"The table {name} is not in this server's memory. Choose its file again.")

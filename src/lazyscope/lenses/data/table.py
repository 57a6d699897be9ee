"""Tables that users bring: CSV, Parquet, NPZ, a pandas frame or arrays; what is a number, a category, a target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.errors import InvalidParameter, UnreadableFile
from lazyscope.files import unreadable
from lazyscope.lenses.data.columns import FEW_CATEGORIES, different_values, shortened, usable, with_decimal_commas

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["regression", "classification"]
EXAMPLES = ("diabetes", "digits", "breast_cancer")
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")
_OWNER = "the table"
_LEAST_ROWS = 4
_FEW_VALUES = 20  # whole numbers with no more values than this are classes
_LISTED = 12  # columns in a message


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs as a frame of numbers and categories, a target without gaps, and what was done to them in words."""

    X: pd.DataFrame
    y: Any
    task: Task
    name: str
    target: str
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        n, d = self.X.shape
        what = f"{len(np.unique(self.y))} classes" if self.task == "classification" else "a number"
        return f"{self.name}: {n:,} rows, {d} column{'s' * (d != 1)}, target {self.target} ({what})"


def read(path: str | Path) -> pd.DataFrame:
    r"""Read a table from a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "house.csv")
    ...     _ = path.write_text("rooms,price\n3,10.5\n4,12.0\n")
    ...     print(read(path).shape)
    (2, 2)
    """
    import zipfile
    import zlib

    import pandas as pd

    file = Path(path)
    readers = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".npz": _npz}
    suffix = file.suffix.lower()
    if suffix not in readers:
        raise unreadable(file, f"end in {', '.join(SUFFIXES)}", file.name)
    if not file.is_file():
        got = "a folder" if file.is_dir() else "no such file"
        raise unreadable(file, "be a file", got, "Check the path.")
    try:
        frame = readers[suffix](file)
    except UnreadableFile:
        raise
    except OSError as error:
        raise unreadable(file, "be readable", error.strerror or error) from None
    except ImportError:
        advice = "pip install 'lazyscope[parquet]'"
        raise unreadable(file, "have a reader: Parquet needs pyarrow", "none", advice) from None
    except (
        ValueError, TypeError, KeyError, pd.errors.ParserError, EOFError,
        zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError,  # archives that are broken, or locked
    ) as error:  # fmt: skip
        raise unreadable(file, "hold a table", " ".join(str(error).split())[:120]) from None
    n, d = frame.shape
    if n == 0 or d < 2:
        got = f"{n or 'no'} row{'s' * (n != 1)} below a header of {d} column{'s' * (d != 1)}"
        raise unreadable(file, "hold a table with a header, rows, and at least two columns", got)
    return frame


def _csv(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with file.open(encoding="utf-8-sig") as lines:
            head = lines.readline()
    except UnicodeDecodeError:
        raise unreadable(file, "be text in UTF-8", "other bytes") from None
    if not head:
        raise unreadable(file, "hold a table", "an empty file")
    separator = max(",;\t", key=head.count)
    try:
        frame = pd.read_csv(file, sep=separator, encoding="utf-8-sig", skipinitialspace=True)
    except pd.errors.ParserError as error:
        if ragged := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
            wanted, line, seen = ragged.groups()
            got = f"{seen} entries in line {line}"
            raise unreadable(file, f"have {wanted} entries in every line, as above", got) from None
        raise
    return with_decimal_commas(frame)


def _parquet(file: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow

    try:
        return pd.read_parquet(file, engine="pyarrow")
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise unreadable(file, "hold a table", " ".join(str(error).split())[:120]) from None


def _npz(file: Path) -> pd.DataFrame:
    """Take one-dimensional arrays as columns, two-dimensional ones as several; nothing is unpickled."""
    import zipfile

    import pandas as pd

    if not zipfile.is_zipfile(file):
        raise unreadable(file, "be an archive of arrays, as numpy.savez writes it", "something else")
    columns: dict[str, Any] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if array.ndim not in (1, 2):
                raise unreadable(file, "hold arrays of one or two dimensions", f"{name} of shape {array.shape}")
            new = {name: array} if array.ndim == 1 else {f"{name}_{j}": part for j, part in enumerate(array.T)}
            twice = next((column for column in new if column in columns), None)
            if twice is not None:
                raise unreadable(file, "name every column once", f"two columns {twice}", "Rename an array.")
            columns |= new
    return pd.DataFrame(columns)


def example(name: str) -> Table:
    """Return a table that ships with scikit-learn.

    >>> print(example("diabetes"))
    diabetes: 442 rows, 10 columns, target target (a number)
    """
    from sklearn import datasets

    if name not in EXAMPLES:
        raise InvalidParameter.of(_OWNER, "example", f"be one of {', '.join(EXAMPLES)}", repr(name))
    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    return describe(bunch.frame, "target", name=name)


def from_arrays(X: Any, y: Any, *, task: str | None = None) -> Table:
    """Return a table of arrays (or a frame and a series)."""
    import pandas as pd

    frame = X.copy() if isinstance(X, pd.DataFrame) else None
    if frame is None:
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] == 0:
            raise InvalidParameter.of(_OWNER, "x", "be a table, (n, d)", f"shape {array.shape}")
        frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    column = np.asarray(y)
    if column.shape != (len(frame),):
        raise InvalidParameter.of(_OWNER, "y", f"have one entry for each of {len(frame)} rows", f"shape {column.shape}")
    target = str(getattr(y, "name", None) or "y")
    while target in frame.columns:
        target += "_"
    frame[target] = column
    return describe(frame, target, task=task, name="data")


def describe(
    frame: pd.DataFrame, target: str, *, task: str | None = None, drop: Sequence[str] = (), name: str = "data"
) -> Table:
    """Split off the target, and check every column."""
    # scikit-learn takes names that are text, or none
    frame, target, drop = frame.rename(columns=str), str(target), _names(frame, drop)
    _check_names(frame, target, drop)
    notes: list[str] = list(frame.attrs.get("notes", ()))
    frame = frame.drop(columns=list(drop))
    if len(frame) < _LEAST_ROWS:
        must = f"have at least {_LEAST_ROWS} rows"
        raise InvalidParameter.of(_OWNER, "data", must, f"too few rows, {len(frame)},")
    missing = frame[target].isna()
    if missing.all():
        raise InvalidParameter.of(_OWNER, "target", "have values", f"{target!r} without any")
    if missing.any():
        notes.append(f"{int(missing.sum())} rows without a target were left out")
        frame = frame[~missing]
    y, found = _target(frame[target], target, task)
    X, more = usable(frame.drop(columns=[target]))
    notes += more
    empty = [c for c in X.columns if X[c].isna().all()]
    constant = [c for c in X.columns if X[c].nunique(dropna=True) <= 1 and not X[c].isna().any()]
    for columns, what in ((empty, "empty"), (constant, "constant")):
        if columns:
            notes.append(f"{what} columns were left out: {shortened(columns)}")
    X = X.drop(columns=[*empty, *constant])
    if X.shape[1] == 0:
        raise InvalidParameter.of(_OWNER, "data", "have a column that varies, besides the target", "none")
    holes = int(X.isna().sum().sum())
    if holes:
        notes.append(f"{holes} missing values: medians and the most frequent category in their place, and a flag")
    return Table(X.reset_index(drop=True), y, found, name, target, tuple(notes))


def _names(frame: pd.DataFrame, drop: Sequence[str]) -> list[str]:
    """Return the columns to leave out; an entry that is no column may be several, with commas."""
    columns, names = {str(column) for column in frame.columns}, [str(name) for name in drop]
    return [part for name in names for part in ([name] if name in columns else map(str.strip, name.split(",")))]


def columns(frame: pd.DataFrame) -> str:
    """Return the names of columns in a line: the first and the last where there are many, as targets stand last.

    >>> import pandas as pd
    >>> columns(pd.DataFrame(columns=["age", "price"]))
    'age, price'
    """
    names = list(map(str, frame.columns))
    return ", ".join(names if len(names) <= _LISTED else [*names[: _LISTED - 4], "…", *names[-3:]])


def _check_names(frame: pd.DataFrame, target: str, drop: Sequence[str]) -> None:
    """Refuse names that no column has, that several have, or that are asked for and dropped at once."""
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InvalidParameter.of(_OWNER, "data", "name every column once", f"several columns {twice[0]!r}")
    for column, option in ((target, "target"), *((dropped, "drop") for dropped in drop)):
        if column not in frame.columns:
            raise InvalidParameter.of(_OWNER, option, f"name a column: {columns(frame)}", repr(column))
    if target in drop:
        raise InvalidParameter.of(_OWNER, "drop", "leave the target in", repr(target))


def _target(column: pd.Series, name: str, task: str | None) -> tuple[Any, Task]:
    import pandas as pd

    if task not in (None, "regression", "classification"):
        raise InvalidParameter.of(_OWNER, "task", "be regression or classification", repr(task))
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric and (pd.api.types.is_complex_dtype(column) or not np.all(np.isfinite(np.asarray(column, float)))):
        raise InvalidParameter.of(_OWNER, "target", "hold finite real numbers", f"{name!r} with others")
    values = different_values(column, name)
    whole = numeric and bool(np.all(np.asarray(column, dtype=np.float64) % 1 == 0))
    guessed: Task = "regression" if numeric and values > (_FEW_VALUES if whole else 2) else "classification"
    chosen: Task = guessed if task is None else "regression" if task == "regression" else "classification"
    if chosen == "regression" and not numeric:
        raise InvalidParameter.of(_OWNER, "target", "hold numbers for a regression", f"{name!r} with text")
    if values < 2:
        must = "vary: at least two classes, or different numbers"
        raise InvalidParameter.of(_OWNER, "target", must, f"{name!r} with one value, {column.tolist()[0]!r},")
    if chosen == "classification":
        if values > FEW_CATEGORIES:
            got = f"{name!r} with {values} different {'numbers' if numeric else 'texts'}"
            raise InvalidParameter.of(_OWNER, "target", f"hold at most {FEW_CATEGORIES} classes", got)
        return np.asarray(column, dtype=str if not numeric else np.int64 if whole else np.float64), chosen
    return np.asarray(column, dtype=np.float64), chosen

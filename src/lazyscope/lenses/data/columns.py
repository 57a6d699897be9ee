"""Columns of a table: which are numbers, categories or dates, and which are refused, all in one message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import pandas as pd

FEW_CATEGORIES = 50  # of a column; rarer ones become one category
_OWNER = "the table"
_SHARE_OF_TEXT = 0.1  # of the rows: a column with more values than that, and than FEW_CATEGORIES, is text
_NAMED = 5  # columns that a list names; the others are only counted
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?|[+-]?,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})*|0")
_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?")
_DOTTED = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")
_CHOICES = "hold numbers and categories"


def shortened(names: Sequence[str], most: int = _NAMED) -> str:
    """Return a list in words: the first few names, and how many more there are.

    >>> shortened(["a", "b"]), shortened([f"x{k}" for k in range(40)])
    ('a, b', 'x0, x1, x2, x3, x4 and 35 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def with_decimal_commas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in which texts such as 3,14 and 1.234,5 are numbers, with a note on it in `attrs`.

    Where every comma has three digits after it and no dot is about, as in 1,234, commas could stand for thousands: such
    a column stays text, with a note, unless a number begins with 0, as in 0,125.

    >>> import pandas as pd
    >>> read = with_decimal_commas(pd.DataFrame({"price": ["3,5", "1.250,25", None], "code": ["1,234", "2,345", "9"]}))
    >>> read.price.tolist()[:2], read.code.tolist()[0], read.attrs["notes"]
    ([3.5, 1250.25], '1,234', ('decimal commas in price', 'commas that may stand for thousands, left as text: code'))
    """
    import pandas as pd

    changed, unclear = [], []
    for name in frame.columns:
        column = frame[name]
        if not _is_text(column):
            continue
        values = column.dropna().astype(str).str.strip()
        if not values.str.contains(",").any() or not values.str.fullmatch(_COMMA).all():
            continue
        thousands = values.str.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})?|0").all()
        if thousands and not values.str.contains(".", regex=False).any():
            unclear.append(str(name))
            continue
        plain = column.astype(str).str.strip().str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        frame[name] = pd.to_numeric(plain.where(column.notna(), None), errors="coerce")
        changed.append(str(name))
    told = (("decimal commas in ", changed), ("commas that may stand for thousands, left as text: ", unclear))
    frame.attrs["notes"] = tuple(words + shortened(names) for words, names in told if names)
    return frame


def usable(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return numbers as float64 and categories as text, dates as numbers, and notes; refuse the rest, all at once."""
    notes: list[str] = []
    taken, refused, dates, unclear = {}, {}, [], []
    for name in map(str, X.columns):
        date = _days(X[name])
        if date is not None:
            dates.append(name)
            taken[name] = date
        elif _is_text(X[name]) and _matches(X[name], _SLASHED):
            unclear.append(name)  # day or month first: nothing in the column tells
        else:
            try:
                taken[name] = _column(X[name], name)
            except InvalidParameter as error:
                refused[name] = error
    if len(refused) == 1:
        raise next(iter(refused.values()))
    if refused:
        names = list(refused)
        got = f"{len(names)} columns that are neither: {shortened(names, 12)}"
        raise InvalidParameter.of(_OWNER, "data", _CHOICES, got, f"Leave them out: --drop {','.join(names)}.")
    if dates:
        notes.append(f"dates became numbers, days since the first: {shortened(dates)}")
    if unclear:
        notes.append(f"columns were left out, as their dates have the day or the month first: {shortened(unclear)}")
    import pandas as pd

    return pd.DataFrame(taken, index=X.index), notes


def unusable(frame: pd.DataFrame, target: str) -> list[str]:
    """Return the columns beside the target that are neither numbers, categories nor dates: free text, infinities.

    >>> import pandas as pd
    >>> unusable(pd.DataFrame({"id": [f"row {k}" for k in range(99)], "x": range(99), "y": range(99)}), "y")
    ['id']
    """
    refused = []
    for name in frame.columns:
        try:
            if str(name) != target and _days(frame[name]) is None:
                _column(frame[name], str(name))
        except InvalidParameter:
            refused.append(str(name))
    return refused


def different_values(column: pd.Series, name: str) -> int:
    """Return how many different values a column has; lists and the like cannot be counted."""
    try:
        return int(column.nunique())
    except TypeError:
        got = f"a {type(column.tolist()[0]).__name__} in column {name!r}"
        raise InvalidParameter.of(_OWNER, "data", _CHOICES, got, f"Leave it out: --drop {name}.") from None


def _is_text(column: pd.Series) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_string_dtype(column) or column.dtype == object)


def _matches(column: pd.Series, pattern: re.Pattern[str]) -> bool:
    values = column.dropna()
    if len(values) == 0 or not all(isinstance(value, str) for value in values):
        return False
    return bool(values.str.strip().str.fullmatch(pattern).all())


def _days(column: pd.Series) -> Any:
    """Return a column of dates or of lengths of time in days, dates since the first; None where it is something else.

    Texts are dates where all of them are like 2024-05-31, with or without an hour, or 31.05.2024, or like 31/05/2024
    with a number above twelve that tells the day from the month.
    """
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column):
        return column / pd.Timedelta(days=1)
    if not pd.api.types.is_datetime64_any_dtype(column):
        if not _is_text(column):
            return None
        layout = _layout(column)
        if layout is None:
            return None
        try:
            column = pd.to_datetime(column.str.strip(), format=layout, utc=layout == "ISO8601")
        except ValueError:  # 2024-13-41
            return None
    return ((column - column.min()) / pd.Timedelta(days=1)).astype(np.float64)


def _layout(column: pd.Series) -> str | None:
    """Return how the dates of a column of texts are written, or None where they are no dates or unclear."""
    if _matches(column, _ISO):
        return "ISO8601"
    if _matches(column, _DOTTED):
        return "%d.%m.%Y"
    if not _matches(column, _SLASHED):
        return None
    parts = column.dropna().str.strip().str.split("/", expand=True).astype(int)
    if (parts[0] > 12).any():
        return "%d/%m/%Y"
    return "%m/%d/%Y" if (parts[1] > 12).any() else None


def _column(column: pd.Series, name: str) -> pd.Series:
    """Return numbers as float64 and categories as text; refuse free text."""
    import pandas as pd

    advice = f"Leave it out: --drop {name}."
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        if pd.api.types.is_complex_dtype(column):
            raise InvalidParameter.of(_OWNER, "data", "hold real numbers and categories", f"column {name!r}", advice)
        numbers = column.astype(np.float64)
        if np.isinf(numbers).any():
            raise InvalidParameter.of(_OWNER, "data", "be finite", f"infinity in column {name!r}", advice)
        return numbers
    different = different_values(column, name)
    if different > max(FEW_CATEGORIES, _SHARE_OF_TEXT * len(column)):
        got = f"column {name!r}, a text with {different} different values in {len(column)} rows,"
        if _matches(column, _THOUSANDS):
            got = f"column {name!r}, whose commas may stand for thousands or for decimals,"
            advice = f"Write its numbers without them, or leave it out: --drop {name}."
        raise InvalidParameter.of(_OWNER, "data", _CHOICES, got, advice)
    return column.astype(object).where(column.isna(), column.astype(str)).where(column.notna(), np.nan)

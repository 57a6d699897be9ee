"""Signatures with the types that help a reader: short names, and none where anything is allowed."""

from __future__ import annotations

import re
from typing import Any

ALIASES = {
    "FloatArray": "numpy.ndarray",
    "Array": "numpy.ndarray",
    "Function": "collections.abc.Callable",
    "Dataset": "xarray.Dataset",
    "xr.Dataset": "xarray.Dataset",
}
"""Names in annotations, and what autodoc is to show for them."""
_NUMBERS = "[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
_SHORTER = (
    (r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1"),
    (r"(?<![\w.~])(?=numpy\.|collections\.abc\.)", "~"),
    (re.escape(_NUMBERS), ""),
    (r"~collections\.abc\.Callable\[\[~numpy\.ndarray\], ~numpy\.ndarray\]", "~collections.abc.Callable"),
    (r": ~typing\.Any = ", "="),
    (r": ~typing\.Any(?=[,)])", ""),
    (r"<function (\w+)>", r"\1"),
    (r"<factory>", "{}"),
)


def short(app: Any, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None) -> Any:
    """Shorten the types that autodoc has found."""
    given, returned = plain(given), plain(returned)
    if what == "class" and given is not None:  # a class makes an array of what it is given
        given = given.replace("~numpy.ndarray", "~numpy.typing.ArrayLike")
    return given, None if returned == "~typing.Any" else returned


def plain(text: str | None) -> str | None:
    """Return a signature, or a type, as people read it; a tilde tells Sphinx to show the last part of a name alone.

    >>> plain("(rho: ~typing.Any = None, *, X: ~typing.Any, seed: int = 0)")
    '(rho=None, *, X, seed: int = 0)'
    >>> plain("TypeAliasForwardRef('numpy.ndarray') | None")
    '~numpy.ndarray | None'
    """
    for pattern, shorter in _SHORTER:
        text = text and re.sub(pattern, shorter, text)
    return text

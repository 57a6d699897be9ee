"""What goes into a network, and what comes out of it: one array or several, an output or an object that has it.

Several inputs are a tuple, passed in turn, or a dictionary, passed by name as Hugging Face's models take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lazyscope.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class Several:
    """Arrays with the same rows, by position or by name; indexed and counted like one of them.

    >>> import numpy as np
    >>> both = Several({"ids": np.arange(3), "mask": np.ones((3, 2))})
    >>> len(both), both[:2].parts["mask"].shape
    (3, (2, 2))
    """

    parts: tuple[Any, ...] | dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, rows: Any) -> Several:
        return self.each(lambda array: array[rows])

    @property
    def arrays(self) -> list[Any]:
        """The arrays, in order."""
        return list(self.parts.values() if isinstance(self.parts, dict) else self.parts)

    def each(self, change: Callable[[Any], Any]) -> Several:
        """Return the same structure with every array changed."""
        if isinstance(self.parts, dict):
            return Several({name: change(array) for name, array in self.parts.items()})
        return Several(tuple(change(array) for array in self.parts))


def taken(x: Any, convert: Callable[[Any], Any]) -> Any:
    """Return inputs as one array of a library, or as `Several`; a list, and a tuple of numbers, are one array."""
    several = isinstance(x, Mapping) or (
        isinstance(x, tuple) and len(x) > 0 and all(getattr(part, "ndim", 0) > 0 for part in x)
    )
    if not several:
        return convert(x)
    parts = dict(x) if isinstance(x, Mapping) else tuple(x)
    inputs = Several(parts).each(convert)
    sizes = {len(array) for array in inputs.arrays} if inputs.arrays else set()
    if len(sizes) != 1:
        must = "have the same rows in each of its arrays"
        raise InvalidParameter.of("lens", "x", must, f"{sorted(sizes)} rows" if sizes else "no arrays")
    return inputs


def arguments(x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a network is called with: arguments by position and by name."""
    if not isinstance(x, Several):
        return (x,), {}
    return ((), x.parts) if isinstance(x.parts, dict) else (x.parts, {})


def output_of(out: Any) -> Any:
    """Return the array of outputs: `logits` of an object or a dictionary that has them, or the first of several.

    >>> output_of({"logits": 3.0, "loss": 1.0}), output_of((2.0, None)), output_of(1.0)
    (3.0, 2.0, 1.0)
    """
    if isinstance(out, Mapping):
        return out["logits"] if "logits" in out else next(iter(out.values()), out)
    if hasattr(out, "logits"):
        return out.logits
    return out[0] if isinstance(out, (tuple, list)) and out else out

"""A piece of work as text, and the same work back from it: what its fingerprint is taken of, and what a store keeps.

Nouns are written field by field, floats by their shortest exact digits, arrays by their digest beside the bytes
themselves. A field at its default is left out: a new field with a default leaves old fingerprints as they are. Only
nouns of `kinds()` are ever built from a text: reading one runs no code of its author.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.work import Work
from lazyscope.problems import Problem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import FixedWeights, Regime

Array = NDArray[Any]


@cache
def kinds() -> dict[str, type[Any]]:
    """Return the nouns that can be written down, by name: work, problems, regimes, protocols, fixed weights.

    Whatever subclasses one of these bases counts, in this package, once its experiments are loaded, or in another.
    """
    importlib.import_module("lazyscope.experiments").load_all()
    bases: list[type[Any]] = [Work, Problem, Regime, TrainingProtocol, FixedWeights]
    for base in bases:
        bases += (kind for kind in base.__subclasses__() if kind not in bases)
    return {kind.__name__: kind for kind in bases if is_dataclass(kind)}


def kind_of(name: str) -> type[Any]:
    """Return the noun of this name; one that was defined after the first question is found too."""
    if name not in kinds():
        kinds.cache_clear()
    return kinds()[name]


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no blanks, floats by their shortest exact digits.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def portable(array: Array) -> Array:
    """Return an array in the byte order and layout that its digest is taken of."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def array_digest(array: Array) -> str:
    """Return the SHA-256 of type, shape and bytes.

    >>> array_digest(np.zeros(2)) == array_digest(np.zeros((1, 2)))
    False
    """
    plain = portable(array)
    return hashlib.sha256(f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()).hexdigest()


class Encoder:
    """Writes nouns as JSON values; remembers the digest of each array, which the tasks of a plan share.

    >>> from lazyscope import Trained
    >>> Encoder().encode(Trained("relu"))
    {'kind': 'Trained', 'activation': {'kind': 'Activation', 'name': 'relu'}}
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._seen: dict[int, tuple[Array, str]] = {}  # holds the arrays too, so that an id stays its owner's

    def encode(self, value: Any) -> Any:
        """Return a value that JSON can hold; refuse what has no lasting content."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self.encode(item) for item in value]
        if isinstance(value, Mapping):
            return {str(name): self.encode(item) for name, item in value.items()}
        if isinstance(value, np.ndarray):
            return {"array": self._digest(value)}
        if isinstance(value, Activation):
            return {"kind": "Activation", "name": _name(value)}
        kind = type(value).__name__
        if not isinstance(value, (Work, Problem, Regime, TrainingProtocol, FixedWeights)) or not is_dataclass(value):
            must = "be made of work, problems, regimes, protocols and named activations"
            raise InvalidParameter.of("sweep", "work", must, kind)
        given = {f.name: getattr(value, f.name) for f in fields(value) if f.metadata.get("stored", True)}
        usual = defaults(kind)
        return {"kind": kind} | {
            name: self.encode(item) for name, item in given.items() if not _same(item, usual[name])
        }

    def _digest(self, array: Array) -> str:
        if id(array) not in self._seen:
            self._seen[id(array)] = (array, array_digest(array))
        known = self._seen[id(array)][1]
        self.arrays.setdefault(known, array)
        return known


@cache
def defaults(kind: str) -> dict[str, Any]:
    """Return what each parameter of a noun is when it is left out."""
    return {name: parameter.default for name, parameter in signature(kind_of(kind)).parameters.items()}


def _same(item: Any, default: Any) -> bool:
    """Whether a field is at its default; only plain values can be, and 1 is not 1.0."""
    return type(item) is type(default) and isinstance(item, (type(None), bool, int, float, str)) and item == default


def _name(activation: Activation) -> str:
    if isinstance(activation.name_or_callable, str):
        return activation.name_or_callable
    must = "be a named activation: the content of a callable has no lasting fingerprint"
    advice = "`lazyscope.activation_names()` lists the names."
    raise InvalidParameter.of("sweep", "activation", must, f"the callable {activation.name}", advice)


class Decoder:
    """Builds nouns from what `Encoder` wrote; equal texts give one object, which is checked once.

    >>> from lazyscope import QuadraticTarget
    >>> encoder = Encoder()
    >>> written = encoder.encode(QuadraticTarget([2.0, 1.0]))
    >>> print(Decoder(encoder.arrays).decode(written))
    quadratic target, d = 2, diagonal B, Tr(B)²/(d‖B‖²) = 0.9
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        self._built: dict[str, Any] = {}

    def decode(self, value: Any) -> Any:
        """Return the value that was encoded."""
        if isinstance(value, list):
            return tuple(self.decode(item) for item in value)
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._arrays[value["array"]]
        if "kind" not in value:
            return {name: self.decode(item) for name, item in value.items()}
        text = canonical(value)
        if text not in self._built:
            self._built[text] = self._build(value)
        return self._built[text]

    def _build(self, value: dict[str, Any]) -> Any:
        given = {name: self.decode(item) for name, item in value.items() if name != "kind"}
        return Activation(given["name"]) if value["kind"] == "Activation" else kind_of(value["kind"])(**given)

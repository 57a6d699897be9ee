"""Numbers at the door: checked once, where they enter, and trusted afterwards; made plain where they leave."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.errors import InvalidParameter, NotConverged, TooLarge

FloatArray = NDArray[np.float64]


def real_array(value: Any, owner: str, parameter: str, must: str) -> FloatArray:
    """Return a fresh, read-only float64 array; refuse what is not real, numeric and finite."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidParameter.of(owner, parameter, must, "a ragged sequence") from None
    if array.dtype.kind not in "biuf":
        if any(isinstance(entry, int) and abs(entry) >= 2**63 for entry in array.flat):  # no array of numbers holds it
            raise InvalidParameter.of(owner, parameter, must, "a number beyond 2^63", "Pass a smaller one.")
        got = f"values of type {array.dtype}"
        raise InvalidParameter.of(owner, parameter, must, got, "Pass real numbers.")
    array = np.array(array, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        bad = int(np.size(array) - np.count_nonzero(np.isfinite(array)))
        got = f"{bad} NaN or infinite value{'s' * (bad > 1)} among {array.size}"
        raise InvalidParameter.of(owner, parameter, must, got, "Remove or replace them.")
    largest = float(np.max(np.abs(array), initial=0.0))
    if largest and not 1e-140 < largest < 1e140:
        must = "have its largest entry between 1e-140 and 1e140, so that squares neither over- nor underflow"
        raise InvalidParameter.of(owner, parameter, must, f"{largest:.3g}", "Rescale it.")
    array.setflags(write=False)
    return array


def symmetric(value: Any, owner: str, parameter: str) -> FloatArray:
    """Return a symmetric matrix, held as (d, d) or as the (d,) vector of its diagonal.

    Asymmetry up to rounding (1e-12 of the largest entry) is symmetrised away; more is an error.
    """
    must = "be a symmetric (d, d) matrix, or the (d,) vector of its eigenvalues"
    array = real_array(value, owner, parameter, must)
    if array.size == 0 or array.ndim not in (1, 2):
        raise InvalidParameter.of(owner, parameter, must, f"shape {array.shape}")
    if array.ndim == 1:
        return array
    if array.shape[0] != array.shape[1]:
        raise InvalidParameter.of(owner, parameter, must, f"shape {array.shape}")
    asymmetry = float(np.max(np.abs(array - array.T)))
    if asymmetry > 1e-12 * float(np.max(np.abs(array))):
        got = f"a matrix with asymmetry {asymmetry:.3g}"
        advice = f"Pass ({parameter} + {parameter}.T)/2 if that is what you mean."
        raise InvalidParameter.of(owner, parameter, must, got, advice)
    array = 0.5 * array + 0.5 * array.T  # halved first: the sum of two huge entries must not overflow
    array.setflags(write=False)
    return array


def real_number(value: Any, owner: str, parameter: str, must: str = "be a finite real number") -> float:
    """Return one finite float."""
    if isinstance(value, (str, bytes)) or not np.isscalar(value) or not isinstance(value, numbers.Real):
        raise InvalidParameter.of(owner, parameter, must, repr(value))
    if not math.isfinite(value):
        raise InvalidParameter.of(owner, parameter, must, value)
    return float(value)


def whole_number(value: Any, owner: str, parameter: str, least: int = 1, advice: str = "") -> int:
    """Return one integer of at least `least`; 3.0 counts as 3, True does not count."""
    if type(value) is int and least <= value <= 2**53:
        return value
    must = f"be a whole number, at least {least}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InvalidParameter.of(owner, parameter, must, repr(value), advice)
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    if number < least or not (isinstance(number, int) or number.is_integer()):
        raise InvalidParameter.of(owner, parameter, must, value, advice)
    if least > 0 and number > 2**53:  # a size: nothing that large is ever counted; a seed may be
        raise InvalidParameter.of(owner, parameter, must, "a number beyond 2^53", "Pass a smaller one.")
    return int(number)


def whole_numbers(value: Any, owner: str, parameter: str) -> NDArray[np.int64]:
    """Return a number or a sequence of positive whole numbers as an int64 array of the same shape."""
    must = "be a positive whole number, or a one-dimensional sequence of them"
    array = real_array(value, owner, parameter, must)
    if array.ndim > 1 or array.size == 0:
        raise InvalidParameter.of(owner, parameter, must, f"shape {array.shape}")
    wrong = array[(array != np.floor(array)) | (array < 1) | (array > 2**53)]
    if wrong.size:
        advice = "Pass a smaller one." if wrong.flat[0] > 2**53 else ""
        raise InvalidParameter.of(owner, parameter, must, f"{wrong.flat[0]:g}", advice)
    return array.astype(np.int64)


def positive_numbers(value: Any, owner: str, parameter: str, advice: str) -> FloatArray:
    """Return a number or a sequence of positive numbers, infinity allowed, as a float64 array."""
    must = "be positive (1e-300 to 1e300, or inf): a number, or a one-dimensional sequence of numbers"
    array = _numbers(value, owner, parameter, must, advice)
    if array.min() >= 1e-300 and array.max() <= 1e300:
        return array
    wrong = array[~(array >= 1e-300) | (array > 1e300) & np.isfinite(array)]  # so that 1/x is a number
    if wrong.size:
        raise InvalidParameter.of(owner, parameter, must, f"{wrong.flat[0]:g}", advice)
    return array


def non_negative_numbers(value: Any, owner: str, parameter: str, advice: str) -> FloatArray:
    """Return a number or a sequence of finite numbers, none of them negative, as a float64 array."""
    must = "be zero or positive (1e-300 to 1e300): a number, or a one-dimensional sequence of numbers"
    array = _numbers(value, owner, parameter, must, advice)
    wrong = array[~((array == 0) | (array >= 1e-300) & (array <= 1e300))]
    if wrong.size:
        raise InvalidParameter.of(owner, parameter, must, f"{wrong.flat[0]:g}", advice)
    return array


def _numbers(value: Any, owner: str, parameter: str, must: str, advice: str) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidParameter.of(owner, parameter, must, "a ragged sequence", advice) from None
    if array.dtype.kind not in "biuf":
        raise InvalidParameter.of(owner, parameter, must, repr(value)[:60], advice)
    array = array.astype(np.float64)
    if array.ndim > 1 or array.size == 0:
        raise InvalidParameter.of(owner, parameter, must, f"shape {array.shape}", advice)
    return array


@contextmanager
def arithmetic(what: str) -> Iterator[None]:
    """Turn overflow, division by zero and invalid operations inside this block into an error of one line.

    >>> with arithmetic("A square"):
    ...     np.array([1e200]) ** 2
    Traceback (most recent call last):
    lazyscope.errors.NotConverged: A square left what float64 holds (overflow encountered in square). Bring ...
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise NotConverged(
            f"{what} left what float64 holds ({error}). Bring targets, weights, spectra and step sizes closer to 1."
        ) from error


_ALWAYS_FITS = 2.0**20  # bytes: to ask the operating system takes longer than to fill them


def available_memory() -> int:
    """Bytes that can be allocated now without swapping, as the operating system estimates them."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123 (a kernel interface, not a path)
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def fits_in_memory(size: float, what: str, advice: str) -> None:
    """Refuse an allocation of `size` bytes that the machine cannot serve, before it is tried.

    >>> fits_in_memory(8e18, "The N×N kernel matrix at N = 10⁹", "Use a smaller width.")
    Traceback (most recent call last):
    lazyscope.errors.TooLarge: The N×N kernel matrix at N = 10⁹ needs about 8e+09 GB, ...
    """
    if size < _ALWAYS_FITS:
        return
    available = available_memory()
    if size > available:
        need, have = f"{size / 1e9:,.3g} GB", f"{available / 1e9:,.3g} GB"
        raise TooLarge(f"{what} needs about {need}, and {have} are available. {advice}")


def jsonable(value: Any) -> Any:
    """Return arrays as lists, and infinity as the string that every JSON reader accepts.

    >>> jsonable(np.array([0.5, np.inf]))
    [0.5, 'inf']
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "iuf" and np.all(np.isfinite(value)):
            return value.tolist()
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        plain = all(type(item) is int or (type(item) is float and math.isfinite(item)) for item in value)
        return list(value) if plain else [jsonable(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value

"""What a user brings: rows or a kernel matrix, and targets; checked once, with what was done to them in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory, real_array
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.forecast.kernels import MATRICES, gram

LEAST_ROWS = 20
_ROUNDING = 1e-14  # of the largest target: a spread below it is none
_CONTINUOUS = 0.5  # of the rows: a column with more values than that is no category


@dataclass(frozen=True, eq=False)
class Rows:
    """The kernel of the rows, (P, P), their targets, (P, T), and the names of the targets: None for a single one."""

    K: FloatArray
    Y: FloatArray
    names: tuple[str, ...] | None
    about: str
    notes: tuple[str, ...] = ()


def rows_of(
    X: Any, y: Any, regime: Any, kernel: Any, *, scale: Any, bias: Any, intercept: bool, task: str | None
) -> Rows:
    """Return the rows of `forecast(X, y, regime)` or `forecast(gram=K, y=y)`."""
    if y is None or (X is None) == (kernel is None) or (regime is None) != (X is None):
        must = "be given with its rows: forecast(X, y, regime, …), or forecast(gram=K, y=y, …)"
        raise InvalidParameter.of("forecast", "y", must, "other arguments")
    if not isinstance(intercept, (bool, np.bool_)):
        raise InvalidParameter.of("forecast", "intercept", "be True or False", repr(intercept))
    if X is not None:
        seen = real_array(X, "forecast", "X", "be a table of finite numbers, a row for each sample")
        if seen.ndim != 2 or seen.shape[1] == 0:
            raise InvalidParameter.of("forecast", "X", "be a table, (rows, columns)", f"shape {seen.shape}")
    else:
        seen = _square(kernel)
    Y, names = targets(y, len(seen), task)
    if len(seen) < LEAST_ROWS:
        raise InvalidParameter.of("forecast", "X", f"have at least {LEAST_ROWS} rows", len(seen), "Bring more rows.")
    kept = _first_copies(seen, Y, X is None)
    notes: tuple[str, ...] = ()
    if len(kept) < len(seen):
        notes = (f"{len(seen) - len(kept):,} rows that are copies of others were left out",)
        seen, Y = (seen[np.ix_(kept, kept)] if X is None else seen[kept]), Y[kept]
        if len(kept) < LEAST_ROWS:
            must = f"have at least {LEAST_ROWS} rows that differ"
            raise InvalidParameter.of("forecast", "X", must, len(kept), "Bring more rows.")
    _vary(Y)
    if not intercept and np.any(Y.mean(axis=0) ** 2 > np.var(Y, axis=0)):
        notes = (*notes, "the target has a mean, which intercept=True would take out")
    K = seen if X is None else gram(regime, seen, scale, bias)
    K.setflags(write=True)  # a copy of ours, which the decomposition overwrites
    if intercept:  # an unpenalised constant: one more feature, so large that λ does not touch it
        K += 10.0 * float(np.mean(np.diagonal(K)))
        Y = Y - Y.mean(axis=0)
    columns = "" if X is None else f", {seen.shape[1]} columns"
    return Rows(K, Y, names, f"{len(K):,} rows{columns}", notes)


def _square(kernel: Any) -> FloatArray:
    must = "be a (P, P) matrix of finite numbers, the kernel of the rows"
    K = real_array(kernel, "forecast", "gram", must)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise InvalidParameter.of("forecast", "gram", must, f"shape {K.shape}")
    fits_in_memory(8.0 * MATRICES * len(K) ** 2, f"The decomposition of {len(K)} rows", "Use fewer rows.")
    return K


def targets(y: Any, rows: int, task: str | None) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Return targets as columns: numbers as they are, classes as ±1, each against the rest (one of two classes).

    >>> targets(["a", "b", "a"], 3, None)[0].ravel()
    array([-1.,  1., -1.])
    >>> targets([0, 1, 2, 0, 1, 2], 6, "classification")[1]
    ('0', '1', '2')
    """
    if task not in (None, "regression", "classification"):
        raise InvalidParameter.of("forecast", "task", "be regression or classification", repr(task))
    array = np.asarray(y)
    if len(array.shape) not in (1, 2) or len(array) != rows or array.size == 0:
        must = f"have an entry for each of {rows} rows"
        raise InvalidParameter.of("forecast", "y", must, f"shape {array.shape}")
    if task != "classification" and array.dtype.kind in "iuf":
        Y = real_array(array, "forecast", "y", "be finite numbers")
        names = None if Y.ndim == 1 else tuple(str(k) for k in range(Y.shape[1]))
        return Y.reshape(rows, -1), names
    if array.ndim != 1 or task == "regression":
        must = "be numbers for a regression, or one column of classes"
        raise InvalidParameter.of("forecast", "y", must, f"values of type {array.dtype}, shape {array.shape}")
    missing = array.dtype.kind == "O" and any(label is None or label != label for label in array)
    if missing or (array.dtype.kind == "f" and not np.all(np.isfinite(array))):
        raise InvalidParameter.of("forecast", "y", "name a class for each row", "rows without one", "Leave them out.")
    classes = np.unique(array.astype(str) if array.dtype.kind == "O" else array)
    if len(classes) > max(2.0, _CONTINUOUS * rows):
        must = "have classes that repeat"
        got = f"{len(classes):,} of them among {rows:,} rows"
        raise InvalidParameter.of("forecast", "y", must, got, "Pass numbers, if that is what they are.")
    against = [np.where(array.astype(classes.dtype) == label, 1.0, -1.0) for label in classes]
    if len(classes) <= 2:
        return against[-1][:, None], None
    return np.stack(against, axis=1), tuple(str(label) for label in classes)


def _vary(Y: FloatArray) -> None:
    if np.any(np.ptp(Y, axis=0) <= _ROUNDING * np.max(np.abs(Y), axis=0)):
        raise InvalidParameter.of("forecast", "y", "vary: at least two different values", "a constant")


def _first_copies(seen: FloatArray, Y: FloatArray, kernel: bool) -> Any:
    """Return the rows without those that another is a copy of, target included: leaving one out would leave its twin.

    Rows of categories alone repeat by nature, and stay; a copy is an accident where some column, or the target, has
    values that hardly ever repeat. A target that the columns fix repeats with them, and tells nothing. Rows of a kernel
    matrix are compared by their norm and their sums.
    """
    if kernel:  # two rows may have swapped places on the diagonal block: equal features have equal columns too
        seen = np.column_stack([np.diagonal(seen), seen.sum(axis=1), np.einsum("ij,ij->i", seen, seen)]).round(12)
        Y = Y.round(12)
    whole = np.column_stack([seen, Y])
    _, first = np.unique(whole, axis=0, return_index=True)
    if len(first) == len(whole):
        return np.arange(len(whole))
    fixed = len(np.unique(seen, axis=0)) == len(first)
    distinct = (seen if fixed else whole)[first]
    if not any(len(np.unique(column)) > _CONTINUOUS * len(distinct) for column in distinct.T):
        return np.arange(len(whole))
    return np.sort(first)

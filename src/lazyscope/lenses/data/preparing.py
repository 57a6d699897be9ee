"""From a table to matrices, the scikit-learn way: fitted on the training rows of each fold alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data.columns import FEW_CATEGORIES
from lazyscope.lenses.data.table import Table
from lazyscope.weights import generator


def preparation(table: Table) -> Any:
    """Return the transformer: medians and unit variance for numbers, one column for each category."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [c for c in table.X.columns if table.X[c].dtype.kind == "f"]
    categories = [c for c in table.X.columns if table.X[c].dtype.kind != "f"]
    return ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(
                    # a column may be empty in the training rows of one fold, and not in the others
                    SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
                    StandardScaler(),
                ),
                numbers,
            ),
            (
                "categories",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent", keep_empty_features=True),
                    OneHotEncoder(
                        max_categories=FEW_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
                    ),
                    StandardScaler(),
                ),
                categories,
            ),
        ],
        sparse_threshold=0.0,
    )


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test rows of one split, prepared; training rows are in random order, one of each class first."""

    X: FloatArray
    y: Any
    X_test: FloatArray
    y_test: Any

    def first(self, n: int) -> tuple[FloatArray, Any]:
        """Return the first n training rows."""
        return self.X[:n], self.y[:n]


def folds(table: Table, count: int, seed: int) -> Sequence[Fold]:
    """Split the rows, classes in equal shares, and prepare each fold by its own training rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    count = whole_number(count, "lens", "folds", least=2)
    n = len(table.X)
    if table.task == "classification":
        names, sizes = np.unique(table.y, return_counts=True)
        if sizes.min() < count:
            must = f"have at least as many rows in every class as there are folds, {count}"
            got = f"{sizes.min()} of class {names[np.argmin(sizes)]}"
            raise InvalidParameter.of("lens", "data", must, got, "Use fewer folds, or leave the class out.")
        splitter: Any = StratifiedKFold(count, shuffle=True, random_state=seed)
    else:
        if n < 2 * count:
            must = f"have at least two rows for each of the {count} folds"
            raise InvalidParameter.of("lens", "data", must, f"{n} rows", "Use fewer folds, or more rows.")
        splitter = KFold(count, shuffle=True, random_state=seed)
    result = []
    for k, (train, test) in enumerate(splitter.split(table.X, table.y)):
        train = generator(seed, k).permutation(train)
        if table.task == "classification":
            train = _every_class_first(train, table.y[train])
        prepare = preparation(table)
        X = prepare.fit_transform(table.X.iloc[train])
        result.append(Fold(X, table.y[train], prepare.transform(table.X.iloc[test]), table.y[test]))
    return result


def _every_class_first(rows: Any, labels: Any) -> Any:
    """Put the first row of each class in front, so that the first n rows know all classes.

    >>> _every_class_first(np.array([7, 8, 9]), np.array(["a", "a", "b"])).tolist()
    [7, 9, 8]
    """
    first = np.sort(np.unique(labels, return_index=True)[1])
    return np.concatenate([rows[first], np.delete(rows, first)])


def whole(table: Table) -> FloatArray:
    """Return all rows, prepared together: for estimates that are not tested on them."""
    return np.asarray(preparation(table).fit_transform(table.X), dtype=np.float64)

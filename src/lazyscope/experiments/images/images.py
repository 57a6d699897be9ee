"""Images of ten digits: scikit-learn's 1,797 of 8 × 8 pixels, or MNIST's from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.experiments.ridge import mnist_images

Source = Literal["digits", "mnist"]
CLASSES = 10


def locate(folder: Path | None) -> None:
    """See that MNIST is in the folder, if one is given: the preset `paper` reads it, `quick` needs none."""
    if folder is not None:
        mnist_images.locate(folder)


def images(source: Source) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return centred images of length √d, and their classes, 0 to 9.

    >>> X, digit = images("digits")
    >>> X.shape, bool(np.allclose(np.sum(X**2, axis=1), 64.0)), sorted({*digit.tolist()}) == list(range(10))
    ((1797, 64), True, True)
    """
    if source == "mnist":
        X, digit = mnist_images.images()
        return X * np.sqrt(X.shape[1]), digit
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    X *= np.sqrt(X.shape[1]) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, digit.astype(np.int64)


def relabelled(digit: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the labels, a share of them, chosen at random, replaced by random ones.

    >>> relabelled(np.arange(5), 0.0, np.random.default_rng(0))
    array([0, 1, 2, 3, 4])
    """
    count = round(share * len(digit))
    new = digit.copy()
    new[rng.permutation(len(digit))[:count]] = rng.integers(0, CLASSES, count)
    return new

"""MNIST's 70,000 images of digits: from a folder with the four IDX files, or through scikit-learn from OpenML.

The folder is named by the environment variable LAZYSCOPE_DATA, which `lazyscope figure mnist --folder` sets; the files
may be gzipped or not. Nothing is unpickled.
"""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.errors import UnreadableFile

VARIABLE = "LAZYSCOPE_DATA"
_FILES = (("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"))
_WHERE = f"Pass --folder with the four IDX files, or set {VARIABLE}, or connect to the network for OpenML."


def locate(folder: Path | None) -> None:
    """Check that the images are there, in the folder if one is given; worker processes learn it from LAZYSCOPE_DATA."""
    if folder is not None:
        os.environ[VARIABLE] = str(folder.resolve())
    images()


@cache
def images() -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the images, centred and scaled to length 1, and their digits."""
    folder = os.environ.get(VARIABLE)
    X, digit = _in_folder(Path(folder)) if folder else _from_openml()
    X = X.reshape(len(X), -1) / 255.0
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, digit.astype(np.int64)


def _in_folder(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    parts = [[_idx(folder, name) for name in pair] for pair in _FILES]
    X, digit = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if X.ndim != 3 or digit.shape != X.shape[:1]:
        raise UnreadableFile(f"The folder {folder} must hold images and as many labels. Got shape {X.shape}. {_WHERE}")
    return X, digit


def _idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """Read an IDX file of bytes: 0, 0, 8, the number of dimensions, their sizes as big-endian integers, the bytes."""
    file = next((file for file in (folder / f"{name}.gz", folder / name) if file.is_file()), None)
    if file is None:
        raise UnreadableFile(f"The folder {folder} must hold {name}, or {name}.gz. Got no such file. {_WHERE}")
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError) as error:
        raise UnreadableFile(f"The file {file} must be readable. Got {error} instead.") from None
    dimensions = content[3] if len(content) > 4 and content[:3] == b"\0\0\x08" else 0
    shape = tuple(int.from_bytes(content[4 + 4 * k : 8 + 4 * k], "big") for k in range(dimensions))
    if not dimensions or len(content) != 4 + 4 * dimensions + int(np.prod(shape)):
        raise UnreadableFile(f"The file {file} must be an IDX file of bytes. Got {len(content):,} others instead.")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _from_openml() -> tuple[NDArray[Any], NDArray[Any]]:
    import warnings

    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of retries: the line below says what is wrong
            X, digit = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False, n_retries=1)
    except (OSError, ValueError) as error:  # no network, or not that file
        said = " ".join(str(error).split())[:80]
        raise UnreadableFile(f"MNIST must come from a folder or from OpenML. Got neither ({said}). {_WHERE}") from None
    return np.asarray(X, dtype=np.float64), np.asarray(digit).astype(np.int64)

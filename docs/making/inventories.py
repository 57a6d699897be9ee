"""Where other libraries describe the names that these pages mention: small inventories, written before each build.

Sphinx would download the whole inventory of each library. These pages are built offline, so the few names that they
use stand here, each with its place under the public address of its library. A test checks that every name exists.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """A library, the public address of its documentation, and the places of names below it, {0} being the name.

    Sphinx looks the types of signatures up among classes, so that an alias of types counts as one.
    """

    title: str
    address: str
    classes: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Yield each name with its kind and its place.

        >>> next(iter(LIBRARIES["xarray"].entries()))
        ('xarray.Dataset', 'class', 'generated/xarray.Dataset.html#xarray.Dataset')
        """
        for kind, places in (("class", self.classes), ("function", self.functions), ("module", self.modules)):
            for names, place in places.items():
                for name in names.split():
                    yield name, kind, place.format(name)


LIBRARIES = {
    "python": Library(
        "Python",
        "https://docs.python.org/3/",
        classes={
            "collections.abc.Callable collections.abc.Mapping collections.abc.Sequence": (
                "library/collections.abc.html#{0}"
            ),
            "pathlib.Path": "library/pathlib.html#{0}",
        },
    ),
    "numpy": Library(
        "NumPy",
        "https://numpy.org/doc/stable/",
        classes={
            "numpy.typing.ArrayLike": "reference/typing.html#{0}",
            "numpy.ndarray": "reference/generated/{0}.html#{0}",
            "numpy.random.Generator": "reference/random/generator.html#{0}",
            "numpy.polynomial.Polynomial": "reference/generated/numpy.polynomial.polynomial.Polynomial.html",
        },
    ),
    "scipy": Library(
        "SciPy",
        "https://docs.scipy.org/doc/scipy/",
        modules={"scipy.sparse": "reference/sparse.html#module-{0}"},
    ),
    "xarray": Library(
        "xarray",
        "https://docs.xarray.dev/en/stable/",
        classes={"xarray.Dataset xarray.DataArray": "generated/{0}.html#{0}"},
    ),
    "sklearn": Library(
        "scikit-learn",
        "https://scikit-learn.org/stable/",
        classes={
            "sklearn.kernel_approximation.Nystroem sklearn.kernel_ridge.KernelRidge sklearn.linear_model.Ridge "
            "sklearn.linear_model.RidgeCV sklearn.neural_network.MLPClassifier sklearn.neural_network.MLPRegressor": (
                "modules/generated/{0}.html#{0}"
            ),
        },
        functions={"sklearn.utils.estimator_checks.check_estimator": "modules/generated/{0}.html#{0}"},
    ),
    "pandas": Library(
        "pandas",
        "https://pandas.pydata.org/docs/",
        classes={"pandas.DataFrame": "reference/api/{0}.html#{0}"},
    ),
    "torch": Library(
        "PyTorch",
        "https://docs.pytorch.org/docs/stable/",
        classes={"torch.nn.Module": "generated/{0}.html#{0}"},
        modules={"torch.func": "func.html"},
    ),
    "matplotlib": Library(
        "matplotlib",
        "https://matplotlib.org/stable/",
        classes={"matplotlib.figure.Figure": "api/_as_gen/{0}.html#{0}"},
    ),
}


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """Return for each library its public address and the inventory in a folder, as Sphinx is told them."""
    return {key: (library.address, str(folder / f"{key}.inv")) for key, library in LIBRARIES.items()}


def write(folder: Path) -> None:
    """Write the inventories."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, library in LIBRARIES.items():
        (folder / f"{key}.inv").write_bytes(inventory(library))


def inventory(library: Library) -> bytes:
    r"""Return an inventory in the second version of Sphinx's format: four lines of text, then compressed entries.

    >>> zlib.decompress(inventory(LIBRARIES["pandas"]).split(b"zlib.\n")[1])
    b'pandas.DataFrame py:class 1 reference/api/pandas.DataFrame.html#pandas.DataFrame -\n'
    """
    head = f"# Sphinx inventory version 2\n# Project: {library.title}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = (f"{name} py:{kind} 1 {place} -\n" for name, kind, place in library.entries())
    return head.encode() + zlib.compress("".join(lines).encode())

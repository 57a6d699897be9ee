"""Interpolation: the smallest network that fits n random labels exactly (Montanari 2019, "Interpolation").

x_i ~ N(0, I_d) and y_i ~ N(0, 1), independent. RF and NT are linear: they fit if and only if the n × p matrix of their
features has rank n, for nearly every y. So the threshold is a count of parameters, p = n:

    RF: N = n;    NT: Nd + 1 = n (with its offset);    NT with σ = u²: Nd − N(N−1)/2 + 1 = n,

the last as WAᵀ + AWᵀ says nothing of the antisymmetric part of AᵀW. With σ = u² there are d(d+1)/2 quadratic forms and
the constant: beyond so many labels no width fits. A network that is trained whole has N(d+1) + 1 parameters, of which
N say nothing where σ is homogeneous; whether it fits is a question of training (`simulate.interpolate`). Labels are
Gaussian: those of ±1 are fitted by fewer neurons that saturate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, fits_in_memory, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.work import Measurement, Row
from lazyscope.experiments.exponents import computed
from lazyscope.training.linear.interpolate import KINDS, Kind, features, fitted, trained
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

FITS = 1e-6  # residual, relative to ‖y‖, up to which labels count as fitted


def threshold(kind: Kind, n: int, d: int, activation: Activation) -> float:
    """Return the smallest N whose parameters are as many as the labels; ∞ where no N has.

    >>> [threshold(kind, 200, 10, Activation("tanh")) for kind in KINDS]
    [200.0, 20.0, 19.0]
    >>> threshold("NT", 40, 10, Activation("square")), threshold("RF", 60, 10, Activation("square"))
    (5.0, inf)
    """
    square = activation.is_square
    if kind == "RF":
        return np.inf if square and n > d * (d + 1) // 2 + 1 else float(n)
    if square:
        return next((float(N) for N in range(1, d + 1) if N * d - N * (N - 1) // 2 + 1 >= n), np.inf)
    per_neuron = d if kind == "NT" else (d if activation.rectified else d + 1)
    return float(max(1, -(-(n - 1) // per_neuron)))


@dataclass(frozen=True, eq=False)
class InterpolationDraw(Measurement):
    """One sample of n labels, and whether one network fits it: the residual over ‖y‖, and the rank of its features."""

    kind: Kind
    n: int
    d: int
    width: int
    activation: Activation | str = "tanh"
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"{self.kind}, n = {self.n}, N = {self.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        parameters = self.width * (1 if self.kind == "RF" else self.d)
        return self.n * self.n * parameters * (200 if self.kind == "NN" else 1)

    def compute(self) -> Row:
        """Draw x, y and weights, and fit."""
        sigma = as_activation(self.activation)
        data = generator(self.seed, self.number, 0)  # the same labels for every width and regime
        X, y = data.standard_normal((self.n, self.d)), data.standard_normal(self.n)
        rng = generator(self.seed, self.number, self.width)
        W = rng.standard_normal((self.d, self.width)) / np.sqrt(self.d)
        if self.kind == "NN":
            residual = trained(sigma, X, y, rng, self.width, 0.1 * FITS)
            return {"residual": np.array(residual), "rank": np.array(self.n if residual < FITS else 0)}
        residual, rank = fitted(features(self.kind, sigma, X, W), y)
        return {"residual": np.array(residual), "rank": np.array(rank)}


def interpolation(
    n: int,
    d: int,
    *,
    activation: Activation | str = "tanh",
    kinds: Any = KINDS,
    widths: Any = None,
    draws: int = 8,
    seed: int = 0,
) -> xr.Dataset:
    """Return how often networks of each width fit n random labels in d dimensions exactly.

    Parameters
    ----------
    n, d
        Numbers of labels and of dimensions.
    activation
        σ, with a derivative.
    kinds
        Of "RF", "NT" and "NN".
    widths
        N, for every kind; by default those around the threshold of each.
    draws, seed
        Independent samples of data, labels and weights.

    Returns
    -------
    xarray.Dataset
        Over (`kind`, `point`): `width`, `fits` (the share of draws that are fitted), `residual` and `rank` (means);
        over `kind`: `smallest`, the mean over draws of the smallest N that fits, ∞ where one fits none, and, from two
        draws on, `smallest_stderr`; `threshold`, the count of parameters, and `transition`, the N between which the
        share goes from 0.1 to 0.9.

    Examples
    --------
    >>> found = interpolation(30, 5, kinds=("RF", "NT"), draws=2)
    >>> found.smallest.values, found.threshold.values
    (array([30.,  6.]), array([30.,  6.]))
    """
    n, d = whole_number(n, "interpolation", "n"), whole_number(d, "interpolation", "d")
    draws, seed = whole_number(draws, "interpolation", "draws"), whole_number(seed, "interpolation", "seed", least=0)
    fits_in_memory(16.0 * n * d, f"A sample of n = {n} in d = {d} dimensions", "Use smaller sizes.")
    sigma = as_activation(activation)
    if not sigma.has_derivative:
        raise InvalidParameter.of("interpolation", "activation", "have a derivative", sigma.name)
    chosen = list(dict.fromkeys(kinds))
    if not chosen or any(kind not in KINDS for kind in chosen):
        raise InvalidParameter.of("interpolation", "kinds", "be some of RF, NT and NN", kinds)
    work = plan(n, d, activation, chosen, widths, draws, seed)
    return assemble(work, computed(work))


def plan(
    n: int, d: int, activation: Activation | str, kinds: list[Kind], widths: Any, draws: int, seed: int
) -> list[InterpolationDraw]:
    """Return the draws of a report: around each threshold where no widths are given."""
    work = []
    for kind in kinds:
        if widths is None:
            some = around(threshold(kind, n, d, as_activation(activation)), kind)
        else:
            some = np.unique(whole_numbers(widths, "interpolation", "widths")).tolist()
        work += [InterpolationDraw(kind, n, d, N, activation, k, seed) for N in some for k in range(draws)]
    return work


def around(middle: float, kind: Kind) -> list[int]:
    """Return the widths from half to 1.6 times the threshold, some twelve of them, all near it.

    >>> around(20.0, "NT")
    [10, 14, 17, 18, 19, 20, 21, 22, 23, 26, 30, 32]
    """
    if not np.isfinite(middle):
        must = "be few enough for some width to fit them"
        raise InvalidParameter.of("interpolation", "n", must, "more than σ has features", "Pass another activation.")
    N = int(middle)
    near = range(N - 3, N + 4)
    far = (0.5 * N, 0.7 * N, 0.85 * N, 1.15 * N, 1.3 * N, 1.5 * N, 1.6 * N, *((2.0 * N,) if kind == "NN" else ()))
    return sorted({max(1, round(x)) for x in (*near, *far)})


def assemble(work: list[InterpolationDraw], rows: list[Row]) -> xr.Dataset:
    """Return the report of some draws."""
    import xarray as xr

    first, kinds = work[0], list(dict.fromkeys(one.kind for one in work))
    tables = [
        _one_kind([(one, row) for one, row in zip(work, rows, strict=True) if one.kind == kind]) for kind in kinds
    ]
    points = max(len(table["width"]) for table in tables)

    def padded(name: str) -> FloatArray:
        """Repeat the largest width, so that every kind has as many points."""
        return np.array([np.append(t[name], np.repeat(t[name][-1], points - len(t[name]))) for t in tables])

    variables: dict[str, Any] = {
        name: (("kind", "point"), padded(name)) for name in ("width", "fits", "residual", "rank")
    }
    several = any(one.number for one in work)
    for name in ("smallest", *(("smallest_stderr",) if several else ()), "transition"):
        variables[name] = ("kind", np.array([float(table[name]) for table in tables]))
    counts = [threshold(kind, first.n, first.d, as_activation(first.activation)) for kind in kinds]
    variables["threshold"] = ("kind", np.array(counts))
    result = xr.Dataset(variables, {"kind": kinds})
    result.attrs = {
        "n": first.n,
        "d": first.d,
        "activation": as_activation(first.activation).name,
        "seed": first.seed,
        "draws": 1 + max(one.number for one in work),
    }
    return result


def _one_kind(pairs: list[tuple[InterpolationDraw, Row]]) -> dict[str, FloatArray]:
    widths = sorted({one.width for one, _ in pairs})
    draws = sorted({one.number for one, _ in pairs})
    by = {(one.width, one.number): row for one, row in pairs}
    residual = np.array([[float(by[N, k]["residual"]) for k in draws] for N in widths])
    rank = np.array([[float(by[N, k]["rank"]) for k in draws] for N in widths])
    fitted = residual < FITS
    share = fitted.mean(axis=1)
    smallest = np.where(fitted.any(axis=0), np.array(widths)[np.argmax(fitted, axis=0)], np.inf)
    known = len(draws) > 1 and bool(np.all(np.isfinite(smallest)))
    spread = smallest.std(ddof=1) / np.sqrt(len(draws)) if known else np.inf
    return {
        "width": np.array(widths, dtype=float),
        "fits": share,
        "residual": residual.mean(axis=1),
        "rank": rank.mean(axis=1),
        "smallest": np.array(smallest.mean()),
        "smallest_stderr": np.array(spread),
        "transition": np.array(_between(np.array(widths, dtype=float), share)),
    }


def _between(widths: FloatArray, share: FloatArray) -> float:
    """Return how far N goes while the share of fitted draws goes from 0.1 to 0.9; 0 for a jump between neighbours."""
    if share[-1] < 0.9:
        return np.inf
    last_low = np.flatnonzero(share <= 0.1)
    first_high = int(np.flatnonzero(share >= 0.9)[0])
    low = int(last_low[-1]) if last_low.size else 0
    return max(0.0, float(widths[first_high] - widths[low]) - 1.0)

"""The width lens: how training scales with width, from networks of several widths, and which limit it goes to.

Of each width N the same is measured on the same inputs, before and after training:

    Δh  the change of the hidden features, root mean square over neurons and inputs,   Δh ∝ N^a,
    Δf  the change of the outputs, root mean square,                                   Δf ∝ N^b,
    ΔK  ‖K − K₀‖/‖K₀‖ of the tangent kernel,                                           ΔK ∝ N^c.

In the NTK parametrisation features move by N^{−1/2}, and the kernel of two layers by 1/N, as its neurons move with
random signs, while outputs move by O(1): lazy. In the mean-field or maximal-update parametrisation all three stay O(1):
features are learnt at any width (Yang & Hu 2021). An exponent above zero means that something grows without bound:
unstable. Exponents are slopes of least squares on logarithmic axes; their errors come from the scatter over seeds and
widths about the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network.sketch import GROUPS, change, sketched
from lazyscope.progress import report

if TYPE_CHECKING:
    import xarray as xr

_OWNER = "lens_widths"
_ROWS = 50  # of the tangent kernel
_CLEAR = 2.0  # standard errors
_SLOPE = 0.15  # that an exponent must have at least to be called one: widths are finite
_LARGE = 8e7  # entries of the Jacobian of the kernel's rows, from which on random directions are used
_DIRECTIONS = 64
NAMES = {"features": "features move", "outputs": "outputs move", "kernel": "the tangent kernel changes"}


@dataclass(frozen=True, eq=False)
class WidthLens:
    """What was measured, (seed, width) each, the exponents with their errors, and the verdict.

    `exponents` and `stderr` are by name: features, outputs, kernel.
    """

    widths: FloatArray
    measured: Mapping[str, FloatArray]
    exponents: Mapping[str, float]
    stderr: Mapping[str, float]

    @property
    def kind(self) -> str:
        """lazy, feature learning, unstable, or unclear."""
        rises = [name for name in self.exponents if self._slope(name) > 0]
        if rises:
            return "unstable"
        moved = self._slope("features") if "features" in self.exponents else self._slope("kernel")
        if moved < 0:
            return "lazy" if self._slope("outputs") == 0 else "unclear"
        return "feature learning" if self._slope("outputs") == 0 and self._slope("kernel") == 0 else "unclear"

    def _slope(self, name: str) -> int:
        value, error = self.exponents[name], self.stderr[name]
        return 0 if abs(value) < max(_SLOPE, _CLEAR * error) else int(np.sign(value))

    @property
    def verdict(self) -> str:
        """The exponents and what they say, in words."""
        said = ", ".join(
            f"{NAMES[name]} by N^{self.exponents[name]:.2f} ± {self.stderr[name]:.2f}" for name in self.exponents
        )
        return {
            "lazy": f"Lazy: the wider, the less features change, as in the NTK limit; {said}.",
            "feature learning": f"Feature learning at any width, as with mean-field scaling or μP; {said}.",
            "unstable": f"Unstable: something grows with width, so that the step size must fall with it; {said}.",
            "unclear": f"No known limit: outputs or kernel vanish with width, or widths are too few to tell; {said}.",
        }[self.kind]

    def __str__(self) -> str:
        return self.verdict

    @property
    def dataset(self) -> xr.Dataset:
        """What was measured, (seed, width), and the exponents with their errors."""
        import xarray as xr

        from lazyscope import __version__

        names = list(self.exponents)
        variables: dict[str, Any] = {name: (("seed", "width"), self.measured[name]) for name in names}
        for label, values in (("exponent", self.exponents), ("exponent_stderr", self.stderr)):
            variables[label] = ("quantity", [values[name] for name in names])
        coordinates = {"width": self.widths, "seed": np.arange(len(self.measured[names[0]])), "quantity": names}
        return xr.Dataset(variables, coordinates, {"verdict": self.verdict, "lazyscope_version": __version__})


def lens_widths(
    make_model: Callable[[int], Any], widths: Sequence[int], train: Any, x: Any, *, seeds: int = 3
) -> WidthLens:
    """Make and train networks of several widths, and say how features, outputs and the kernel scale with width.

    `make_model(N)` returns a PyTorch module, or a pair (f, params) of JAX. `train(model, N)` trains it on the spot, or
    returns its new parameters (a state_dict; params of JAX). A mapping N ↦ (before, after) of saved parameters stands
    for training that was done elsewhere, with one seed. `x` are the inputs that are looked at. PyTorch's generator is
    seeded before each model is made; in JAX `make_model` is called with N alone, so that its seed is its own.

    Features are the outputs of every layer with parameters but the last, of a PyTorch module; JAX has none to hook.

    >>> import torch
    >>> def make(N):
    ...     return torch.nn.Sequential(torch.nn.Linear(3, N), torch.nn.Tanh(), torch.nn.Linear(N, 1))
    >>> def step(model, N):
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=1.0 / N)  # a step that falls with width: lazy
    ...     (model(x) - x[:, :1]).square().mean().backward()
    ...     optimizer.step()
    >>> x = torch.randn(20, 3)
    >>> lens_widths(make, [32, 64, 128, 256], step, x, seeds=2).kind
    'lazy'
    """
    sizes = np.atleast_1d(np.asarray(whole_numbers(widths, _OWNER, "widths"), dtype=np.float64))
    if len(np.unique(sizes)) < 3:
        raise InvalidParameter.of(_OWNER, "widths", "be at least three different ones, for a slope", sizes.tolist())
    number = 1 if isinstance(train, Mapping) else whole_number(seeds, _OWNER, "seeds")
    rows: list[list[dict[str, float]]] = []
    for seed in range(number):
        rows.append([])
        for k, width in enumerate(sizes):
            report(seed * len(sizes) + k, number * len(sizes), f"width {width:.0f}, seed {seed}")
            rows[-1].append(_measured(make_model, int(width), train, x, seed))
    names = [name for name in NAMES if name in rows[0][0]]
    measured = {name: np.array([[cell[name] for cell in row] for row in rows]) for name in names}
    for name, values in measured.items():
        if not np.all(np.isfinite(values)) or not np.all(values > 0):
            must = "change the network at every width, and keep it finite"
            got = f"{name} that {'diverged' if not np.all(np.isfinite(values)) else 'did not move'}"
            raise InvalidParameter.of(_OWNER, "train", must, got)
    fits = {name: _exponent(sizes, values) for name, values in measured.items()}
    slopes, errors = ({name: fit[k] for name, fit in fits.items()} for k in (0, 1))
    return WidthLens(sizes, measured, slopes, errors)


def _measured(make_model: Callable[[int], Any], width: int, train: Any, x: Any, seed: int) -> dict[str, float]:
    """Return the changes at one width: make, train, compare."""
    from lazyscope.lenses.verb import as_network

    _seed(seed)
    subject = make_model(width)
    model = as_network(subject)
    if model is None:
        must = "return a PyTorch module or a pair (f, params)"
        raise InvalidParameter.of(_OWNER, "make_model", must, f"a {type(subject).__name__}")
    inputs = model.array(x)
    if isinstance(train, Mapping):
        if width not in train:
            raise InvalidParameter.of(_OWNER, "train", f"have checkpoints (before, after) of width {width}", "none")
        start, now = (model.vector(saved) for saved in train[width])
    else:
        start = model.state().copy()
        trained = train(subject, width)
        now = model.state() if trained is None else model.vector(trained)
    result: dict[str, float] = {}
    ends = [_features(model, theta, inputs) for theta in (start, now)]
    if ends[0]:
        result["features"] = sqrt(float(np.mean([np.mean((b - a) ** 2) for a, b in zip(*ends, strict=True)])))
    values = [model.values(theta, inputs) for theta in (start, now)]
    result["outputs"] = sqrt(float(np.mean((values[1] - values[0]) ** 2)))
    few = inputs[:_ROWS]
    result["kernel"] = change(*(_kernel(model, theta, few, values[0].shape[1]) for theta in (now, start)))
    return result


def _kernel(model: Any, theta: FloatArray, x: Any, outputs: int) -> FloatArray:
    entries = float(len(theta)) * outputs * len(x)
    if entries > _LARGE:
        return sketched(model, theta, x, max(2 * GROUPS, _DIRECTIONS))
    return np.asarray(model.kernel(theta, x, len(x))[None])


def _features(model: Any, theta: FloatArray, x: Any) -> list[FloatArray]:
    """Return the hidden features, layer by layer; none where the library has no layers."""
    return list(model.features(theta, x)) if hasattr(model, "features") else []


def _seed(seed: int) -> None:
    """Seed PyTorch's generator where PyTorch is loaded."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _exponent(widths: FloatArray, values: FloatArray) -> tuple[float, float]:
    """Return the slope of log values, (seeds, widths), on log widths, and its standard error from the scatter.

    >>> slope, error = _exponent(np.array([2.0, 4.0, 8.0]), np.array([[1.0, 0.5, 0.25]]))
    >>> round(slope, 6), round(error, 6)
    (-1.0, 0.0)
    """
    t = np.tile(np.log(widths), len(values))
    t = t - t.mean()
    v = np.log(values).ravel()
    slope = float(t @ v / (t @ t))
    left = v - v.mean() - slope * t
    return slope, sqrt(float(left @ left) / max(1, len(v) - 2) / float(t @ t))

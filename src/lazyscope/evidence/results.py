"""Results: how the draws of a run become one, and the labelled Dataset that says where every number comes from."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np

from lazyscope.checks import jsonable
from lazyscope.errors import NotConverged
from lazyscope.problems.base import GaussianProblem, Problem
from lazyscope.protocols import SGD
from lazyscope.regimes import Regime

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray
    from xarray.indexes import PandasIndex

    from lazyscope.evidence.claim import Claim
    from lazyscope.evidence.run import Run

P = ParamSpec("P")

Variable = tuple[tuple[str, ...], Any]
"""Names of the axes, and values."""

Reduction = Callable[["Run", Mapping[str, Variable]], dict[str, Variable]]
"""From the variables of all draws, each with the axis `draw`, to those of the result."""

LONG_NAMES = {
    "rho": "N/d, neurons per dimension",
    "width": "N, number of neurons",
    "psi1": "N/d, neurons per dimension",
    "psi2": "n/d, samples per dimension",
    "ridge": "ridge λ",
    "risk": "risk",
    "times": "t = steps/d",
    "epsilon_g": "½E(f̂ − f)²",
    "risk_error": "error of the risk, by the distance of several rules of quadrature or sampling",
    "Q": "Q, overlaps of the weights",
    "R": "R, overlaps of weights and target",
    "bias": "bias, F₁²𝓑",
    "variance": "variance, (τ² + F⋆²)𝓥",
    "margin": "largest margin κ⋆",
    "error": "probability of a wrong label",
    "alignment": "correlation ν with the best direction of the features",
    "aligned": "share of the weights' squared length along the target's directions",
    "seen": "r, what the features see of the score",
    "separable": "1 where some direction separates the labels",
    "support": "share of support vectors",
    "gap": "relative duality gap",
    "ratio": "N/n at the threshold",
    "stderr": "standard error of the mean over draws",
    "risk_draws": "risk of each draw",
    "psi": "solution ψ of the fixed point",
    "residual": "relative residual",
    "iterations": "iterations",
    "condition": "condition number of the system solved",
    "gradient": "norm of the gradient where the descent ended",
    "gain": "what the last tenth of the descent (at most 100 steps) lowered the risk by",
    "rank": "number of independent features",
    "degrees_of_freedom": "df₁, how many directions the fit uses",
    "learnt": "share of each degree that is learnt, ξ/(ξ + ν₂)",
    "degree": "degree of the harmonics",
    "converged": "1 where the tolerance was met",
    "draw": "index of the independent draw",
    "samples": "samples seen",
    "step": "steps of descent",
    "step_size": "step size",
    "step_size_best": "step size with the lowest risk at the end",
    "tested": "risk on fresh samples",
    "train": "risk on the samples that were fitted",
    "trace": "risk against samples seen, at the best step size",
    "risk_by_step": "risk at the end, for every step size",
    "diverged": "whether SGD diverged, or was given up by halving",
    "finite_size": "what finitely many samples may add to the risk",
    "difference": "simulated risk minus exact risk",
    "z": "difference beyond the finite-size term, in standard errors",
    "limit": "risk as N, d → ∞",
    "exact": "risk at finite N and d, n = ∞",
    "simulate": "risk of networks trained on drawn data",
}


def _over_draws(dims: tuple[str, ...], values: NDArray[Any]) -> tuple[tuple[str, ...], Any, Any]:
    """Return the axes that are left, the mean over draws and its standard error, which is None if there is one draw."""
    axis = dims.index("draw")
    draws = values.shape[axis]
    left = tuple(name for name in dims if name != "draw")
    error = values.std(axis=axis, ddof=1) / np.sqrt(draws) if draws > 1 else None
    return left, values.mean(axis=axis), error


def _of_each_draw(dims: tuple[str, ...], values: NDArray[Any]) -> Variable:
    """Return the values with the axis `draw` last."""
    left = tuple(name for name in dims if name != "draw")
    return (*left, "draw"), np.moveaxis(values, dims.index("draw"), -1)


def stderr_name(name: str) -> str:
    """Return the name of a variable's standard error: `stderr` for the risk.

    >>> stderr_name("risk"), stderr_name("bias")
    ('stderr', 'bias_stderr')
    """
    return "stderr" if name == "risk" else f"{name}_stderr"


def averaged(run: Run, table: Mapping[str, Variable]) -> dict[str, Variable]:
    """Average every variable, with its standard error beside it from two draws on; of the risk keep each draw, too."""
    variables: dict[str, Variable] = {}
    for name, (dims, values) in table.items():
        left, mean, error = _over_draws(dims, values)
        variables[name] = (left, mean)
        if error is not None:
            variables[stderr_name(name)] = (left, error)
            if name == "risk":
                variables["risk_draws"] = _of_each_draw(dims, values)
    return variables


def traced(run: Run, table: Mapping[str, Variable]) -> dict[str, Variable]:
    """Average, without a standard error for each point of the trace."""
    variables = averaged(run, table)
    variables.pop("trace_stderr", None)
    return variables


def with_reports(run: Run, table: Mapping[str, Variable]) -> dict[str, Variable]:
    """Average the risk, with its standard error; what a solver reports is kept draw by draw."""
    return _risk(table["risk"], best=False) | _reports(table)


def best_of_draws(run: Run, table: Mapping[str, Variable]) -> dict[str, Variable]:
    """Keep the lowest risk: the draws are restarts of a minimisation. Refuse a best draw that was still falling.

    Other draws may have stopped where they like: they are above it.
    """
    if "converged" in table:
        risk, converged, gain = (table[name][1] for name in ("risk", "converged", "gain"))  # (width, draw)
        best = np.argmin(risk, axis=1)[:, None]
        falling = np.take_along_axis(converged, best, axis=1) == 0
        if np.any(falling):
            most = float(np.max(np.take_along_axis(gain, best, axis=1)[falling]))
            raise NotConverged(
                f"The descent still gained {most:.1e} of the risk when its steps ended (tolerance 1e-05), in the best "
                f"of {risk.shape[1]} draws. Use a smaller width, or another seed."
            )
    return _risk(table["risk"], best=True) | _reports(table)


def _risk(risk: Variable, best: bool) -> dict[str, Variable]:
    dims, values = risk
    left, mean, error = _over_draws(dims, values)
    variables: dict[str, Variable] = {"risk": (left, values.min(axis=dims.index("draw")) if best else mean)}
    if error is not None:
        if not best:
            variables["stderr"] = (left, error)
        variables["risk_draws"] = _of_each_draw(dims, values)
    return variables


def _reports(table: Mapping[str, Variable]) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    for name, (dims, values) in table.items():
        if name == "risk":
            continue
        left, mean, error = _over_draws(dims, values)
        single = name == "train" or error is None
        variables[name] = (left, mean) if single else _of_each_draw(dims, values)
    return variables


def best_step_size(run: Run, table: Mapping[str, Variable]) -> dict[str, Variable]:
    """Average the traces of SGD, and keep at each width the step size whose mean risk at the end is lowest.

    Overlaps `Q` and `R` are kept draw by draw: neurons of another draw are others.
    """
    assert isinstance(run.protocol, SGD)  # the claims that use this follow SGD
    trace, tested = table["trace"][1], table["tested"][1]  # (draw, width, step size, samples), (draw, width, step size)
    final = trace[..., -1].mean(axis=0)
    lost = np.all(np.isinf(final), axis=1)
    if np.any(lost):
        where = f"N = {run.widths[int(np.argmax(lost))]}, in one draw or another"
        what, advice = "diverged", "Pass protocol=SGD(step_sizes=…) with smaller ones."
        if run.protocol.halving:
            what, advice = "diverged or was given up", "Pass smaller step sizes, or an SGD without halving."
        raise NotConverged(f"SGD {what} at {where}, with every step size of {run.protocol.step_sizes}. {advice}")
    best = np.argmin(final, axis=1)
    here = np.arange(len(best))
    variables = _risk((("width", "draw"), trace[:, here, best, -1].T), best=False)
    variables["tested"] = (("width",), tested[:, here, best].mean(axis=0))
    variables["step_size_best"] = (("width",), np.array(run.protocol.step_sizes)[best])
    variables["trace"] = (("width", "samples"), trace[:, here, best].mean(axis=0))
    variables["risk_by_step"] = (("width", "step_size"), final)
    variables["diverged"] = (("width", "step_size"), ~np.isfinite(final))
    for name in ("Q", "R"):
        if name in table:  # (draw, width, step size, samples, …)
            dims, values = table[name]
            left = tuple(dim for dim in dims if dim != "step_size")
            each = values[:, here, best]
            variables[name] = (left[1:], each[0]) if len(each) == 1 else _of_each_draw(left, each)
    return variables


def labelled(
    coordinates: Mapping[str, Variable], variables: Mapping[str, Variable], long_names: Mapping[str, str]
) -> xr.Dataset:
    """Put arrays and their names together, in 0.05 ms where `xr.Dataset(variables, coordinates)` takes 0.25.

    That constructor aligns, merges and copies what users bring; here every array has its place already, and xarray's
    own inner constructor is taken instead, where it is what it is today (`_inner_constructor`).
    """
    import xarray as xr

    placed: dict[Any, Any] = {}
    indexes: dict[Any, Any] = {}
    lengths: dict[Any, int] = {}
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {}  # nearly all have the same axes
    for name, (dims, values) in {**variables, **coordinates}.items():
        array = np.asarray(values)
        if shapes.get(dims) != array.shape:
            lengths.update(zip(dims, array.shape, strict=True))
            shapes[dims] = array.shape
        attributes = {"long_name": long_names[name]} if name in long_names else None
        if dims == (name,) and name in coordinates:
            indexes[name], axis = _index_of(name, array)
            placed[name] = axis.copy(deep=False)
            placed[name].attrs = attributes or {}
        else:
            placed[name] = xr.Variable(dims, array, attributes, fastpath=True)
    inner = _inner_constructor(xr.Dataset)
    if inner is None:
        return xr.Dataset(
            {name: placed[name] for name in variables if name not in coordinates},
            {name: placed[name] for name in coordinates},
        )
    return inner(placed, set(coordinates), lengths, None, indexes)


def _index_of(name: str, axis: NDArray[Any]) -> tuple[PandasIndex, xr.IndexVariable]:
    """Return the index of an axis and its variable; those of a short axis are kept, as many results share an axis."""
    if axis.nbytes > 10_000 or axis.dtype.hasobject:
        return _indexed(name, axis)
    return _index_of_bytes(name, axis.dtype.str, axis.tobytes())


@lru_cache(maxsize=64)
def _index_of_bytes(name: str, dtype: str, axis: bytes) -> tuple[PandasIndex, xr.IndexVariable]:
    """Return an index over memory that cannot be written to, so that no result changes another."""
    return _indexed(name, np.frombuffer(axis, dtype))


def _indexed(name: str, axis: NDArray[Any]) -> tuple[PandasIndex, xr.IndexVariable]:
    from xarray.indexes import PandasIndex

    index = PandasIndex(axis, name)
    return index, cast("xr.IndexVariable", index.create_variables()[name])


@cache
def _inner_constructor(kind: type[xr.Dataset]) -> Callable[..., xr.Dataset] | None:
    """Return `Dataset._construct_direct`, or None where it does not do what the public constructor does.

    It is private, so that a new xarray may drop or change it: a small Dataset is made both ways, once.
    """
    import xarray as xr
    from xarray.indexes import PandasIndex

    index = PandasIndex(np.array([0.5, 1.0]), "x")
    axis, values = index.create_variables()["x"], xr.Variable(("x",), np.array([1.0, 2.0]))
    public = xr.Dataset({"y": values}, {"x": axis})
    try:
        inner: Callable[..., xr.Dataset] = kind._construct_direct
        made = inner({"y": values, "x": axis}, {"x"}, {"x": 2}, None, {"x": index})
        same = made.identical(public) and made.sizes == public.sizes and made.xindexes["x"].equals(index)
    except (AttributeError, TypeError, ValueError, KeyError):
        return None
    return inner if same else None


def dataset(
    coordinates: Mapping[str, Variable],
    variables: Mapping[str, Variable],
    *,
    claim: Claim,
    problem: Problem,
    regime: Regime,
    arguments: Mapping[str, Any],
) -> xr.Dataset:
    """Assemble the Dataset that a verb returns, from name → (dimensions, values)."""
    from lazyscope import __version__

    named = LONG_NAMES | ({"risk": "risk (1 = best constant)"} if isinstance(problem, GaussianProblem) else {})
    result = labelled(coordinates, variables, named)
    result.attrs = {
        "claim": claim.key,
        "fidelity": claim.fidelity,
        "theorem": claim.theorem,
        "citations": ",".join(claim.citations),
        "assumptions": "; ".join(claim.assumptions),
        **({"erratum": claim.erratum} if claim.erratum else {}),
        "problem": str(problem),
        "regime": str(regime),
        "label": regime.label,
        "arguments": _json(arguments),
        "lazyscope_version": __version__,
    }
    return result


def _json(arguments: Mapping[str, Any]) -> str:
    """Return the arguments as JSON.

    >>> _json({"rho": [0.5, float("inf")], "method": "margin"})
    '{"rho": [0.5, "inf"], "method": "margin"}'
    """
    numbers = (type(v) is list and 0 < len(v) < 1000 and type(v[0]) in (int, float) for v in arguments.values())
    texts = (_list_text(*v) if plain else _text(v) for v, plain in zip(arguments.values(), numbers, strict=True))
    return "{" + ", ".join(f'"{name}": {text}' for name, text in zip(arguments, texts, strict=True)) + "}"


_ENCODER = json.JSONEncoder(allow_nan=False)  # `json.dumps` makes a new one at every call that is not its default


def _text(value: Any) -> str:
    """Return JSON: at once where the value is a plain number, list or word, as it mostly is."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError):
        return json.dumps(jsonable(value))


@lru_cache(maxsize=64, typed=True)
def _list_text(*values: Any) -> str:
    """Return a list of sizes as JSON, kept like the index of their axis: its digits take longer than all the rest."""
    return _text(list(values))


def with_arguments(verb: Callable[P, xr.Dataset]) -> Callable[P, xr.Dataset]:
    """Have a function of a problem and a regime write its other arguments into its results, as `dataset` does.

    >>> import lazyscope as ls
    >>> result = ls.flow(ls.QuadraticTarget([1.0]), ls.NeuralTangent(), width=1, times=[1.0])
    >>> [json.loads(result.attrs["arguments"])[name] for name in ("width", "times", "seed")]
    [1, [1.0], 0]
    """
    signature = inspect.signature(verb)

    @wraps(verb)
    def call(*arguments: P.args, **named: P.kwargs) -> xr.Dataset:
        result = verb(*arguments, **named)
        given = signature.bind(*arguments, **named)
        given.apply_defaults()
        told = {name: value for name, value in given.arguments.items() if name not in ("problem", "regime")}
        return result.assign_attrs(arguments=_json(told))

    return call

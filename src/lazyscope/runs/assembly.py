"""The one loop over runs, and the one way from their rows to a labelled Dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.evidence.results import Variable, dataset
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.problems.base import SizedProblem
from lazyscope.progress import report
from lazyscope.protocols import SGD

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.evidence.claim import Claim

_ONE_VALUE = ("samples", "d")  # sizes that are no dimension of a result, unless several values are asked for


def answer(run: Run, draws: int = 1, scalar: Collection[str] = _ONE_VALUE) -> xr.Dataset:
    """Compute every draw of a run, telling the progress, and return the labelled result."""
    whole = run.settled()
    plan = [part.at(number=number) for part in whole.parts() for number in range(draws)]
    rows: list[Row] = []
    for part in plan:
        report(len(rows), len(plan), f"{part.label}, draw {part.number + 1} of {draws}")
        rows.append(part.compute())
    report(len(plan), len(plan), "done")
    result = assemble(plan, rows, scalar)
    for name, values in whole.sizes.items():  # a value that was asked for twice is computed once and answered twice
        if len(set(values)) != len(values) and name in result.dims:
            result = result.isel({name: [result[name].values.tolist().index(value) for value in values]})
    return result


def assemble(runs: Sequence[Run], rows: Sequence[Row], scalar: Collection[str] = _ONE_VALUE) -> xr.Dataset:
    """Return one result from runs that differ in their sizes and number alone.

    Dimensions named in `scalar`, of one value each, are left out.
    """
    first = runs[0].settled()
    if first.sizes.keys() != runs[0].sizes.keys():  # a default was left out, such as the samples of a fit
        runs = [run.settled() for run in runs]
    claim = first.claim
    given = [name for name in claim.arguments if name in first.sizes]
    values = {name: tuple(dict.fromkeys(first.sizes[name])) for name in given}
    if len(runs) > 1:
        values = {name: tuple(dict.fromkeys(value for run in runs for value in run.sizes[name])) for name in given}
    same = [*values.items()] == [*first.sizes.items()]  # the order of sizes is that of the claim, however they came
    whole = first if same else first.at(sizes=values)
    numbers = sorted({run.number for run in runs})
    own = {name for dims in claim.dims.values() for name in dims}
    single = [name for name in scalar if name in values and name not in own]
    table = _tables(whole, [name for name in _shared(claim, rows) if name not in own], numbers, runs, rows)
    if claim.fidelity == "limit" or not given:
        variables = _without(table, ("draw", *single))
    else:
        variables = _without(_reduced(whole, table, rows[0]), single)
    coordinates = _coordinates(whole, rows[0])
    hidden = [name for name in _ONE_VALUE if name in scalar and name not in own]
    return dataset(
        _without({name: variable for name, variable in coordinates.items() if name not in hidden}, single),
        variables,
        claim=claim,
        problem=whole.problem,
        regime=whole.regime,
        arguments=_arguments(whole, len(numbers), scalar),
    )


def _reduced(whole: Run, table: Mapping[str, Variable], row: Row) -> dict[str, Variable]:
    """Return the variables of all draws, as the claim makes them one, with what finitely many samples may add."""
    claim, sizes = whole.claim, whole.sizes
    variables = claim.reduce(whole, table)
    if claim.finite_size is not None:
        given = [name for name in claim.arguments if name in sizes]
        places = dict(zip(given, np.ix_(*(np.asarray(sizes[name]) for name in given)), strict=True))
        known = {name: array for name, (_, array) in variables.items()}
        known |= {"width": places["width"], "n": places.get("samples"), "samples": row.get("samples")}
        variables["finite_size"] = (tuple(given), claim.finite_size(known))
    return variables


def _shared(claim: Claim, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the variables that fit into one array: overlaps of 2 neurons have no place beside those of 3."""
    if len(rows) == 1:
        yield from rows[0]
        return
    for name, values in rows[0].items():
        own = values.ndim - len(claim.dims.get(name, ()))  # where its own axes begin
        if all(name in row and row[name].shape[own:] == values.shape[own:] for row in rows[1:]):
            yield name


def _tables(
    whole: Run, names: Sequence[str], numbers: Sequence[int], runs: Sequence[Run], rows: Sequence[Row]
) -> dict[str, Variable]:
    """Put each variable into one array: axes are sizes taken one by one, draws, sizes taken at once, its own.

    The order of the axes is part of the numbers: sums over draws round differently along another one.
    """
    claim, sizes = whole.claim, whole.sizes
    arrays = [size for size in claim.arrays if size in sizes]
    looped = [size for size in claim.arguments if size in sizes and size not in arrays]
    dims = (*looped, "draw", *arrays)
    shape = (*(len(sizes[size]) for size in looped), len(numbers), *(len(sizes[size]) for size in arrays))
    if len(runs) == 1 and sizes is runs[0].sizes:  # a single run without repeated values fills the table as it is
        place: dict[int, Any] = {}
    else:
        places = {size: {value: k for k, value in enumerate(sizes[size])} for size in (*looped, *arrays)}
        at = [
            [[places[size][value] for value in run.sizes[size]] for size in looped]
            + [[numbers.index(run.number)]]
            + [[places[size][value] for value in run.sizes[size]] for size in arrays]
            for run in runs
        ]
        place = dict(enumerate(np.ix_(*axes) for axes in at))
    tables: dict[str, Variable] = {}
    for name in names:
        own, first = claim.dims.get(name, ()), rows[0][name]
        tail = first.shape[first.ndim - len(own) :]
        if not place:
            table = first.reshape(shape + tail)
        else:
            table = np.empty(shape + tail, dtype=first.dtype)
            for k, row in enumerate(rows):
                table[place[k]] = row[name].reshape(*(axis.size for axis in place[k]), *tail)
        tables[name] = (dims + own, table)
    return tables


def _without(variables: Mapping[str, Variable], names: Collection[str]) -> dict[str, Variable]:
    """Drop these axes, each of one value."""
    found: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[Any, ...]]] = {}  # nearly all have the same axes
    left: dict[str, Variable] = {}
    for name, (dims, values) in variables.items():
        if dims not in found:
            kept = tuple(dim for dim in dims if dim not in names)
            found[dims] = kept, tuple(0 if dim in names else slice(None) for dim in dims)
        kept, place = found[dims]
        left[name] = (dims, values) if len(kept) == len(dims) else (kept, np.asarray(values)[place])
    return left


def _coordinates(whole: Run, row: Row) -> dict[str, Variable]:
    """Return the sizes, N/d and n/d beside them, and the places along axes of a variable's own."""
    sizes, claim = whole.sizes, whole.claim
    coordinates: dict[str, Variable] = {name: ((name,), np.asarray(values)) for name, values in sizes.items()}
    if claim.fidelity != "limit" and "width" in sizes:
        ratio = "rho" if isinstance(whole.problem, SizedProblem) else "psi1"
        coordinates[ratio] = (("width",), np.asarray(sizes["width"]) / whole.d)
        if ratio == "psi1":
            coordinates["psi2"] = (("samples",), np.asarray(sizes["samples"]) / whole.d)
    for name in dict.fromkeys(name for dims in claim.dims.values() for name in dims):
        if name in row:
            coordinates[name] = ((name,), row[name])
        elif name == "step_size" and isinstance(whole.protocol, SGD):
            coordinates[name] = ((name,), np.array(whole.protocol.step_sizes))
    return coordinates


def _arguments(whole: Run, draws: int, scalar: Collection[str]) -> Mapping[str, Any]:
    """Return what the call was, for the attributes of its result."""
    arguments: dict[str, Any] = {
        name: values[0] if name in scalar else list(values) for name, values in whole.sizes.items()
    }
    if whole.method is not None:
        arguments["method"] = whole.method
    if whole.claim.fidelity != "limit" and whole.sizes:
        arguments |= {"draws": draws, "seed": whole.seed}
    if whole.protocol is not None:
        arguments["protocol"] = asdict(whole.protocol)  # type: ignore[call-overload]  # protocols are dataclasses
    return arguments

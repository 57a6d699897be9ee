"""`lazyscope compare`: the three fidelities side by side, and whether they agree."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope.cli import effort, output, ratios, risks
from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr

_NETWORKS = "rf,nt,nn"
_WITHIN = 3.0  # standard errors
_COLUMNS = ("limit", "exact", "exact_stderr", "simulate", "simulate_stderr", "difference", "stderr", "finite_size", "z")


def _run(kind: str, options: dict[str, Any]) -> None:
    import xarray as xr

    from lazyscope.cli.terminal import progress_bar
    from lazyscope.runs import side_by_side

    owner = f"lazyscope compare {kind}"
    wanted = output.Wanted.of(owner, options)
    makers = risks.regimes_of(owner, options, options["regime"] or _NETWORKS)
    if {"bayes", "mf"} & {*makers}:
        raise InvalidParameter.of(owner, "--regime", "name networks: rf, nt, nn", repr(options["regime"]))
    problem = risks.problem_of(owner, kind, options)
    widths = risks.widths_of(owner, problem, options).whole
    protocol = risks.protocol_of(owner, options)
    sizes = {name: options[name] for name in ("draws", "seed", "samples")}
    regimes = {name: maker() for name, maker in makers.items()}
    exact = effort.exact(problem, regimes, widths, options["draws"])
    simulated = risks.sgd_effort(problem, regimes, widths, options, protocol)
    whole = effort.Effort(exact.seconds + simulated.seconds, f"{exact.what} and {simulated.what}")
    whole.check(owner, "--samples, --draws or --width")
    with progress_bar():
        columns = [
            side_by_side.compare(problem, regime, width=widths, protocol=protocol(problem, regime), **sizes)
            for regime in regimes.values()
        ]
    result = xr.concat(columns, dim="regime", combine_attrs="drop_conflicts")
    command = str(click.get_current_context().find_root().obj)
    if wanted.out is not None:
        _write(wanted.out, result, command, str(problem))
        click.echo(f"wrote {wanted.out}", err=True)
    if wanted.as_json:
        click.echo(json.dumps(_document(result, command, str(problem))))
    else:
        _show(result, str(problem))


def _rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """Return a row for each regime and width; None where there is no such number."""
    rows = []
    for regime in result.regime.values.tolist():
        one = result.sel(regime=regime)
        for i, N in enumerate(one.width.values.tolist()):
            numbers = {name: float(one[name].values[i]) for name in _COLUMNS}
            told = {name: None if math.isnan(number) else number for name, number in numbers.items()}
            rows.append({"regime": regime, "rho": float(one.rho.values[i]), "width": N} | told)
    return rows


def _document(result: xr.Dataset, command: str, problem: str) -> dict[str, Any]:
    return {"problem": problem, "command": command, "attrs": result.attrs, "rows": _rows(result)}


def _write(path: Path, result: xr.Dataset, command: str, problem: str) -> None:
    from lazyscope import files

    with files.replacing(path) as part:
        if path.suffix.lower() == ".csv":
            rows = [{name: "" if value is None else value for name, value in row.items()} for row in _rows(result)]
            files.write_csv(part, rows, [command, problem])
        elif path.suffix.lower() == ".json":
            part.write_text(json.dumps(_document(result, command, problem), indent=1) + "\n", encoding="utf-8")
        else:
            result.assign_attrs(command=command).to_netcdf(part, engine="h5netcdf")


def _show(result: xr.Dataset, problem: str) -> None:
    """Print the table, a section a regime, and a line on whether all agree."""
    from lazyscope.cli.terminal import console, size, table, with_error

    rows = _rows(result)
    grid = table("regime", "N", "N/d", "limit", "exact", "simulated", "simulated − exact", "finite size", "z", left=1)
    for i, row in enumerate(rows):
        first = i == 0 or rows[i - 1]["regime"] != row["regime"]
        if first and i:
            grid.add_section()
        risk = [
            "—" if row[name] is None else with_error(row[name], row.get(f"{name}_stderr"), 4)
            for name in ("limit", "exact", "simulate")
        ]
        far = ("—",) * 3
        if row["z"] is not None:
            difference = with_error(round(row["difference"], 4) + 0.0, row["stderr"], 4)
            far = (difference, f"{row['finite_size']:.4f}", f"{row['z']:.1f}")
        grid.add_row(row["regime"] if first else "", size(row["width"]), size(row["rho"]), *risk, *far)
    out = console()
    out.print(problem, soft_wrap=True)
    out.print(grid)
    out.print(
        "z: what |simulated − exact| has beyond the finite-size term, in standard errors (Student's: draws are few)."
    )
    far_off = [row for row in rows if row["z"] is not None and row["z"] > _WITHIN]
    compared = sum(row["z"] is not None for row in rows)
    verdict = f"{compared - len(far_off)} of {compared} agree within {_WITHIN:g} standard errors."
    out.print(verdict, soft_wrap=True)


def _command(kind: str) -> click.Command:
    formula = risks.PROBLEMS[kind][1]
    params: list[click.Parameter] = [
        *risks.PROBLEMS[kind][2],
        *risks.regime_options(),
        *risks.size_options("simulate", draws=4),
        *output.options(),
    ]

    def callback(**options: Any) -> None:
        _run(kind, options)

    name = {"quadratic": "a quadratic target", "mixture": "a mixture of two Gaussians"}[kind]
    return click.Command(
        kind,
        callback=callback,
        params=params,
        help=f"limit, exact and simulate side by side for {name}: {formula}.",
        short_help=f"{name[2].upper()}{name[3:]}: {formula}.",
    )


compare = click.Group(
    "compare",
    commands=[*map(_command, risks.PROBLEMS), *(ratios.command("compare", kind) for kind in ratios.KINDS)],
    help="The three fidelities side by side, and their difference in standard errors. exact and simulate see the same "
    "weights, so that the difference is taken draw by draw. Minutes to hours at d = 450; --samples and fewer "
    "--step-sizes shorten it.",
    short_help="The three side by side, difference in standard errors.",
)

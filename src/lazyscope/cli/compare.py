"""`lazyscope compare`: the three fidelities side by side, and whether they agree."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope.cli import output
from lazyscope.cli.verbs import OnDemand, commands
from lazyscope.errors import InvalidParameter, NoTheorem

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.cli.asking.declared import Question
    from lazyscope.cli.output import Wanted
    from lazyscope.problems import Problem
    from lazyscope.regimes import Regime

_WITHIN = 3.0  # standard errors
_COLUMNS = ("limit", "exact", "exact_stderr", "simulate", "simulate_stderr", "difference", "stderr", "finite_size", "z")


def _run(question: Question, options: dict[str, Any]) -> None:
    from lazyscope.cli.asking import declared

    wanted = output.Wanted.of(question.owner, options)
    words, _ = declared.words_of(question, options)
    makers = declared.regimes_of(question, words, options)
    problem = declared.problem_of(question.owner, question.kind, options)
    regimes = {word: maker() for word, maker in makers.items()}
    (_table if question.columns else _lines)(question, wanted, problem, regimes, options)


def _lines(question: Question, wanted: Wanted, problem: Problem, regimes: dict[str, Regime], options: Any) -> None:
    """Compare the limits of one regime with simulations, over all sizes."""
    from lazyscope.cli.asking import declared, effort
    from lazyscope.cli.terminal import progress_bar
    from lazyscope.evidence.registry import find
    from lazyscope.runs import pictures, side_by_side
    from lazyscope.runs.verbs import run_of

    if len(regimes) > 1:
        raise InvalidParameter.of(question.owner, "--regime", "name one regime", ",".join(regimes))
    ((word, regime),) = regimes.items()
    method = question.method_of(type(regime), options.get("method"))
    claim = find("simulate", problem, regime, method)
    sizes = declared.sizes_of(question, claim, problem, options)
    run, _ = run_of("simulate", problem, regime, sizes, method=method, seed=options["seed"], claim=claim)
    if wanted.plot is not None:
        pictures.check_axes({name: list(run.sizes[name]) for name in run.sizes if name not in ("samples", "d")})
    effort.of([(word, run)], options["draws"]).check(question.owner, "--samples, --draws or --width")
    with progress_bar():
        whole = side_by_side.compare(
            problem, regime, **sizes, method=method, draws=options["draws"], seed=options["seed"]
        )
    rests = json.loads(whole.attrs["claims"])[0]
    theorem = f"limit: {rests['limit']}; simulate: {rests['simulate']}"
    told = {"label": regime.label, "regime": str(regime), "fidelity": "compare", "theorem": theorem, "claim": "compare"}
    output.emit_points(wanted, whole.isel(regime=0, drop=True).assign_attrs(**told))


def _table(question: Question, wanted: Wanted, problem: Problem, regimes: dict[str, Regime], options: Any) -> None:
    """Compare the three fidelities of each regime."""
    import xarray as xr

    from lazyscope.cli.asking import declared, effort
    from lazyscope.cli.terminal import progress_bar
    from lazyscope.evidence.registry import find
    from lazyscope.runs import side_by_side
    from lazyscope.runs.verbs import run_of

    owner, runs, how = question.owner, [], {}
    widths = declared.axis(owner, question.kind, "width", options["width"], problem.d).whole  # type: ignore[attr-defined]
    for fidelity in ("exact", "simulate"):
        for word, regime in regimes.items():
            with suppress(NoTheorem):
                claim = find(fidelity, problem, regime)
                protocol = declared.protocol_of(owner, claim, problem, regime, options)
                given = {"width": widths} | ({"samples": options["samples"]} if fidelity == "simulate" else {})
                run, _ = run_of(fidelity, problem, regime, given, protocol=protocol, seed=options["seed"], claim=claim)
                runs.append((word, run))
                how[word] = protocol or (claim.protocol.paper(problem, regime) if claim.protocol else None)
    effort.of(runs, options["draws"]).check(owner, "--samples, --draws or --width")
    sizes = {name: options[name] for name in ("draws", "seed", "samples")}
    with progress_bar():
        columns = [
            side_by_side.compare(problem, regime, width=widths, protocol=how.get(word), **sizes)  # type: ignore[arg-type]
            for word, regime in regimes.items()
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


compare = OnDemand(
    "compare",
    commands("compare", "The fidelities side by side", _run),
    help="The three fidelities side by side, and their difference in standard errors. exact and simulate see the same "
    "weights, so that the difference is taken draw by draw. Minutes to hours at d = 450; --samples and fewer "
    "--step-sizes shorten it.",
    short_help="The three side by side, difference in standard errors.",
)

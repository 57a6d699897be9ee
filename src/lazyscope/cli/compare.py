"""`lazyscope compare`: the three fidelities side by side, and whether they agree."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope import files
from lazyscope.cli import output
from lazyscope.cli.asking import declared, effort, unused
from lazyscope.cli.asking.declared import Question
from lazyscope.cli.terminal import console, progress_bar, size, table, with_error
from lazyscope.cli.verbs import Problems, check_picture, runs_of
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.problems import Problem, SizedProblem
from lazyscope.runs import side_by_side

if TYPE_CHECKING:
    import xarray as xr

_FEWER = "--samples, --draws or --width"
_WITHIN = 3.0  # standard errors
_LITTLE, _SMALL = 0.25, 0.02  # of the exact risk, and of that of the best constant: a larger difference is no agreement
_COLUMNS = ("limit", "exact", "exact_stderr", "simulate", "simulate_stderr", "difference", "stderr", "finite_size", "z")


def _run(question: Question, options: dict[str, Any]) -> None:
    wanted = output.Wanted.of(question.owner, options)
    words, named = declared.words_of(question, options)
    makers = declared.regimes_of(question, words, options)
    problem = declared.problem_of(question.owner, question.kind, options)
    if question.columns and isinstance(problem, SizedProblem) and options.get("method") is None:
        _of_three(question, wanted, problem, makers if named else _in_two(problem, makers), options)
    else:
        _with_limits(question, wanted, problem, makers, options)


def _with_limits(question: Question, wanted: output.Wanted, problem: Problem, makers: Any, options: Any) -> None:
    """Compare the limits of one regime with simulations, over all sizes."""
    if len(makers) > 1:
        raise InvalidParameter.of(question.owner, "--regime", "name one regime", ",".join(makers))
    ((word, (run, scalar)),) = runs_of(question, problem, makers, True, options)[0].items()
    unused.check(question, [run])
    check_picture(question, wanted, [run], question.columns)
    effort.of([(word, run)], options["draws"]).check(question.owner, _FEWER)
    sizes: Any = {name: values[0] if name in scalar else list(values) for name, values in run.sizes.items()}
    how = {"method": run.method, "draws": options["draws"], "seed": options["seed"]}
    with progress_bar():
        whole = side_by_side.compare(problem, run.regime, **sizes, **how)
    rests = json.loads(whole.attrs["claims"])[0]
    told = {"label": run.regime.label, "regime": str(run.regime), "fidelity": "compare"}
    told |= {"theorem": f"limit: {rests['limit']}; simulate: {rests['simulate']}", "claim": "compare"}
    output.emit_points(wanted, whole.isel(regime=0, drop=True).assign_attrs(**told))


def _of_three(question: Question, wanted: output.Wanted, problem: SizedProblem, makers: Any, options: Any) -> None:
    """Compare the three fidelities of each regime."""
    import xarray as xr

    runs, columns = [], []
    for verb in ("exact", "simulate"):
        for word, maker in makers.items():
            with suppress(NoTheorem):
                asked, _ = runs_of(replace(question, verb=verb), problem, {word: maker}, True, options)
                runs.append((word, asked[word][0]))
    unused.check(question, [run for _, run in runs])
    effort.of(runs, options["draws"]).check(question.owner, _FEWER)
    protocols: Any = {
        word: run.protocol or (run.claim.protocol and run.claim.protocol.paper(problem, run.regime))
        for word, run in runs
    }
    sizes = {name: options[name] for name in ("draws", "seed", "samples")}
    sizes["width"] = declared.axis(question.owner, question.kind, "width", options["width"], problem.d).whole
    with progress_bar():
        for word, maker in makers.items():
            columns.append(side_by_side.compare(problem, maker(), protocol=protocols.get(word), **sizes))
    result = xr.concat(columns, dim="regime", combine_attrs="drop_conflicts")
    output.send(
        wanted,
        lambda path, command: _write(path, result, command, str(problem)),
        lambda command: _document(result, command, str(problem)),
        lambda: _show(result, str(problem)),
    )


def _in_two(problem: Problem, makers: Any) -> dict[str, Any]:
    """Return the regimes that two fidelities serve, where the user has named none; a note says which are left out."""
    kept: dict[str, Any] = {}
    for word, maker in makers.items():
        try:
            side_by_side.check_two(problem, maker())
            kept[word] = maker
        except NoTheorem as error:
            click.echo(" ".join(f"lazyscope: note: {word} is left out. {error}".split()), err=True)
    return kept or dict(makers)


def _rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """Return a row for each regime and width; None where there is no such number."""
    names = ("regime", "rho", "width", *_COLUMNS)
    rows = files.points(result[[*_COLUMNS]])
    return [{name: None if row[name] != row[name] else row[name] for name in names} for row in rows]


def _document(result: xr.Dataset, command: str, problem: str) -> dict[str, Any]:
    return {"problem": problem, "command": command, "attrs": result.attrs, "rows": _rows(result)}


def _write(path: Path, result: xr.Dataset, command: str, problem: str) -> None:
    with files.replacing(path) as part:
        if path.suffix.lower() == ".csv":
            rows = [{name: "" if value is None else value for name, value in row.items()} for row in _rows(result)]
            files.write_csv(part, rows, [command, problem])
        elif path.suffix.lower() == ".json":
            part.write_text(json.dumps(_document(result, command, problem), indent=1) + "\n", encoding="utf-8")
        else:
            result.assign_attrs(command=command).to_netcdf(part, engine="h5netcdf")


def _show(result: xr.Dataset, problem: str) -> None:
    """Print the table, with a section for each regime, and a line that says whether all agree."""
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
            far = (difference, f"{row['finite_size']:.4f}", "no test" if _covered(row) else f"{row['z']:.1f}")
        grid.add_row(row["regime"] if first else "", size(row["width"]), size(row["rho"]), *risk, *far)
    out = console()
    out.print(problem, soft_wrap=True)
    out.print(grid)
    out.print(
        "z: what |simulated − exact| has beyond the finite-size term, in standard errors (Student's: draws are few)."
    )
    out.print(_verdict(rows), soft_wrap=True)


def _covered(row: dict[str, Any]) -> bool:
    """Whether a difference is there beyond doubt, and covered by a finite-size term too large to test anything.

    >>> _covered({"exact": 0.02, "difference": 0.069, "stderr": 0.004, "finite_size": 0.09, "z": 0.0})
    True
    >>> _covered({"exact": 0.5, "difference": 0.006, "stderr": 0.001, "finite_size": 0.01, "z": 0.0})
    False
    """
    clear = abs(row["difference"]) > max(_WITHIN * row["stderr"], _LITTLE * row["exact"], _SMALL)
    return bool(clear and row["z"] <= _WITHIN)


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Count the rows that agree, and those whose difference proves nothing: short training may have made it."""
    compared = [row for row in rows if row["z"] is not None]
    if not compared:
        there = [name for name in ("limit", "exact", "simulate") if any(row[name] is not None for row in rows)]
        return f"Nothing to compare: exact and simulate are, and of the three there is {' and '.join(there)} alone."
    far_off = [row for row in compared if row["z"] > _WITHIN]
    covered = [row for row in compared if _covered(row)]
    said = f"{len(compared) - len(far_off) - len(covered)} of {len(compared)} agree within {_WITHIN:g} standard errors."
    if covered:
        said += (
            f" {len(covered)} differ by more than that, but by no more than finitely many samples may add: that is no "
            "test; pass more --samples."
        )
    return said


compare = Problems(
    "compare",
    "The fidelities side by side",
    _run,
    "The three fidelities side by side, and their difference in standard errors. exact and simulate see the same "
    "weights, so that the difference is taken draw by draw. Minutes to hours at d = 450; --samples and fewer "
    "--step-sizes shorten it.",
)

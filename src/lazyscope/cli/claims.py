"""`lazyscope claims`, `cite` and `errata`: what is implemented, on whose word, and where that word is misprinted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from lazyscope.cli.terminal import console, table
from lazyscope.errors import InvalidParameter
from lazyscope.evidence import registry
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.errata import ERRATA
from lazyscope.evidence.statement import Statement, statements

_KINDS = ["limit", "exact", "simulate", "report"]


@click.command()
@click.argument("key", required=False)
@click.option("--fidelity", type=click.Choice(_KINDS), help="Only results of this fidelity.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of the table.")
def claims(key: str | None, fidelity: str | None, as_json: bool) -> None:
    """Everything that is implemented, with its theorem and hypotheses; one in full with its KEY.

    A KEY is fidelity/problem/regime/title, or report/function/number for a statement that a function of its own
    measures, as --json prints it. Its beginning is enough; where several have it, they are listed.
    """
    chosen = [entry for entry in _everything() if fidelity in (None, _kind(entry))]
    if key is not None:
        chosen = _named("lazyscope claims", key, chosen)
    if as_json:
        click.echo(json.dumps([_record(entry) for entry in chosen]))
    elif key is not None and len(chosen) == 1:
        _show(chosen[0])
    else:
        _list(chosen)


@click.command()
@click.argument("keys", nargs=-1, required=True)
def cite(keys: tuple[str, ...]) -> None:
    """BibTeX of what results stand on, each entry once.

    KEYS are those of `lazyscope claims` or their beginnings, such as limit/QuadraticTarget, or of the bibliography,
    such as bai2020beyond.
    """
    chosen: dict[str, None] = {}
    for key in keys:
        if registry.has_entry(key):
            chosen[key] = None
        else:
            for entry in _named("lazyscope cite", key, _everything()):
                chosen |= dict.fromkeys(entry.citations)
    click.echo(registry.bibtex(chosen))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of the table.")
def errata(as_json: bool) -> None:
    """Where the papers are misprinted, and what lazyscope computes instead."""
    if as_json:
        click.echo(json.dumps([{"place": e.place, "printed": e.printed, "right": e.right} for e in ERRATA]))
        return
    grid = table("place", "printed", "right", left=3)
    for erratum in ERRATA:
        grid.add_row(erratum.place, erratum.printed, erratum.right)
    console().print(grid)


def _everything() -> list[Claim | Statement]:
    return [*registry.claims(), *statements()]


def _kind(entry: Claim | Statement) -> str:
    return entry.fidelity if isinstance(entry, Claim) else "report"


def _named(command: str, key: str, known: Sequence[Claim | Statement]) -> list[Claim | Statement]:
    """Return the entry with this key, or else all entries whose keys begin with it."""
    matches = [entry for entry in known if entry.key.lower().startswith(key.lower())]
    exactly = [entry for entry in matches if entry.key.lower() == key.lower()]
    if not key or not matches:
        advice = "`lazyscope claims` lists them."
        raise InvalidParameter.of(command, "KEY", "begin the key of a claim", f"{key!r}, which begins none", advice)
    return exactly or matches


def _record(entry: Claim | Statement) -> dict[str, Any]:
    if isinstance(entry, Statement):
        at = {"function": entry.function, "figure": entry.figure}
        about = {"title": entry.says, "theorem": entry.number, "citations": list(entry.citations)}
        return {"key": entry.key, "fidelity": "report", **at, **about}
    return {
        "key": entry.key,
        "fidelity": entry.fidelity,
        "problem": entry.problem.__name__,
        "regime": entry.regime.__name__,
        "title": entry.title,
        "theorem": entry.theorem,
        "citations": list(entry.citations),
        "assumptions": list(entry.assumptions),
        "arguments": list(entry.arguments),
        "erratum": entry.erratum,
        "rate": entry.rate,
    }


def _rate(claim: Claim) -> str:
    """Return the declared distance of a limit to `exact`; other results declare none."""
    if claim.fidelity != "limit":
        return ""
    return "identical" if claim.rate is None else f"d^−{claim.rate:g}"


def _list(chosen: Sequence[Claim | Statement]) -> None:
    out = console()
    computed = [entry for entry in chosen if isinstance(entry, Claim)]
    if computed:
        # three names share a column: with seven columns a terminal would show one word per line
        grid = table("fidelity\nproblem\nregime", "title\ntheorem", "assumptions", "rate", left=3)
        grid.show_lines = True
        for claim in computed:
            names = f"{claim.fidelity}\n{claim.problem.__name__}\n{claim.regime.__name__}"
            grid.add_row(names, f"{claim.title}\n{claim.theorem}", "\n".join(claim.assumptions), _rate(claim))
        out.print(grid)
    measured = [entry for entry in chosen if isinstance(entry, Statement)]
    if measured:
        grid = table("report", "theorem\nsource", "what it says", left=3)
        grid.show_lines = True
        for entry in measured:
            grid.add_row(entry.places.replace(", ", "\n"), f"{entry.number}\n{', '.join(entry.citations)}", entry.says)
        out.print(grid)
    if computed:
        out.print("rate: the declared distance of a limit to the exact value, up to a constant.", soft_wrap=True)
    out.print("lazyscope claims limit/QuadraticTarget/NeuralTangent shows one in full, with BibTeX.", soft_wrap=True)


def _show(entry: Claim | Statement) -> None:
    if isinstance(entry, Statement):
        lines = {"key": entry.key, "theorem": entry.number, "says": entry.says, "place": entry.places}
    else:
        lines = {
            "key": entry.key,
            "title": entry.title,
            "theorem": entry.theorem,
            "assumptions": ("\n" + " " * 13).join(entry.assumptions),
            "arguments": ", ".join(entry.arguments),
            "rate": _rate(entry),
            "erratum": entry.erratum,
        }
    for name, text in lines.items():
        if text:
            click.echo(f"{name:<13}{text}")
    click.echo("\n" + registry.bibtex(entry.citations))

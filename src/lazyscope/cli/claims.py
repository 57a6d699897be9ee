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
    chosen = [one for one in _everything() if fidelity in (None, _kind(one))]
    if key is not None:
        chosen = _named("lazyscope claims", key, chosen)
    if as_json:
        click.echo(json.dumps([_record(one) for one in chosen]))
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
            for one in _named("lazyscope cite", key, _everything()):
                chosen |= dict.fromkeys(one.citations)
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


def _kind(one: Claim | Statement) -> str:
    return one.fidelity if isinstance(one, Claim) else "report"


def _named(command: str, key: str, known: Sequence[Claim | Statement]) -> list[Claim | Statement]:
    """Return what has this key, or else all whose keys begin so."""
    matches = [one for one in known if one.key.lower().startswith(key.lower())]
    exactly = [one for one in matches if one.key.lower() == key.lower()]
    if not key or not matches:
        advice = "`lazyscope claims` lists them."
        raise InvalidParameter.of(command, "KEY", "begin the key of a claim", f"{key!r}, which begins none", advice)
    return exactly or matches


def _record(one: Claim | Statement) -> dict[str, Any]:
    if isinstance(one, Statement):
        at = {"function": one.function, "figure": one.figure}
        about = {"title": one.says, "theorem": one.number, "citations": list(one.citations)}
        return {"key": one.key, "fidelity": "report", **at, **about}
    return {
        "key": one.key,
        "fidelity": one.fidelity,
        "problem": one.problem.__name__,
        "regime": one.regime.__name__,
        "title": one.title,
        "theorem": one.theorem,
        "citations": list(one.citations),
        "assumptions": list(one.assumptions),
        "arguments": list(one.arguments),
        "erratum": one.erratum,
        "rate": one.rate,
    }


def _rate(claim: Claim) -> str:
    """The declared distance of a limit to `exact`; an exact result has none to declare."""
    if claim.fidelity != "limit":
        return ""
    return "identical" if claim.rate is None else f"d^−{claim.rate:g}"


def _list(chosen: Sequence[Claim | Statement]) -> None:
    out = console()
    computed = [one for one in chosen if isinstance(one, Claim)]
    if computed:
        # names stand above each other: seven columns would leave a terminal a word a line
        grid = table("fidelity\nproblem\nregime", "title\ntheorem", "assumptions", "rate", left=3)
        grid.show_lines = True
        for claim in computed:
            names = f"{claim.fidelity}\n{claim.problem.__name__}\n{claim.regime.__name__}"
            grid.add_row(names, f"{claim.title}\n{claim.theorem}", "\n".join(claim.assumptions), _rate(claim))
        out.print(grid)
    measured = [one for one in chosen if isinstance(one, Statement)]
    if measured:
        grid = table("report", "theorem\nsource", "what it says", left=3)
        grid.show_lines = True
        for one in measured:
            grid.add_row(one.places.replace(", ", "\n"), f"{one.number}\n{', '.join(one.citations)}", one.says)
        out.print(grid)
    if computed:
        out.print("rate: the declared distance of a limit to the exact value, up to a constant.", soft_wrap=True)
    out.print("lazyscope claims limit/QuadraticTarget/NeuralTangent shows one in full, with BibTeX.", soft_wrap=True)


def _show(one: Claim | Statement) -> None:
    if isinstance(one, Statement):
        lines = {"key": one.key, "theorem": one.number, "says": one.says, "place": one.places}
    else:
        lines = {
            "key": one.key,
            "title": one.title,
            "theorem": one.theorem,
            "assumptions": ("\n" + " " * 13).join(one.assumptions),
            "arguments": ", ".join(one.arguments),
            "rate": _rate(one),
            "erratum": one.erratum,
        }
    for name, text in lines.items():
        if text:
            click.echo(f"{name:<13}{text}")
    click.echo("\n" + registry.bibtex(one.citations))

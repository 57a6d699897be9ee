"""`lazyscope claims`: what is implemented, and on whose word."""

from __future__ import annotations

import json
from typing import Any

import click

from lazyscope.cli.terminal import console, table
from lazyscope.errors import InvalidParameter
from lazyscope.evidence import registry
from lazyscope.evidence.claim import Claim


@click.command()
@click.argument("key", required=False)
@click.option("--fidelity", type=click.Choice(["limit", "exact", "simulate"]), help="Only results of this fidelity.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of the table.")
def claims(key: str | None, fidelity: str | None, as_json: bool) -> None:
    """Everything that is implemented, with its theorem and hypotheses; one in full with its KEY.

    A KEY is fidelity/problem/regime/title, as --json prints it; its beginning is enough where only one has it.
    """
    chosen = [claim for claim in registry.claims() if fidelity in (None, claim.fidelity)]
    if key is not None:
        chosen = [_named(key, chosen)]
    if as_json:
        click.echo(json.dumps([_record(claim) for claim in chosen]))
    elif key is not None:
        _show(chosen[0])
    else:
        _list(chosen)


def _named(key: str, known: list[Claim]) -> Claim:
    matches = [claim for claim in known if claim.key.lower().startswith(key.lower())]
    exactly = [claim for claim in matches if claim.key.lower() == key.lower()]
    if len(exactly or matches) == 1:
        return (exactly or matches)[0]
    got = f"{key!r}, which {'begins ' + ', '.join(claim.key for claim in matches) if matches else 'begins none'}"
    advice = "`lazyscope claims` lists them."
    raise InvalidParameter.of("lazyscope claims", "KEY", "begin the key of one claim", got, advice)


def _record(claim: Claim) -> dict[str, Any]:
    return {
        "key": claim.key,
        "fidelity": claim.fidelity,
        "problem": claim.problem.__name__,
        "regime": claim.regime.__name__,
        "title": claim.title,
        "theorem": claim.theorem,
        "citations": list(claim.citations),
        "assumptions": list(claim.assumptions),
        "arguments": list(claim.arguments),
        "erratum": claim.erratum,
        "rate": claim.rate,
    }


def _rate(claim: Claim) -> str:
    """The declared distance of a limit to `exact`; an exact result has none to declare."""
    if claim.fidelity != "limit":
        return ""
    return "identical" if claim.rate is None else f"d^−{claim.rate:g}"


def _list(chosen: list[Claim]) -> None:
    # names stand above each other: seven columns would leave a terminal a word a line
    grid = table("fidelity\nproblem\nregime", "title\ntheorem", "assumptions", "rate", left=3)
    grid.show_lines = True
    for claim in chosen:
        names = f"{claim.fidelity}\n{claim.problem.__name__}\n{claim.regime.__name__}"
        grid.add_row(names, f"{claim.title}\n{claim.theorem}", "\n".join(claim.assumptions), _rate(claim))
    out = console()
    out.print(grid)
    out.print("rate: the declared distance of a limit to the exact value, up to a constant.", soft_wrap=True)
    out.print("lazyscope claims limit/QuadraticTarget/NeuralTangent shows one in full, with BibTeX.", soft_wrap=True)


def _show(claim: Claim) -> None:
    lines = {
        "key": claim.key,
        "title": claim.title,
        "theorem": claim.theorem,
        "assumptions": ("\n" + " " * 13).join(claim.assumptions),
        "arguments": ", ".join(claim.arguments),
        "rate": _rate(claim),
        "erratum": claim.erratum,
    }
    for name, text in lines.items():
        if text:
            click.echo(f"{name:<13}{text}")
    click.echo("\n" + registry.bibtex(claim.citations))

"""Pages and tables that are written from the registries: activations, claims, the gallery of experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lazyscope
from lazyscope.evidence.results import best_of_draws


def escaped(text: str) -> str:
    r"""Return text that MyST shows as it is, inside a table too.

    >>> print(escaped("x | y, λ_k"))
    x \| y, λ\_k
    """
    for character in "\\|*_<$`[":
        text = text.replace(character, "\\" + character)
    return text


def activations() -> Iterator[str]:
    """Write one row for each named activation, with the constants that the theorems use.

    >>> [row for row in activations() if row.startswith("| `relu` ")]
    ['| `relu` | max(u, 0) | 0.500000 | 0.301405 | 0.398942 | yes |']
    """
    yield "| name | σ(u) | b₁ | b⋆ | λ₂ | σ′ is a function |"
    yield "|---|---|---:|---:|---:|---|"
    for name in lazyscope.activation_names():
        sigma = lazyscope.Activation(name)
        numbers = [0.0 if abs(x) < 1e-12 else x for x in (sigma.b1, sigma.b_star, sigma.lambda_k(2))]
        columns = " | ".join(f"{x:.6f}" if x else "0" for x in numbers)
        yield f"| `{name}` | {escaped(sigma.formula)} | {columns} | {'yes' if sigma.has_derivative else 'no'} |"


# -- claims: a table, and a page for each problem --------------------------------------------------------------


def problems() -> list[type]:
    """Return the problems that have claims, in the order of the registry.

    >>> problems()[0].__name__
    'QuadraticTarget'
    """
    return list(dict.fromkeys(claim.problem for claim in lazyscope.claims()))


def statement_table() -> Iterator[str]:
    """Write one row for each statement that a function or a figure measures."""
    yield "| report | statement | what it says | source |"
    yield "|---|---|---|---|"
    for one in lazyscope.statements():
        source = f"{{cite:p}}`{','.join(one.citations)}`"
        yield f"| {escaped(one.places)} | {escaped(one.number)} | {escaped(one.says)} | {source} |"


def claim_table(problem: type) -> Iterator[str]:
    """Write one row for each claim on a problem, which points at its section."""
    yield "| verb | regime | what | source |"
    yield "|---|---|---|---|"
    for claim in lazyscope.claims():
        if claim.problem is problem:
            link = f"[{escaped(claim.title)}](#{anchor(claim)})"
            yield f"| {claim.fidelity} | {claim.regime.__name__} | {link} | {escaped(claim.theorem)} |"


def claim_index() -> Iterator[str]:
    """Write how many claims each problem has, with the regimes that they serve."""
    yield "| problem | claims | regimes |"
    yield "|---|---:|---|"
    for problem in problems():
        own = [claim for claim in lazyscope.claims() if claim.problem is problem]
        regimes = ", ".join(dict.fromkeys(claim.regime.__name__ for claim in own))
        yield f"| {{doc}}`{problem.__name__} <claims/{problem.__name__.lower()}>` | {len(own)} | {regimes} |"


def claim_page(problem: type) -> Iterator[str]:
    r"""Write the page of a problem: its table, then a section for each claim.

    >>> text = "\n".join(line for problem in problems() for line in claim_page(problem))
    >>> all(claim.key in text for claim in lazyscope.claims())
    True
    """
    yield from ("---", "orphan: true", "---", "", f"# Claims: {problem.__name__}", "")
    yield from ("All claims: {doc}`/claims`.", "")
    yield from claim_table(problem)
    for claim in lazyscope.claims():
        if claim.problem is problem:
            yield from _section(claim)


def _section(claim: Any) -> Iterator[str]:
    yield from ("", f"({anchor(claim)})=", f"## {claim.fidelity}: {claim.title}", "")
    yield f"`{claim.key}`"
    yield from ("", f"Source: {escaped(claim.theorem)} {{cite:p}}`{','.join(claim.citations)}`.", "")
    yield from (f"- {escaped(assumption)}" for assumption in claim.assumptions)
    yield ""
    if claim.fidelity == "limit":
        yield (
            f"Declared rate: the distance to `exact` falls like $d^{{-{claim.rate:g}}}$."
            if claim.rate is not None
            else "Declared rate: none; where `exact` covers the pair, the two are equal."
        )
    if claim.reduce is best_of_draws:
        yield "Draws are restarts of a minimisation; the best one is the risk."
    if claim.erratum:
        yield from ("", f"Erratum: {escaped(claim.erratum)}")


def anchor(claim: Any) -> str:
    """Return the name by which a table points at a claim's section."""
    return "claim-" + claim.key.lower().replace("/", "-")


# -- the gallery -----------------------------------------------------------------------------------------------


def pages_with(docs: Path, picture: str) -> list[str]:
    """Return the names of the pages that show a picture."""
    shows = re.compile(rf"\]\((?:\.\./)?images/{re.escape(picture)}\)")
    return [page.stem for page in sorted(docs.glob("*.md")) if shows.search(page.read_text(encoding="utf-8"))]


def gallery(docs: Path) -> Iterator[str]:
    """Write a card for each experiment of the registry: thumbnail, sentence, command, and the page that explains it."""
    from lazyscope import experiments

    yield from ("::::::{container} gallery",)
    for name, experiment in experiments.load_all().items():
        picture = f"{name}.png"
        pages = pages_with(docs, picture)
        yield from ("", ":::::{container} card", "")
        if (docs / "images" / picture).exists():
            yield from (f"```{{image}} /generated/thumbnails/{picture}", f":alt: {experiment.title}", "```", "")
        cost = experiment.presets["quick"].cost if "quick" in experiment.presets else ""
        yield from (escaped(experiment.title) + ".", "")
        where = f" {{doc}}`More </{pages[0]}>`" if pages else ""
        yield from ("```console", f"$ lazyscope figure {name}", "```", "", f"{escaped(cost)}.{where}", "", ":::::")
    yield from ("", "::::::")


def write_thumbnails(docs: Path, folder: Path, width: int = 480) -> None:
    """Write a small copy of the picture of every experiment that has one, unless it is there and newer."""
    from PIL import Image

    from lazyscope import experiments

    folder.mkdir(parents=True, exist_ok=True)
    for name in experiments.load_all():
        whole, small = docs / "images" / f"{name}.png", folder / f"{name}.png"
        if whole.exists() and not (small.exists() and small.stat().st_mtime >= whole.stat().st_mtime):
            with Image.open(whole) as picture:
                picture.thumbnail((width, width))
                picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(small, optimize=True)

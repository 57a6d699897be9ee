"""Sphinx configuration, and the two tables that are written from the code at every build.

Nothing here is imported at the top that the docs extra brings: the test suite collects this file too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lazyscope
from lazyscope.evidence.results import best_of_draws

HERE = Path(__file__).parent

project = "lazyscope"
author = "The lazyscope maintainers"
copyright = author
release = version = lazyscope.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.bibtex"]
exclude_patterns = ["_build", "generated"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
bibtex_bibfiles = ["../src/lazyscope/evidence/references.bib"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
html_theme = "furo"
html_title = f"lazyscope {release}"
html_static_path = ["_static"]
html_css_files = ["lazyscope.css"]
html_copy_source = False
html_math_renderer = "mathml"


# -- formulas as MathML: no script, no network ---------------------------------------------------------------


def _mathml(self: Any, node: Any) -> None:
    """Write a math node as MathML; a formula that docutils cannot read is a warning, an error under -W."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import MathError, tex2mathml
    from sphinx.util import logging

    block = isinstance(node, nodes.math_block)
    try:
        formula = tex2mathml(node.astext(), as_block=block)
        # Bars and angles keep the size of the line: a power on the right one must not stretch it alone.
        self.body.append(re.sub(r"<mo[^>]*>([‖⟨⟩|])</mo>", r'<mo stretchy="false">\1</mo>', formula))
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


# -- docstrings are prose with formulas, in which | and * mean what they show --------------------------------


def _without_last_blank_line(app: Any, name: str, source: list[str]) -> None:
    """Drop the blank line that ends an example for doctest, and that a reader need not see."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


_PROPERTIES: dict[str, list[str]] = {}


def _restore_property(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo napoleon's reading of "formula: meaning" as a type."""
    if what == "property":
        lines[:] = _PROPERTIES[name]


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what is no markup."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")) and "`" not in line:
            lines[number] = line.replace("|", r"\|").replace("*", r"\*")
    _PROPERTIES[name] = list(lines)


# -- pages written from the code -----------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Return text that MyST shows as it is, inside a table too.

    >>> print(escaped("x | y, λ_k"))
    x \\| y, λ\\_k
    """
    for character in "\\|*_<$`[":
        text = text.replace(character, "\\" + character)
    return text


def activation_table() -> Iterator[str]:
    """Write one row for each named activation, with the constants that the theorems use.

    >>> [row for row in activation_table() if row.startswith("| `relu` ")]
    ['| `relu` | max(u, 0) | 0.500000 | 0.301405 | 0.398942 | yes |']
    """
    yield "| name | σ(u) | b₁ | b⋆ | λ₂ | σ′ is a function |"
    yield "|---|---|---:|---:|---:|---|"
    for name in lazyscope.activation_names():
        sigma = lazyscope.Activation(name)
        numbers = [0.0 if abs(x) < 1e-12 else x for x in (sigma.b1, sigma.b_star, sigma.lambda_k(2))]
        columns = " | ".join(f"{x:.6f}" if x else "0" for x in numbers)
        yield f"| `{name}` | {escaped(sigma.formula)} | {columns} | {'yes' if sigma.has_derivative else 'no'} |"


def claim_pages() -> Iterator[str]:
    """Write a table of every registered claim, then a section each.

    >>> text = "\\n".join(claim_pages())
    >>> all(claim.key in text for claim in lazyscope.claims())
    True
    """
    yield "| report | statement | what it says | source |"
    yield "|---|---|---|---|"
    for one in lazyscope.statements():
        source = f"{{cite:p}}`{','.join(one.citations)}`"
        yield f"| {escaped(one.places)} | {escaped(one.number)} | {escaped(one.says)} | {source} |"
    yield ""
    yield "| verb | problem | regime | what | source |"
    yield "|---|---|---|---|---|"
    for claim in lazyscope.claims():
        link = f"[{escaped(claim.title)}](#{anchor(claim)})"
        names = f"{claim.fidelity} | {claim.problem.__name__} | {claim.regime.__name__}"
        yield f"| {names} | {link} | {escaped(claim.theorem)} |"
    for claim in lazyscope.claims():
        yield from ("", f"({anchor(claim)})=", f"## {claim.fidelity}: {claim.problem.__name__}, {claim.title}", "")
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


def anchor(claim: lazyscope.evidence.registry.Claim) -> str:
    """Return the name by which the table points at a claim's section."""
    return "claim-" + claim.key.lower().replace("/", "-")


def write_pages(app: Any) -> None:
    """Write docs/generated/, leaving a file alone whose text has not changed."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for name, lines in (("activations.md", activation_table()), ("claims.md", claim_pages())):
        text = "\n".join(lines) + "\n"
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the two writers and the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _restore_property, priority=600)  # and after it
    app.connect("source-read", _without_last_blank_line)
    return {"parallel_read_safe": True}

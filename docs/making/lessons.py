"""Lessons are Markdown with code cells, executed when the pages are built; here they become notebooks as well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"^:[a-z-]+:.*\n", re.MULTILINE)


def cells(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield ("markdown" or "code", source), in order.

    >>> list(cells("---\nkernelspec: x\n---\n# One\n\n```{code-cell} python\n1 + 1\n```\nTwo"))
    [('markdown', '# One'), ('code', '1 + 1'), ('markdown', 'Two')]
    """
    text = re.sub(r"\A---\n.*?^---\n", "", text, flags=re.MULTILINE | re.DOTALL)
    place = 0
    for cell in _CELL.finditer(text):
        if between := text[place : cell.start()].strip():
            yield "markdown", between
        yield "code", _OPTION.sub("", cell[1]).strip()
        place = cell.end()
    if rest := text[place:].strip():
        yield "markdown", rest


def code(page: Path) -> str:
    """Return the code of a lesson as one script."""
    return "\n\n".join(source for kind, source in cells(page.read_text(encoding="utf-8")) if kind == "code")


def notebook(text: str) -> dict[str, Any]:
    """Return a lesson as a notebook of Jupyter; what only a web page can show is left out."""
    whole = []
    for number, (kind, source) in enumerate(cells(text)):
        source = _plain(source) if kind == "markdown" else source
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
        whole.append(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": whole, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _plain(source: str) -> str:
    """Return Markdown without the roles and directives of MyST.

    >>> _plain("See {doc}`the limits </quadratic>` and {cite:t}`mei2019`.")
    'See the limits and mei2019.'
    """
    source = re.sub(r"^(`{3,}|:{3,})\{[^}]*\}.*?^\1$\n?", "", source, flags=re.MULTILINE | re.DOTALL)
    source = re.sub(r"\{[a-z:-]+\}`([^`<]+?) ?<[^`]*>`", r"\1", source)
    return re.sub(r"\{[a-z:-]+\}`([^`]+)`", r"\1", source)


def write_notebooks(lessons: Path, folder: Path) -> None:
    """Write the notebook of every lesson."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(lessons.glob("*.md")):
        made = notebook(page.read_text(encoding="utf-8"))
        path = folder / f"{page.stem}.ipynb"
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

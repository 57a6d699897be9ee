"""Everything that is written before a build, each file only where its text has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from making import architecture, formulas, inventories, lessons, tables

HERE = Path(__file__).parent.parent
VIEWS = ("quadratic", "descent")
"""Views of the explorer that lessons show."""


def write(app: Any) -> None:
    """Write docs/generated/ and the pages of the claims."""
    made = HERE / "generated"
    for name, text in parts():
        _keep(HERE / name, text)
    tables.write_thumbnails(HERE, made / "thumbnails")
    formulas.write_font(made / "static" / "fonts")
    inventories.write(made / "inventories")
    lessons.write_notebooks(HERE / "lessons", made / "notebooks")
    write_explorers(made / "extra" / "explorer")


def parts() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every part that is written from the code."""
    yield "generated/activations.md", _joined(tables.activations())
    yield "generated/statements.md", _joined(tables.statement_table())
    yield "generated/claims.md", _joined(tables.claim_index())
    yield "generated/gallery.md", _joined(tables.gallery(HERE))
    for problem in tables.problems():
        yield f"claims/{problem.__name__.lower()}.md", _joined(tables.claim_page(problem))
    yield (
        "generated/architecture.svg",
        architecture.drawing(HERE.parent / "pyproject.toml", HERE.parent / "src" / "lazyscope"),
    )


def write_explorers(folder: Path) -> None:
    """Write one-file exports of the explorer, unless they are newer than its code."""
    import lazyscope.explorer
    from lazyscope.explorer.export import write as export
    from lazyscope.explorer.views import VIEWS as KNOWN

    code = Path(lazyscope.explorer.__file__).parent
    newest = max(path.stat().st_mtime for path in code.rglob("*") if path.suffix in (".py", ".js", ".css", ".html"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in VIEWS:
        path = folder / f"{name}.html"
        if not path.exists() or path.stat().st_mtime < newest:
            export(path, [KNOWN[name]])


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")

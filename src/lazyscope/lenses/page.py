"""One HTML file that holds everything: words, tables and pictures, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #222; max-width: 46rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
p.verdict { font-size: 1.2rem; border-left: .3rem solid #D55E00; padding: .4rem 0 .4rem 1rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums }
table { display: block; overflow-x: auto }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left; white-space: normal }
table.words th:first-child { min-width: 11rem }
thead th { border-bottom: 1px solid #999; font-weight: 600 } p.small, li, footer { color: #555; font-size: .92rem }
figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
"""
_SHORT = 8  # characters: a step of training, the number of a layer


def heading(text: str, below: str = "") -> str:
    """Return the title, with a line below it."""
    return f"<h1>{escape(text)}</h1>" + (f"<p class='small'>{escape(below)}</p>" if below else "")


def section(title: str, *parts: str) -> str:
    """Return a section of parts that are HTML already.

    >>> section("A & B", paragraph("1 < 2"))
    '<h2>A &amp; B</h2><p>1 &lt; 2</p>'
    """
    return f"<h2>{escape(title)}</h2>{''.join(parts)}"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph, of a kind that has a style of its own."""
    return f"<p{f' class={kind!r}' if kind else ''}>{escape(text)}</p>"


def items(lines: Iterable[str]) -> str:
    """Return a list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a first column of words has room for them, one of numbers takes no more than it needs.

    >>> table(["step", "loss"], [["10", "0.4"]])[:7], table(["regime", "N = 9"], [["RF, random features", "0.4"]])[:21]
    ('<table>', "<table class='words'>")
    """
    rows = list(rows)
    kind = " class='words'" if any(len(row[0]) > _SHORT for row in rows) else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def figure(svg: str, caption: str) -> str:
    """Return a picture with its caption; the picture is an <svg> element."""
    said = escape(caption)
    return f"<figure role='img' aria-label='{escape(caption, quote=True)}'>{svg}<p class='small'>{said}</p></figure>"


def page(title: str, parts: Iterable[str], footer: str) -> str:
    """Return the whole document."""
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}<footer><p>{escape(footer)}</p></footer></body></html>\n"
    )


def write(path: str | Path, content: Callable[[], str]) -> Path:
    """Write a report, all of it or nothing; a name that could not be written is refused before it is made."""
    from lazyscope.files import check_output, replacing

    file = Path(path)
    check_output(file, (".html",), "lens", "report")
    with replacing(file) as part:
        part.write_text(content(), encoding="utf-8")
    return file

"""Check a built site offline: every link leads somewhere, no page asks another host, the first page is light.

python docs/making/links.py docs/_build
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BUDGET = 300_000
"""Bytes of the first page with its styles, scripts and fonts, without pictures."""
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_PICTURES = (".png", ".svg", ".ico")


class Page(HTMLParser):
    """The targets of a page (`ids`), where it links to (`links`), and what it loads by itself (`loads`)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, links to or loads."""
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in _LOADED and _LOADED[tag] in given and given.get("rel") not in ("index", "search", "next", "prev"):
            self.loads.append(given[_LOADED[tag]])


def check(site: Path) -> list[str]:
    """Return what is wrong, a line each; nothing, if all is well."""
    site = site.resolve()
    exported = site / "explorer"
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if exported not in path.parents}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    wrong.append(f"{name}: loads {link} from another host")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                wrong.append(f"{name}: {link} has no such place")
    weight = weighed(site / "index.html")
    if weight > BUDGET:
        wrong.append(f"index.html: {weight:,} bytes without pictures, more than {BUDGET:,}")
    return wrong


def weighed(path: Path) -> int:
    """Return the bytes that a page needs before pictures: itself, its styles and scripts."""
    loads = {urlsplit(link).path for link in Page(path).loads}
    files = [(path.parent / unquote(link)).resolve() for link in loads if not link.endswith(_PICTURES)]
    return path.stat().st_size + sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    built = Path(sys.argv[1])
    found = check(built)
    print("\n".join(found) or f"no link is broken; the first page has {weighed(built / 'index.html'):,} bytes")
    sys.exit(bool(found))

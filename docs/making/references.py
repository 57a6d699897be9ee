"""Code in text that is the name of something documented becomes a link to it."""

from __future__ import annotations

import re
from typing import Any

import lazyscope.estimators
from making.inventories import LIBRARIES

_OTHERS = {name: name for library in LIBRARIES.values() for name, _, _ in library.entries()}
_OTHERS |= {name.rpartition(".")[2]: name for name, kind, _ in LIBRARIES["sklearn"].entries() if kind == "class"}


def target(text: str) -> str | None:
    """Return the full name of what a piece of code names; None where it is no name, or also a word of its own.

    >>> target("ls.limit"), target("RandomFeatures"), target("xarray.Dataset"), target("RidgeCV")
    ('lazyscope.limit', 'lazyscope.RandomFeatures', 'xarray.Dataset', 'sklearn.linear_model.RidgeCV')
    >>> target("limit"), target("ls.limit(problem, regime)"), target("risk")
    (None, None, None)
    """
    if text in _OTHERS:
        return _OTHERS[text]
    match = re.fullmatch(r"(?:ls|lazyscope)\.(\w+)|([A-Z]\w*[a-z]\w*)", text)
    name = match and (match[1] or match[2])
    owner = "lazyscope.estimators" if name in lazyscope.estimators.__all__ else "lazyscope"
    return f"{owner}.{name}" if name in (*lazyscope.estimators.__all__, *lazyscope.__all__) else None


def link(app: Any, doctree: Any) -> None:
    """Link the first mention of each name on a page."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    seen = set()
    for code in list(doctree.findall(nodes.literal)):
        name = target(code.astext())
        inside = (nodes.reference, nodes.title, nodes.literal_block, pending_xref)
        if name is None or name in seen or any(isinstance(node, inside) for node in _around(code)):
            continue
        seen.add(name)
        where = {"refdoc": app.env.docname, "refdomain": "py", "reftype": "obj", "reftarget": name}
        code.replace_self(pending_xref("", code.deepcopy(), refexplicit=False, refwarn=False, **where))


def _around(node: Any) -> Any:
    while node.parent is not None:
        node = node.parent
        yield node

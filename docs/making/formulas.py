"""Formulas as MathML, which needs no script, in a font that comes with the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FONT = "STIXTwoMath.woff2"


def mathml(self: Any, node: Any) -> None:
    """Write a math node as MathML; a formula that docutils cannot read is a warning, an error under -W."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import MathError, tex2mathml
    from sphinx.util import logging

    block = isinstance(node, nodes.math_block)
    try:
        # docutils knows no \\dots
        text = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", node.astext())
        self.body.append(plain(tex2mathml(text, as_block=block)))
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def plain(formula: str) -> str:
    r"""Return MathML with bars and angles that keep the size of the line: a power on one must not stretch it alone.

    Those whose size is given, as by \Bigl, keep it.

    >>> plain('<mo>‖</mo><mi>x</mi><mo minsize="2em">⟩</mo>')
    '<mo stretchy="false">‖</mo><mi>x</mi><mo minsize="2em">⟩</mo>'
    """
    return re.sub(r"<mo(?![^>]*minsize)[^>]*>([‖⟨⟩|])</mo>", r'<mo stretchy="false">\1</mo>', formula)


def write_font(folder: Path) -> None:
    """Write the letters and signs of STIX Two Math that formulas use, as the package ziamath ships them.

    Without Chinese, Braille and the like a tenth of the file is left; the table of mathematical sizes stays whole.
    """
    path = folder / FONT
    if path.exists():
        return
    from importlib.util import find_spec

    from fontTools import subset

    package = find_spec("ziamath")
    if package is None or package.origin is None:
        raise RuntimeError("The formulas need the font of the package ziamath: pip install ziamath")
    options = subset.Options(flavor="woff2", layout_features=["*"])
    font = subset.load_font(str(Path(package.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"), options)
    wanted = subset.Subsetter(options)
    wanted.populate(unicodes=[*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2300), *LETTERS])
    wanted.subset(font)
    folder.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(path), options)


LETTERS = (
    *range(0x1D434, 0x1D504),  # italic, bold italic, script
    *range(0x1D538, 0x1D56C),  # double-struck
    *range(0x1D6A4, 0x1D6DC),  # Greek, italic
    0x27E8, 0x27E9, 0x2A7D, 0x2A7E, 0x25A1,
)  # fmt: skip
"""Mathematical letters that a formula may ask for."""

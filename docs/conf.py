"""Sphinx configuration. What pages know from the code is written before each build by `making/`.

Nothing is imported at the top that the group docs brings: the test suite collects this file too.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import lazyscope

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from making import docstrings, formulas, inventories, pages, references, signatures  # noqa: E402

project = "lazyscope"
author = "The lazyscope maintainers"
copyright = author
release = version = lazyscope.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "generated", "jupyter_execute", "making"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
bibtex_bibfiles = ["../src/lazyscope/evidence/references.bib"]
intersphinx_mapping = inventories.mapping(Path("generated/inventories"))
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = signatures.ALIASES
python_display_short_literal_types = True
python_maximum_signature_line_length = 150  # beyond it, a parameter on each line
autodoc_member_order = "bysource"
add_module_names = False
default_role = "py:obj"  # names in docstrings: a link where they are documented, code elsewhere
napoleon_custom_sections = [("Attributes", "params_style")]  # what a fit leaves behind: a list, no headings
napoleon_use_rtype = False  # the signature tells it
napoleon_use_param = False  # "psi1, psi2" are described together, as they are written
nb_execution_mode = "cache"  # a lesson is executed again when its code has changed
nb_execution_cache_path = str(HERE / "_build" / ".executed")
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_merge_streams = True
html_theme = "furo"
html_title = f"lazyscope {release}"
html_static_path = ["_static", "generated/static"]
html_extra_path = ["generated/extra"]
html_css_files = ["lazyscope.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _without_last_blank_line(app: Any, name: str, source: list[str]) -> None:
    """Drop the blank line that ends an example for doctest, and that a reader need not see."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def _break_keys_at_slashes(app: Any, doctree: Any, name: str) -> None:
    """Let a key such as limit/GaussianMixture/Trained, in the cell of a table, end a line after a slash."""
    from docutils import nodes

    for table in doctree.findall(nodes.table):
        for key in list(table.findall(nodes.literal)):
            first, *rest = key.astext().split("/")
            if " " not in key.astext() and len(rest) > 1:
                key.clear()
                key += nodes.Text(first)
                for part in rest:
                    key += [nodes.Text("/"), nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]


def setup(app: Any) -> dict[str, bool]:
    """Register what writes pages, and the renderer of formulas."""
    for folder in ("static/fonts", "extra"):  # Sphinx looks for them before anything is written
        (HERE / "generated" / folder).mkdir(parents=True, exist_ok=True)
    app.add_html_math_renderer("mathml", (formulas.mathml, None), (formulas.mathml, None))
    app.connect("config-inited", lambda app, config: pages.write(app))
    app.connect("autodoc-process-docstring", docstrings.before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", docstrings.after_napoleon, priority=600)
    app.connect("autodoc-process-signature", signatures.short)
    app.connect("doctree-read", references.link)
    app.connect("source-read", _without_last_blank_line)
    app.connect("doctree-resolved", _break_keys_at_slashes)
    return {"parallel_read_safe": True}

"""Every constant of the flow solver stands in the table of docs/flow-algorithm.md, with its value, and is used."""

from pathlib import Path

import pytest

from lazyscope.limits.flow import constants

ROOT = Path(__file__).parents[3]
NAMES = [name for name in vars(constants) if name.isupper()]


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_is_explained_and_used(name):
    page = (ROOT / "docs" / "flow-algorithm.md").read_text(encoding="utf-8")
    assert f"| `{name}` = {getattr(constants, name)} |" in page
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src/lazyscope/limits/flow").glob("*.py")]
    assert any(f"constants.{name}" in source for source in sources)

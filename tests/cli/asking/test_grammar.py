"""The grammar of grids: numbers, inf and ranges, and refusals that show an example."""

import numpy as np
import pytest

from lazyscope.cli.asking import grammar
from lazyscope.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", [0.5]),
        ("inf", [np.inf]),
        ("1,2, 3", [1, 2, 3]),
        ("0:1:3", [0, 0.5, 1]),
        ("3:1:3", [3, 2, 1]),
        ("0.1:10:7log", np.geomspace(0.1, 10, 7).tolist()),
        ("0.1:10:200log,inf", [*np.geomspace(0.1, 10, 200).tolist(), np.inf]),
    ],
)
def test_grammar(text, values):
    grid = grammar.parse(text, "lazyscope limit", "--rho")
    assert grid.values == values
    assert grid.geometric == ("log" in text)


@pytest.mark.parametrize(
    "text",
    ["", ",", "1,", "a", "1:2", "1:2:", "1:2:3:4", "1:2:1", "1:2:2.5", "1:2:-3", "1:2:3lin", "1:2:log", "1:inf:3",
     "0:1:5log", "-1:1:5log", "nan", "1:2:1000000000", "1;2"],
)  # fmt: skip
def test_malformed_grids_are_refused_with_an_example(text):
    with pytest.raises(InvalidParameter, match=r"An example: 0\.1:10:200log,inf\."):
        grammar.parse(text, "lazyscope limit", "--rho")


def test_only_ranges_of_widths_are_rounded():
    grid = grammar.parse("1:3:9,4.5,7,7", "lazyscope exact", "--width")
    assert grid.whole == [1, 2, 3, 4.5, 7, 7]

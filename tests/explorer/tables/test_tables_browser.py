"""A file in a real browser: chosen or dropped, it is drawn; what is refused is said, and nobody else is asked."""

import csv
import io
import pickle

import numpy as np
import pytest

from ..page import Page  # noqa: TID252 (tests are no package that could be named)
from .test_tables import house


@pytest.fixture(scope="module")
def only(browser, server):
    page = Page(browser, server[1], accept_downloads=True)
    page.open("#data")
    yield page
    page.check()
    page.context.close()


@pytest.fixture
def page(only):
    only.tab.select_option("#c-data", "diabetes")
    only.drawn()
    return only


def choose(page, name, content):
    page.tab.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": content})


def throw(page, name, inside):
    """Drop a file anywhere in the page."""
    page.tab.evaluate(
        f"""() => {{ const data = new DataTransfer(); data.items.add(new File([{inside}], '{name}'));
                    window.dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, cancelable: true }})); }}"""
    )


def shown(page):
    return page.tab.eval_on_selector("#c-data", "select => select.selectedOptions[0].textContent")


def test_a_file_that_is_chosen_is_drawn_and_its_link_opens_where_it_is(page, browser, server):
    tab = page.tab
    choose(page, "house.csv", house())
    page.until(lambda: shown(page) == "house.csv")
    page.drawn()
    options = tab.eval_on_selector_all("#c-target option", "all => all.map(one => one.textContent)")
    assert options == ["rooms", "age", "price", "town", "remark"]
    assert tab.input_value("#c-target") == "town"
    tab.select_option("#c-target", "price")
    page.drawn()
    page.until(lambda: "target=price" in page.query())
    page.until(lambda: "'house.csv'" in tab.text_content("#python"))
    assert set(page.traces()) == {"against n", "beyond the rows", "against N", "your n", "your N", "rows at hand"}
    bands = tab.evaluate("document.getElementById('chart').data.filter(t => t.fill === 'toself').length")
    assert bands == 3
    dashes = tab.evaluate("document.getElementById('chart').data.map(t => [t.name, t.line?.dash])")
    assert ["beyond the rows", "dash"] in dashes and ["against n", "solid"] in dashes
    assert "of the best constant's error" in tab.inner_text("#reading")
    tab.click("#link")
    other = Page(browser, server[1])
    other.tab.goto(tab.url)
    other.drawn()
    other.until(lambda: shown(other) == "house.csv")
    assert other.tab.input_value("#c-target") == "price"
    assert other.rows() == page.rows()
    other.context.close()
    other.check()


def test_bands_move_with_their_lines_before_plotly_learns_of_it(page):
    fills = "[...document.querySelectorAll('#chart path.js-fill')].map(path => path.getAttribute('d'))"
    tab = page.tab
    tab.get_by_role("button", name="Peak at N = n").click()
    page.settled()
    before, lines = tab.evaluate(fills), page.paths()
    tab.focus("#c-ridge")
    tab.keyboard.press("ArrowRight")
    page.drawn()
    after = tab.evaluate(fills)
    assert len(before) == len(after) == 3 and all(a != b for a, b in zip(before, after, strict=True))
    assert page.paths() != lines
    page.settled()  # Plotly has drawn it too, and the same
    ends = [path.replace("Z", "").split("L")[-1] for path in (after[0], tab.evaluate(fills)[0])]
    np.testing.assert_allclose(*[[float(part) for part in end.split(",")] for end in ends], atol=0.02)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", b"Dear diary,\n", "must end in .csv, .tsv, .npz"),
        ("model.npz", pickle.dumps({"x": 1}), "archive of arrays"),
        ("large.csv", None, "large.csv has 200 MB. A table must have at most 20 MB."),
    ],
)
def test_what_is_no_table_is_refused_beside_the_button(page, name, content, words):
    before = page.rows()
    sent = len(page.requests)
    if content is None:
        throw(page, name, "new Uint8Array(2e8)")
    else:
        choose(page, name, content)
    page.until(lambda: words in page.tab.inner_text("#brought"))
    assert "\n" not in page.tab.inner_text("#brought").strip()
    assert page.rows() == before and shown(page) == "diabetes"
    asked = [url for url in page.requests[sent:] if "/api/tables" in url]
    assert len(asked) == (0 if name == "large.csv" else 1)
    page.wrong.clear()  # the browser's own line about the answer 422


def test_a_file_dropped_in_another_view_opens_this_one(page):
    tab = page.tab
    page.open("#margin")
    throw(page, "mine.csv", repr(house(seed=3).decode()))
    page.until(lambda: tab.inner_text("h2") == "Your data" and shown(page) == "mine.csv", 60)
    page.drawn()


def test_dots_are_measured_on_other_rows_and_can_be_taken_away(page):
    page.open("#data?samples=100&width=50&ridge=0.1&draws=2")
    page.drop()
    text = page.tab.evaluate("lazyscope.csv()")
    assert text.startswith("# lazyscope forecast --example diabetes --regime rf")
    rows = list(csv.DictReader(io.StringIO("\n".join(line for line in text.splitlines() if not line.startswith("#")))))
    kinds = {row["kind"] for row in rows}
    assert kinds == {"forecast", "measured"}
    for row in rows:
        if row["kind"] == "forecast":
            assert float(row["low"]) < float(row["y"]) < float(row["high"])
        else:
            assert row["claim"] == "report/held-out" and float(row["stderr"]) > 0.0
    page.until(lambda: "held_out(table, regime, samples=100" in page.tab.text_content("#python"))

"""What stands on the page, in its files and in its links is of the state on the screen, and of no other."""

import re
from itertools import pairwise

import numpy as np
import pytest

from lazyscope.explorer.views import VIEWS

from .page import Page


@pytest.fixture(scope="module")
def page(browser, server):
    page = Page(browser, server[1], viewport={"width": 1280, "height": 720})
    page.open("#quadratic")
    yield page
    page.context.close()


def shown(page, name, x):
    """The value of a line of the picture, as its CSV has it."""
    rows = [row for row in page.rows() if row["name"] == name and row["kind"] == "limit"]
    return np.interp(x, [float(row["x"]) for row in rows], [float(row["y"]) for row in rows])


def test_a_refusal_leaves_no_number_of_another_state(page):
    page.open("#descent?d=20&draws=2")
    tab = page.tab
    assert tab.inner_text("#reading") and page.rows()
    page.drop()
    assert tab.is_visible("#clear")
    tab.click("#table summary")
    tab.select_option("#c-activation", "cos")
    page.drawn()
    assert "b₁" in tab.inner_text("#failure")
    assert tab.inner_text("#reading") == tab.inner_text("#notes") == ""
    assert tab.evaluate("lazyscope.csv()") == ""
    assert tab.evaluate("document.querySelectorAll('#chart path.js-line, #chart .point').length") == 0
    assert tab.inner_text("#status") == "" and tab.is_hidden("#clear")
    assert tab.locator("#table td").count() == 0
    for part in ("command", "python", "claims", "address"):
        assert tab.text_content(f"#{part}") == ""
    for button in ("drop", "link", "png", "csv", "py"):
        assert tab.is_disabled(f"#{button}")
    tab.select_option("#c-activation", "relu")
    page.drawn()
    assert tab.is_hidden("#failure") and tab.is_enabled("#csv")
    page.until(lambda: tab.inner_text("#reading").startswith("At N/d"))
    assert page.rows()


def test_a_level_that_moves_and_moves_back_changes_nothing(page):
    """The drawn spectrum is moved, not replaced: a step of a level is a small step of the curve."""
    page.open("#quadratic")
    tab, before, rows = page.tab, shown(page, "RF", 0.5), page.rows()
    tab.get_by_label("Level 4 of 8").focus()
    tab.keyboard.press("ArrowUp")
    page.drawn()
    assert "levels=paper%2C" in page.query()
    assert 0.0 < abs(shown(page, "RF", 0.5) - before) < 0.01  # a level of eight by 0.05
    tab.keyboard.press("ArrowDown")
    page.drawn()
    assert "levels=&" in page.query()
    assert page.rows() == rows
    tab.get_by_role("button", name="Flat").click()
    page.drawn()
    assert "levels=1%2C1%2C1%2C1%2C1%2C1%2C1%2C1" in page.query()


def test_an_emptied_number_stays_what_it_was(page):
    page.open("#quadratic?d=90")
    tab = page.tab
    box = tab.get_by_label("Dimension d, as a number")
    box.fill("")
    tab.keyboard.press("Tab")
    assert box.input_value() == "90" and "d=90" in page.query()
    box.fill("5000")
    tab.keyboard.press("Tab")
    page.drawn()
    assert box.input_value() == "450" and "d=450" in page.query()
    assert tab.get_by_text("450 is the most here.").is_visible()
    tab.locator("#c-d").focus()
    tab.keyboard.press("ArrowLeft")  # or a preset, a link: whatever moves it
    page.until(lambda: "d=450" not in page.query())
    assert tab.get_by_text("450 is the most here.").is_hidden()
    box.fill("1")
    tab.keyboard.press("Tab")
    page.drawn()
    assert tab.get_by_text("is the least here.").is_visible()
    tab.get_by_label("Weights Γ, isotropic to optimal, as a number").focus()
    tab.keyboard.press("ArrowUp")  # by a step of its slider, not by 1
    page.until(lambda: re.search("gamma=0[.]0", page.query()))


def test_keys_leave_the_ends_of_logarithmic_sliders(page):
    """A step of 5 % is less than one for a small whole number, and nothing for zero."""
    page.open("#degrees?width=2&ridge=0")
    tab = page.tab
    for control, values in {"width": (3, 2, 1), "ridge": (1e-6, 0)}.items():
        tab.focus(f"#c-{control}")
        for i, value in enumerate(values):
            tab.keyboard.press("ArrowRight" if i == 0 else "ArrowLeft")
            page.drawn()
            (found,) = re.findall(f"&{control}=([^&]*)", page.query())
            assert float(found) == value


WATCH = """() => {
  window.read = [];
  const labels = () => document.querySelectorAll('#chart .hoverlayer text').length;
  new MutationObserver(() => read.push([document.getElementById('reading').textContent, labels()]))
    .observe(document.documentElement, { attributes: true, attributeFilter: ['data-drawn'] });
}"""


def test_words_and_labels_go_with_the_line(page):
    """At the moment of a new line no number of the old one stands: neither in the reading nor beside the pointer."""
    page.open("#quadratic?rho_max=2")
    tab = page.tab
    tab.mouse.move(400, 400)
    tab.mouse.move(405, 405)
    page.until(lambda: tab.locator("#chart .hoverlayer text").count() > 0)
    before = tab.inner_text("#reading")
    tab.evaluate(WATCH)
    tab.evaluate("document.getElementById('c-gamma').focus()")
    tab.keyboard.press("End")
    page.drawn()
    page.until(lambda: tab.get_attribute("#reading", "aria-live") == "polite")
    assert tab.evaluate("read").pop() == [tab.inner_text("#reading"), 0]
    assert tab.inner_text("#reading") != before
    tab.mouse.move(0, 0)


LINKS = [
    ("#descent?psi1=nonsense&noise=0.3", "psi1 = nonsense, which must be between 0.05 and 20"),
    ("#descent?noise=7", "noise = 7, which must be between 0 and 2"),
    ("#descent?activation=nonsense", "which must be one of"),
    ("#descent?what=1", "what = 1, which this view does not know"),
    ("#nowhere?d=3", "There is no view nowhere"),
    ("#descent?noise=%", "noise = %, which must be"),
    ("#%E0%A4%A", "There is no view"),
]
REFUSED = [
    ("#quadratic?levels=a,b", "2 to 12 numbers"),
    ("#quadratic?levels=paper,1,2", "8 numbers"),
    ("#data?data=nowhere", "diabetes, digits, breast_cancer, or"),
    ("#data?target=nope", "name a column: age"),
]


def follow(page, link):
    """Open a link where another view is on the screen."""
    page.tab.goto(page.address + "#margin")
    page.drawn()
    page.tab.goto(page.address + link)


@pytest.mark.parametrize(("link", "words"), LINKS)
def test_a_link_that_cannot_be_read_is_said_and_the_page_shows_what_it_can(page, link, words):
    follow(page, link)
    page.until(lambda: words in page.tab.inner_text("#notes"))
    page.drawn()
    assert page.rows() and page.tab.is_hidden("#failure")
    assert "Computing" not in page.tab.inner_text("#reading")


@pytest.mark.parametrize(("link", "words"), REFUSED)
def test_a_link_to_what_the_library_refuses_says_what_must_hold(page, link, words):
    follow(page, link)
    page.until(lambda: words in page.tab.inner_text("#failure"))
    assert "pattern" not in page.tab.inner_text("#failure") and page.tab.inner_text("#reading") == ""


READINGS = [
    ("quadratic", r"^At N/d = 0\.5: RF 0\.8\d+, NT 0\.37\d*, NN 0\.0\d+\.$"),
    ("descent", r"^At N/d = 3: risk 1\.3"),  # the peak, N = n
    ("degrees", r"^At your n = 1,000 and N = 400: risk 0\.327; learnt 0\.983 of degree 1, 0\.546 of degree 2\.$"),
    ("margin", r"Bayes error 0\.129\.$"),
    ("rich", r"^At output scale α = 1: end of training 0\.\d+, NT 0\.\d+, NN 0\.\d+\.$"),
]


@pytest.mark.parametrize(("view", "words"), READINGS)
def test_the_reading_is_where_the_regimes_differ_and_names_every_line(page, view, words):
    page.open(f"#{view}")
    page.until(lambda: re.search(words, page.tab.inner_text("#reading")))


def test_large_fits_and_is_kept(page, browser, server):
    """On a laptop's 1280 × 720: the axis is in sight, and a reload does not forget it."""
    other = Page(browser, server[1], viewport={"width": 1280, "height": 720})
    other.open("#descent")
    other.tab.click("#size")
    other.tab.reload()
    other.drawn()
    assert other.tab.get_attribute("html", "data-size") == "large"
    assert other.tab.evaluate("document.getElementById('chart').data[0].line.width") > 3.0  # of lines, too
    for view in VIEWS:
        other.open(f"#{view}")
        other.until(lambda: other.tab.locator("#chart .xtitle").bounding_box())
        title = other.tab.locator("#chart .xtitle").bounding_box()
        assert title["y"] + title["height"] <= 720 and other.tab.locator("#title").bounding_box()["y"] >= 0, view
    other.check()
    other.context.close()


def test_what_has_no_effect_is_off_and_says_so(page):
    tab = page.tab
    page.open("#descent")
    assert tab.is_disabled("#c-psi1") and tab.is_enabled("#c-psi2")
    row = tab.locator(".control", has=tab.locator("#c-psi1"))
    assert "no effect" in row.inner_text()
    tab.select_option("#c-axis", "psi2")
    page.until(lambda: tab.is_enabled("#c-psi1") and tab.is_disabled("#c-psi2"))
    page.open("#beyond?what=samples")  # the controls of another question are not there
    assert tab.is_hidden("#c-alpha") and tab.is_disabled("#c-alpha") and tab.is_visible("#c-flip")


def test_time_can_be_moved_and_played_without_asking_the_server(page):
    page.open("#training?target=committee&time=1")
    tab = page.tab
    asked = len([url for url in page.requests if "/api/limit/training?target=committee" in url])
    caption = tab.inner_text("#heat caption")
    page.until(lambda: f"At {caption[caption.index('t = ') :]}:" in tab.inner_text("#reading"))
    assert "at t = 0.99" in caption and tab.locator("#heat tbody td").count() == 4
    first = tab.inner_text("#heat tbody")
    tab.focus("#c-time")
    tab.keyboard.press("ArrowRight")
    page.drawn()
    assert "time=1.04" in page.query()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    page.until(lambda: "at t = 1.13" in tab.inner_text("#heat caption"))  # the moments that are known are 15 % apart
    tab.click("#play")
    assert tab.inner_text("#play") == "Pause"
    page.until(lambda: float(tab.get_by_label("Time t, as a number").input_value()) > 100.0)
    page.until(lambda: tab.inner_text("#play") == "Play")  # it ends at the end
    assert "time=150" in page.query() and tab.inner_text("#heat tbody") != first
    assert asked == len([url for url in page.requests if "/api/limit/training?target=committee" in url])
    page.until(lambda: "time=150" in tab.text_content("#address"))
    tab.click("#play")  # from the beginning
    page.until(lambda: tab.inner_text("#play") == "Pause")
    tab.click("#play")
    assert tab.inner_text("#play") == "Play"
    tab.evaluate(
        """() => { const real = Plotly.toImage, slider = document.getElementById('c-time');
        Plotly.toImage = (chart, size) => ((window.taken = chart.data.at(-1).x[0]), real(chart, size));
        slider.value = 0; slider.dispatchEvent(new Event('input')); document.getElementById('png').click(); }"""
    )
    page.until(
        lambda: f"time={tab.evaluate('window.taken')}&" in page.query()
    )  # the picture is of the moment on the screen
    page.open("#training?target=committee&time=150")
    assert "at t = 150" in tab.inner_text("#heat caption")


def test_2_xor_opens_with_dots_and_they_are_in_its_files(page):
    page.open("#beyond?what=samples")
    tab = page.tab
    page.until(lambda: tab.inner_text("#status").startswith("Dots that come with the package"))
    dots = [row for row in page.rows() if row["kind"] == "simulate"]
    assert {row["name"] for row in dots} == {"NT", "random signs"} and all(float(row["stderr"]) >= 0.0 for row in dots)
    assert "lazyscope simulate parity" in tab.evaluate("lazyscope.csv()")
    page.until(lambda: "/api/simulate/beyond?what=samples" in tab.text_content("#address"))


@pytest.mark.parametrize("size", [(360, 740), (1280, 720)], ids=["phone", "desk"])
def test_ticks_do_not_overlap_and_none_is_left_out(page, size):
    """Those of two panels stand in one column."""
    tab = page.tab
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    try:
        for view in VIEWS:
            page.open(f"#{view}")
            page.until(lambda: tab.locator("#chart .xtick text").count() > 1)
            edges = "e => e.map(t => t.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
            for axis, ticks in (("x", ".xtick"), ("y", ".ytick, #chart .y2tick")):
                near, far = (0, 1) if axis == "x" else (2, 3)
                texts = tab.eval_on_selector_all(f"#chart {ticks.replace('tick', 'tick text')}", edges)
                boxes = sorted(texts, key=lambda box: box[near])
                for one, other in pairwise(boxes):
                    assert other[near] >= one[far] - 1, (view, axis, boxes)
            hidden = "e => e.filter(t => getComputedStyle(t).opacity === '0').map(t => t.textContent)"
            assert tab.eval_on_selector_all("#chart .xtick text", hidden) == [], view
    finally:
        tab.set_viewport_size({"width": 1280, "height": 720})

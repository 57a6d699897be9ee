"""The page in a real browser: it shows what the API says, follows its sliders, and asks nobody else."""

import contextlib
import os
import re
import signal
import statistics
import time

import numpy as np
import psutil
import pytest

import lazyscope as ls
from lazyscope.explorer.views import VIEWS

from .page import LINES, SLIDERS, Page


@pytest.fixture(scope="module")
def only(browser, server):
    """One tab for all tests: a page takes a second to load, and a link within it none."""
    page = Page(browser, server[1])
    page.open("#quadratic")
    yield page
    page.context.close()


@pytest.fixture
def page(only):
    only.wrong.clear()
    yield only
    if only.tab.is_visible("#cancel"):
        only.tab.click("#cancel")
    only.check()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_loads_and_a_slider_moves_its_line(page, client, view):
    page.open(f"#{view}")
    tab = page.tab
    assert tab.inner_text("h2") == VIEWS[view].title
    assert VIEWS[view].theorem in tab.inner_text("#theorem")
    assert len(page.paths()) >= LINES[view]
    before, drawn = page.paths(), page.query()
    tab.focus(f"#c-{SLIDERS[view]}")
    tab.keyboard.press("ArrowRight")
    page.until(lambda: page.query() != drawn)
    assert page.paths() != before
    answer = client.get(f"/api/limit/{page.query()}").json()
    page.until(lambda: page.traces()[answer["lines"][0]["name"]][1] == answer["lines"][0]["y"])  # Plotly knows too
    for line in answer["lines"]:
        assert page.traces()[line["name"]] == (line["x"], line["y"])
    page.until(lambda: tab.text_content("#command") == answer["command"])
    page.until(lambda: tab.text_content("#python") == answer["python"])


def moved(page, slider):
    """Move a slider there and back; return how long each line took, from the event to the frame after it, in ms."""
    seen = page.tab.evaluate("lazyscope.latencies.length")
    page.tab.focus(f"#c-{slider}")
    for i in range(12):
        page.tab.keyboard.press("ArrowRight" if i < 6 else "ArrowLeft")
        page.tab.wait_for_timeout(60)
    page.drawn()
    page.tab.wait_for_timeout(100)
    return page.tab.evaluate("lazyscope.latencies")[seen:]


@pytest.mark.slow  # it looks at the clock
def test_a_slider_reaches_the_screen_in_a_tenth_of_a_second(page, record_property):
    """In the median of each view."""
    medians = {}
    for view, slider in SLIDERS.items():
        page.open(f"#{view}")
        medians[view] = round(statistics.median(moved(page, slider)), 1)
    record_property("slider_to_screen_ms", medians)
    assert max(medians.values()) < 100.0, medians


def test_exact_dots_arrive_and_lie_on_the_lines(page):
    """At d = 200 what a finite size adds is some N/d² = 0.01, and draws scatter by their standard errors."""
    page.open("#quadratic?d=200&draws=4")
    page.drop()
    rows = page.rows()
    dots = [row for row in rows if row["kind"] == "exact"]
    assert {row["name"] for row in dots} == {"RF", "NT", "NN"}
    target = ls.QuadraticTarget.exponential(200, seed=100)
    for row in dots:
        x, y = float(row["x"]), float(row["y"])
        line = [(float(r["x"]), float(r["y"])) for r in rows if r["kind"] == "limit" and r["name"] == row["name"]]
        theory = np.interp(x, *zip(*line, strict=True))
        assert abs(y - theory) < 0.025 + 4.0 * float(row["stderr"] or 0.0), row
        regime = {"RF": ls.RandomFeatures, "NT": ls.NeuralTangent, "NN": ls.Trained}[row["name"]]()
        if x == 0.5:
            expected = ls.exact(target, regime, width=100, draws=1 if row["name"] == "NN" else 4)
            assert y == pytest.approx(float(expected.risk), rel=1e-9)
    # networks are not trained at this size while one waits; notes are written when the page has rested for a moment
    page.until(lambda: "Left out" in page.tab.inner_text("#notes"))


def test_simulated_dots_arrive_and_lie_on_the_lines(page):
    page.open("#descent?psi2=2&ridge=0.1&d=80&draws=6")
    page.drop()
    rows = page.rows()
    distances = []
    for row in (row for row in rows if row["kind"] == "simulate" and row["name"] == "risk"):
        line = [(float(r["x"]), float(r["y"])) for r in rows if r["kind"] == "limit" and r["name"] == "risk"]
        theory = np.interp(float(row["x"]), *zip(*line, strict=True))
        distances.append(abs(float(row["y"]) - theory) / float(row["stderr"]))
    assert len(distances) >= 8
    assert statistics.median(distances) < 2.5, distances  # of Student's t with five degrees of freedom


def test_sizes_are_whole_on_a_logarithmic_slider_and_dots_lie_on_both_curves(page):
    page.open("#degrees?width=120&samples=300&draws=6")
    tab = page.tab
    tab.get_by_label("Dimension d", exact=True).focus()
    for _ in range(3):  # steps of 5 %
        tab.keyboard.press("ArrowLeft")
    page.drawn()
    (d,) = re.findall(r"&d=([^&]*)&", page.query())
    assert d == tab.get_by_label("Dimension d, as a number").input_value() == "26"
    page.drop()
    rows = page.rows()
    for name in ("risk against n", "risk against N"):
        line = [(float(r["x"]), float(r["y"])) for r in rows if r["kind"] == "limit" and r["name"] == name]
        dots = [row for row in rows if row["kind"] == "simulate" and row["name"] == name]
        far = [
            abs(float(row["y"]) - np.interp(float(row["x"]), *zip(*line, strict=True))) / float(row["stderr"])
            for row in dots
        ]
        assert len(far) == 5 and statistics.median(far) < 2.5, (
            name,
            far,
        )  # of Student's t with five degrees of freedom


def test_a_link_restores_the_exact_state(page, browser, server):
    page.open("#descent")
    tab = page.tab
    tab.select_option("#c-activation", "softplus")
    tab.get_by_label("Seed, as a number").fill("7")
    tab.keyboard.press("Tab")
    tab.get_by_label("Dimension d", exact=True).focus()
    tab.keyboard.press("Home")
    page.drop()
    tab.click("#link")
    assert "dots=true" in tab.url
    other = Page(browser, server[1])
    other.tab.goto(tab.url)
    other.until(lambda: other.tab.inner_text("#status").startswith("Done"), 300)
    assert other.rows() == page.rows()  # lines and dots, bit for bit
    assert any(row["kind"] == "simulate" for row in page.rows())
    assert other.query() == page.query()
    assert other.tab.input_value("#c-activation") == "softplus"
    assert other.tab.get_by_label("Dimension d, as a number").input_value() == "20"
    other.context.close()
    other.check()


def test_levels_and_presets_shape_the_spectrum(page):
    page.open("#mixture")
    tab = page.tab
    tab.get_by_role("button", name="Uneven").click()
    tab.get_by_label("Level 8 of 8").focus()
    tab.keyboard.press("ArrowDown")
    page.drawn()
    assert "levels=0%2C0%2C0%2C0.5%2C0.5%2C1%2C2%2C2.95" in page.query()
    tab.get_by_role("button", name="Paper").click()
    page.drawn()
    assert "levels=&" in page.query()


def test_png_csv_and_python_can_be_taken_away(page, tmp_path):
    page.open("#margin")
    found = {}
    for button in ("png", "csv", "py"):
        with page.tab.expect_download() as download:
            page.tab.click(f"#{button}")
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        found[file.name] = file
    assert set(found) == {"lazyscope-margin.png", "lazyscope-margin.csv", "lazyscope-margin.py"}
    assert found["lazyscope-margin.png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert found["lazyscope-margin.png"].stat().st_size > 20_000
    text = found["lazyscope-margin.csv"].read_text(encoding="utf-8")
    assert text.startswith("# lazyscope limit labels")
    assert len(text.splitlines()) > 100
    names = {}
    exec(found["lazyscope-margin.py"].read_text(encoding="utf-8"), names)
    assert names["line"].margin.size == 81


def workers(server):
    return psutil.Process(server[0].pid).children()


def start_long_job(page, server):
    """Drop dots that take minutes; return the worker that is at them."""
    page.open("#quadratic?d=120&draws=10&activation=relu")
    page.tab.click("#drop")
    page.until(lambda: re.search(r"exact|simulate", page.tab.inner_text("#status")))
    busy = [worker for worker in workers(server) if worker.status() == psutil.STATUS_RUNNING]
    return busy or workers(server)


def spent(busy):
    """Seconds of processor time of workers that are there."""
    total = 0.0
    for worker in busy:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(worker.cpu_times()[:2])
    return total


def assert_they_stop(busy):
    """Workers compute no more: for a second their time stands still, long before the minutes that the job takes."""
    first, last = spent(busy), np.nan
    while last != (now := spent(busy)):
        last = now
        time.sleep(1.0)
    assert last - first < 20.0


def test_cancel_frees_the_worker(page, server):
    before = start_long_job(page, server)
    page.tab.click("#cancel")
    assert_they_stop(before)
    page.until(lambda: page.tab.inner_text("#status") == "Cancelled.")
    assert page.tab.is_enabled("#drop")


def test_closing_the_page_cancels_its_job(browser, server):
    page = Page(browser, server[1])
    before = start_long_job(page, server)
    page.tab.close()
    assert_they_stop(before)


def test_a_worker_killed_with_9_is_a_message_in_the_page(page, server):
    for worker in start_long_job(page, server):
        os.kill(worker.pid, signal.SIGKILL)
    page.until(lambda: "killed by signal 9" in page.tab.inner_text("#status"))
    assert page.tab.is_enabled("#drop")


def test_what_the_library_refuses_is_said_and_the_page_goes_on(page):
    page.open("#descent")
    page.tab.select_option("#c-activation", "square")
    page.until(lambda: page.tab.is_visible("#failure"))
    assert "b₁" in page.tab.inner_text("#failure")
    page.wrong.clear()  # the browser's own line about the answer 422
    page.tab.select_option("#c-activation", "tanh")
    page.until(lambda: not page.tab.is_visible("#failure"))
    page.tab.click("a[data-view=quadratic]")
    page.until(lambda: page.query().startswith("quadratic"))
    page.tab.get_by_role("button", name="Both signs").click()
    page.until(lambda: "B ⪰ 0" in page.tab.inner_text("#notes"))  # no theorem for NN: said, and the others drawn
    page.until(lambda: set(page.traces()) == {"RF", "NT"})


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page):
    for view in VIEWS:
        page.open(f"#{view}")
        nameless = page.tab.evaluate(
            """() => [...document.querySelectorAll('button, input, select, a')].filter(e => e.offsetParent).filter(e =>
                 !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML)"""
        )
        assert nameless == []
    page.open("#quadratic")
    page.tab.keyboard.press("Tab")
    reached = []
    for _ in range(60):  # once around the page, wherever it begins
        page.tab.keyboard.press("Tab")
        reached.append(page.tab.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"drop", "link", "csv", "c-gamma", "c-activation", "Mixture", "Flat"} <= set(reached)
    assert page.tab.get_attribute("#chart", "role") == "img"
    assert "RF" in page.tab.inner_text("#reading")


def test_a_picture_without_lines_has_its_own_axes(page):
    page.open("#beyond")
    page.tab.evaluate("location.hash = '#beyond?what=samples&d=10'")  # no dots come with the package for this d
    page.until(lambda: "what=samples" in page.query())
    page.drawn()
    page.until(lambda: page.tab.locator("#chart .xtitle").all_text_contents() == ["n, number of samples"])
    assert page.tab.locator("#chart .xtick").count() > 1
    page.open("#degrees?e1=0&e2=0")  # nothing to learn: the lower panel is there, and is empty
    page.until(lambda: page.tab.locator("#chart .y2tick").count() > 1)


def test_choices_are_not_cut_off_and_numbers_tell_their_bounds(page):
    for view in ("#training?target=committee", "#beyond", "#rich?axis=time"):
        page.open(view)
        cut = page.tab.evaluate(
            """() => [...document.querySelectorAll('.control select')].filter(select => {
                 const whole = select.cloneNode(true);
                 Object.assign(whole.style, { position: 'absolute', maxWidth: 'none', width: 'max-content' });
                 select.after(whole);
                 const wide = whole.offsetWidth;
                 whole.remove();
                 return wide > select.offsetWidth + 1;
               }).map(select => select.id)"""
        )
        assert cut == []
    page.open("#quadratic")
    assert page.tab.get_attribute("input[aria-label='Dimension d, as a number']", "title") == "20 to 450"


CONTRAST = """() => {
  const parts = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const low = [];
  const some = 'h1, h2, p, a, button, label, legend, summary, li, output, option, span, select, input[type=number]';
  for (const e of document.querySelectorAll(some)) {
    const text = e.matches('input, select') ? e.value : e.textContent;
    if (!e.offsetParent || !text.trim()) continue;
    const found = ratio(light(parts(getComputedStyle(e).color)), light(behind(e)));
    if (found < 4.5) low.push([text.trim().slice(0, 30), found]);
  }
  const style = getComputedStyle(document.documentElement);
  const paper = light(parts(getComputedStyle(document.body).backgroundColor));
  const roles = 'rf nt nn bayes risk bias variance train best error margin signs degree1 degree2 degree3 degree4';
  for (const role of roles.split(' ')) {
    const hex = style.getPropertyValue('--' + role).trim();
    const found = ratio(light([1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16))), paper);
    if (!(found >= 3)) low.push([role, found]);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(390, 844), (1920, 1080)], ids=["phone", "projector"])
def test_it_can_be_read_on_a_phone_and_on_a_projector_in_light_and_dark(page, scheme, size):
    tab = page.tab
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    try:
        for view in ("quadratic", "descent", "margin", "degrees", "data"):  # two of them with what has no effect
            page.open(f"#{view}")
            assert tab.get_attribute("html", "data-theme") == scheme
            assert tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
            assert tab.evaluate(CONTRAST) == []
        tab.mouse.move(size[0] / 2, size[1] / 2)
        tab.mouse.wheel(0, 700)
        tab.wait_for_timeout(100)
        box = tab.locator("#chart").bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= size[1] + 1, "the chart stays while its sliders are used"
        drawn = tab.locator("#chart svg.main-svg").first.bounding_box()
        assert drawn["width"] == pytest.approx(box["width"], abs=2)
        tab.mouse.wheel(0, -700)
        tab.click("#theme")
        assert tab.get_attribute("html", "data-theme") != scheme
        assert tab.evaluate(CONTRAST) == []
        tab.click("#theme")  # what was chosen is kept
    finally:
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size({"width": 1280, "height": 800})

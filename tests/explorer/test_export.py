"""The page in one file: no server, no network."""

from dataclasses import replace

import pytest

from lazyscope.explorer import export
from lazyscope.explorer.views import VIEWS

from .page import LINES, SLIDERS, Page


def slim(view):
    """The same view with two stops a control, the default and another."""
    defaults = view.state().model_dump()
    some = {}
    for name, values in view.export.items():
        other = [value for value in values if value != defaults[name]][-1 if view.name == "beyond" else 0]
        some[name] = [value for value in values if value in (defaults[name], other)]
    return replace(view, export=some)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "page.html"
    export.write(path, [slim(view) for view in VIEWS.values()], dots=False)
    return path


def test_every_default_is_among_the_stops():
    for view in VIEWS.values():
        defaults = view.state().model_dump()
        for name, values in view.export.items():
            assert defaults[name] in values
            for value in values:
                view.state(**{name: value})


def test_the_file_works_with_the_network_off(file, browser, client):
    page = Page(browser, file.as_uri(), offline=True)
    page.open("#quadratic")
    for view, slider in SLIDERS.items():
        page.tab.click(f"a[data-view={view}]")
        page.until(lambda view=view: page.query().startswith(view))
        page.drawn()
        assert len(page.paths()) >= LINES[view]
        assert ("needs the server" in page.tab.inner_text("#controls")) == (view == "data")  # a file of one's own
        before, drawn = page.traces(), page.query()
        page.tab.focus(f"#c-{slider}")
        at_end = page.tab.input_value(f"#c-{slider}") == "1"
        page.tab.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
        page.until(lambda drawn=drawn: page.query() != drawn)
        page.until(lambda before=before: page.traces() != before)
        answer = client.get(f"/api/limit/{page.query()}").json()
        for line in answer["lines"]:
            assert page.traces()[line["name"]][1] == pytest.approx(line["y"], rel=1e-5, abs=1e-12)
    assert {url.partition("#")[0] for url in page.requests} == {file.as_uri()}
    assert not page.wrong
    page.context.close()


def test_a_page_around_the_file_keeps_its_focus_and_its_place(file, browser):
    """As in the lessons of the docs: the reader begins at the top, not where the explorer is."""
    around = file.with_name("around.html")
    around.write_text(f'<body><p style="height: 3000px">A lesson.</p><iframe src="{file.name}" height=700></iframe>')
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    tab = context.new_page()
    tab.goto(around.as_uri())
    tab.frame_locator("iframe").locator("html[data-drawn]").wait_for(state="attached", timeout=120_000)
    assert tab.frame_locator("iframe").locator("#tour").is_hidden()
    assert tab.evaluate("[scrollY, document.activeElement.tagName]") == [0, "BODY"]
    context.close()


def test_dots_of_the_first_state_are_kept():
    # private: a whole export would draw the dots of every view
    kept = export._dots(VIEWS["margin"])
    assert {dots["name"] for dots in kept["dots"]} == {"test error", "margin"}
    assert kept["command"].startswith("lazyscope simulate labels")


def test_presets_of_the_file_do_what_they_say_and_what_has_no_effect_is_off(file, browser):
    page = Page(browser, file.as_uri(), offline=True)
    page.open("#beyond")
    tab = page.tab
    assert tab.is_enabled("#c-alpha")
    assert len(page.traces()) == 3
    tab.get_by_role("button", name="2-XOR", exact=True).click()
    page.until(lambda: tab.inner_text("#status").startswith("Dots that come with the package"))
    assert tab.is_disabled("#c-alpha") and tab.input_value("#c-what") == "samples"
    for view in VIEWS.values():
        page.open(f"#{view.name}")
        for i in range(tab.locator(".presets button").count()):
            tab.locator(".presets button").nth(i).click()
            page.drawn()
            assert tab.is_hidden("#failure"), (view.name, i)
    assert not page.wrong
    page.context.close()


def test_every_preset_of_a_view_that_the_file_offers_can_be_shown():
    """All stops: whatever a preset sets is there, or as usual."""
    for view in VIEWS.values():
        usual = view.state().model_dump()
        for preset in export._view(view)["presets"]:
            whole = view.presets[preset["name"]]
            assert {name: value for name, value in whole.items() if name in view.export} == preset["state"]
            assert all(usual[name] == value for name, value in whole.items() if name not in view.export)
    assert {"2-XOR", "2-XOR, noisy labels"} <= {one["name"] for one in export._view(VIEWS["beyond"])["presets"]}


def test_nothing_in_the_file_is_loaded_from_elsewhere(file):
    page = file.read_text(encoding="utf-8")
    assert export.POLICY.replace("'", "&#x27;") in page
    head = page[: page.index("<script>")]
    assert "src=" not in head
    assert "href=" not in head

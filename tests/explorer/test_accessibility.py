"""The page for those who do not see it, or use no mouse: axe-core finds nothing wrong, and the tour can be tabbed."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from lazyscope.explorer.views import VIEWS

from .page import Page

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def page(browser, server):
    page = Page(browser, server[1], viewport=DESK)
    page.open("#quadratic")
    yield page
    page.context.close()


def violations(tab):
    """What axe-core finds, with all its rules: rule and elements."""
    found = Axe().run(tab).response["violations"]
    return [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_violation(page, view, scheme):
    tab = page.tab
    tab.emulate_media(color_scheme=scheme)
    page.open(f"#{view}")
    tab.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
    page.until(lambda: tab.locator("#table td").count() > 0)
    assert violations(tab) == []


@pytest.mark.parametrize("where", ["#training?target=committee", "#beyond?what=samples", "#descent?activation=cos"])
def test_axe_finds_no_violation_in_heat_maps_dots_and_refusals_on_a_phone(page, where):
    tab = page.tab
    tab.set_viewport_size(PHONE)
    try:
        page.open(where)
        assert violations(tab) == []
    finally:
        tab.set_viewport_size(DESK)


def test_the_first_visit_has_a_tour_of_four_steps_and_the_second_none(browser, server):
    page = Page(browser, server[1], viewport=DESK, storage_state={"cookies": [], "origins": []})
    tab = page.tab
    tab.goto(page.address)
    page.until(lambda: tab.is_visible("#tour"))
    page.drawn()
    assert violations(tab) == []
    titles = []
    for _ in range(4):  # by the keyboard alone
        titles.append(tab.inner_text("#tour-title"))
        assert tab.locator(".toured").count() == 1
        assert tab.evaluate("document.activeElement.id") == "tour-next"
        tab.keyboard.press("Enter")
    assert [title[:6] for title in titles] == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
    assert tab.is_hidden("#tour") and tab.locator(".toured").count() == 0
    assert tab.evaluate("document.activeElement.id") == "help"
    tab.reload()
    page.drawn()
    assert tab.is_hidden("#tour")
    tab.click("#help")
    assert tab.is_visible("#tour")
    tab.keyboard.press("Escape")
    assert tab.is_hidden("#tour")
    page.check()
    page.context.close()


def test_a_link_to_a_picture_opens_the_picture_without_a_tour(browser, server):
    page = Page(browser, server[1], storage_state={"cookies": [], "origins": []})
    page.open("#margin")
    assert page.tab.is_hidden("#tour")
    page.context.close()


def test_every_number_has_its_command_and_its_address(page, client):
    tab = page.tab
    for view in VIEWS:
        page.open(f"#{view}")
        page.until(lambda view=view: f"/api/limit/{view}?" in tab.text_content("#address"))
        answer = client.get(tab.locator("#address a").first.get_attribute("href")).json()
        assert tab.text_content("#command").startswith(answer["command"]) and answer["command"]
        shown = {row["name"] for row in page.rows() if row["kind"] in ("limit", "forecast")}
        assert shown == {line["name"] for line in answer["lines"]}

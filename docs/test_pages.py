"""What the pages say about the code is complete: every public name, every experiment, every link of a built site."""

import inspect
import re
from pathlib import Path

import pytest
from making import links, tables

import lazyscope.estimators
from lazyscope import experiments

HERE = Path(__file__).parent
API = {page.stem: page.read_text(encoding="utf-8") for page in sorted(HERE.glob("api/*.md"))}


def test_every_public_name_stands_on_one_page_of_the_interface():
    named = re.findall(r"^\.\. auto\w+:: lazyscope\.(\w+)$", "\n".join(API.values()), re.MULTILINE)
    assert sorted(named) == sorted(set(lazyscope.__all__) - {"__version__"})
    assert set(re.findall(r"^api/(\w+)$", (HERE / "api.md").read_text(encoding="utf-8"), re.MULTILINE)) == API.keys()


@pytest.mark.parametrize("name", sorted(set(lazyscope.__all__) - {"__version__"}))
def test_parameter_lists_name_parameters(name):
    """A sentence that follows the list without a heading would be read as parameters too."""
    value = getattr(lazyscope, name)
    sections = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    listed = dict(zip(sections[1::2], sections[2::2], strict=True)).get("Parameters", "")
    lines = re.findall(r"^\S.*$", listed, re.MULTILINE)
    named = [part.strip(" *:") for line in lines for part in line.split(",")]
    assert set(named) <= set(inspect.signature(value).parameters) if named else True


@pytest.mark.parametrize("name", lazyscope.estimators.__all__)
def test_lists_of_parameters_and_attributes_of_estimators_end_at_a_heading(name):
    value = getattr(lazyscope.estimators, name)
    sections = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(value), flags=re.MULTILINE)
    listed = dict(zip(sections[1::2], sections[2::2], strict=True))
    names = {
        section: {part.strip() for line in re.findall(r"^\S.*$", listed.get(section, ""), re.MULTILINE)
                  for part in line.partition(" :")[0].split(",")}
        for section in ("Parameters", "Attributes")
    }  # fmt: skip
    assert names["Parameters"] <= set(inspect.signature(value).parameters)
    assert all(re.fullmatch(r"\w+_", name) for name in names["Attributes"]), names["Attributes"]


def test_every_estimator_stands_on_the_page_of_the_estimators():
    named = re.findall(r"^\.\. autoclass:: lazyscope\.estimators\.(\w+)$", API["estimators"], re.MULTILINE)
    assert sorted(named) == sorted(lazyscope.estimators.__all__)


def test_the_gallery_has_every_experiment_with_its_command_and_every_picture_with_its_page():
    cards = "\n".join(tables.gallery(HERE)).split("{container} card")[1:]
    for name, card in zip(experiments.load_all(), cards, strict=True):
        assert f"$ lazyscope figure {name}\n" in card
        if (HERE / "images" / f"{name}.png").exists():
            assert f"thumbnails/{name}.png" in card and "{doc}`More" in card, name


PAGE = '<html><a href="{}">a</a><script src="{}"></script><p id="here">'


@pytest.mark.parametrize(
    ("link", "script", "told"),
    [
        ("other.html#here", "s.js", None),
        ("other.html#there", "s.js", "no such place"),
        ("missing.html", "s.js", "leads nowhere"),
        ("https://example.org/", "s.js", None),
        ("other.html", "https://example.org/s.js", "another host"),
        ("other.html", "large.js", "more than 300,000"),
    ],
)
def test_a_broken_link_another_host_and_a_heavy_page_are_found(link, script, told, tmp_path):
    (tmp_path / "index.html").write_text(PAGE.format(link, script))
    (tmp_path / "other.html").write_text(PAGE.format("index.html", "s.js"))
    (tmp_path / "s.js").write_text("")
    (tmp_path / "large.js").write_text(" " * links.BUDGET)
    found = links.check(tmp_path)
    assert found == [] if told is None else (len(found) == 1 and told in found[0])

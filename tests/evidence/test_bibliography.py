"""The bibliography is BibTeX that every reader of it accepts."""

import re
from importlib.resources import files

TEXT = files("lazyscope.evidence").joinpath("references.bib").read_text(encoding="utf-8")
_VALUE = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_FIELD = rf"\w+\s*=\s*(?:{_VALUE}|\d+)"
_ENTRY = re.compile(rf"@(\w+)\{{(\w+),\s*{_FIELD}(?:\s*,\s*{_FIELD})*\s*,?\s*\}}")


def test_every_entry_is_a_list_of_fields_with_commas_between():
    entries = list(_ENTRY.finditer(TEXT))
    assert len(entries) == TEXT.count("@") > 15
    assert not _ENTRY.sub("", TEXT).strip(), "nothing stands between the entries"
    assert len({entry[2] for entry in entries}) == len(entries)


def test_no_field_is_given_twice():
    for entry in _ENTRY.finditer(TEXT):
        names = re.findall(r"^\s*(\w+)\s*=", entry[0], flags=re.MULTILINE)
        assert len(set(names)) == len(names), entry[2]

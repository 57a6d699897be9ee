"""The summary of validations: parts that were run on different days stand side by side, the longest first."""

import json

from tests.validation.summary.plugin import write


def test_a_part_replaces_its_own_entries_and_leaves_the_others(tmp_path):
    (tmp_path / "test_a[1].json").write_text("{}", encoding="utf-8")
    write(tmp_path, {"t.py::test_a[1]": {"outcome": "passed", "seconds": 30.0}}, 31.0)
    whole = write(tmp_path, {"t.py::test_b": {"outcome": "failed", "seconds": 90.0}}, 91.0)
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8")) == whole
    assert list(whole["validations"]) == ["t.py::test_b", "t.py::test_a[1]"] and whole["minutes of all"] == 2.0
    first, second = whole["validations"]["t.py::test_a[1]"], whole["validations"]["t.py::test_b"]
    assert (first["outcome"], first["numbers"]) == ("passed", "test_a[1].json")
    assert (second["outcome"], second["numbers"]) == ("failed", None)
    assert whole["last run"]["machine"] and whole["last run"]["date"]

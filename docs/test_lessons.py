"""The code of every lesson runs from its first cell to its last, in an empty folder."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib as mpl
import pytest
from making import lessons

LESSONS = sorted((Path(__file__).parent / "lessons").glob("*.md"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_and_draws(lesson, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context():
        mpl.use("agg")
        import matplotlib.pyplot as plt

        shown = []
        monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().axes[0].get_xlabel()))
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile(lessons.code(lesson), lesson.name, "exec"), {"__name__": "lesson"})
        plt.close("all")
    print(said.getvalue())
    assert shown and all(shown), "a picture with a named axis"
    assert said.getvalue().strip() and "nan" not in said.getvalue()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_three_questions_and_a_notebook_without_markup_of_pages(lesson):
    text = lesson.read_text(encoding="utf-8")
    assert len(re.findall(r"^\*\*\d\. .*\?\*\*$", text, re.MULTILINE)) == text.count("<details>") == 3
    cells = lessons.notebook(text)["cells"]
    assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
    assert not any("{doc}" in cell["source"] or "```{" in cell["source"] for cell in cells)

"""The architecture, as facts: who may import whom, what is loaded when, how large a folder may grow."""

import subprocess
import sys
from pathlib import Path

import pytest

import lazyscope

PACKAGE = Path(lazyscope.__file__).parent
ROOT = Path(__file__).parent.parent


def test_imports_keep_the_contracts_of_pyproject():
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


CODE = [PACKAGE, *(ROOT / name for name in ("tests", "benchmarks", "soak", "docs/making"))]


@pytest.mark.parametrize("folder", sorted({module.parent for code in CODE for module in code.rglob("*.py")}), ids=str)
def test_no_folder_is_a_heap_and_no_file_a_wall(folder):
    modules = list(folder.glob("*.py"))
    assert len(modules) <= (8 if folder == PACKAGE else 15), "sub-folders named after ideas, please"
    assert all(len(module.read_text(encoding="utf-8").splitlines()) <= 400 for module in modules)


def test_no_page_has_the_marks_of_a_merge():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 40
    assert not [page for page in pages for mark in ("\n<<<<<<< ", "\n>>>>>>> ") if mark in page.read_text("utf-8")]


def test_tests_mirror_the_source():
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    assert not {package for package in packages if not any((ROOT / "tests" / package).rglob("test_*.py"))}


def loaded(code, *names):
    script = f"import sys; {code}; print(*[n for n in {names!r} if n in sys.modules])"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "xarray", "matplotlib", "rich", "click")
    assert loaded("import lazyscope", *heavy) == []
    assert loaded("import lazyscope; lazyscope.limit; lazyscope.exact", *heavy) == ["numpy"]


def test_no_package_has_the_name_of_a_public_function():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} | {path.stem for path in PACKAGE.glob("*.py")}
    assert not folders & set(lazyscope.__all__)


def test_public_names_are_complete_and_documented():
    for name in lazyscope.__all__:
        value = getattr(lazyscope, name)
        assert name == "__version__" or (value.__doc__ and len(value.__doc__) > 20)
    with pytest.raises(AttributeError, match="nothing"):
        lazyscope.nothing  # noqa: B018
    assert set(dir(lazyscope)) >= set(lazyscope.__all__) - {"__version__"}


ROAD = """
import sys, lazyscope
from pathlib import Path

root, seen, looked_up = Path(lazyscope.__file__).parent, set(), 0

def watch(frame, event, argument):
    global looked_up
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and Path(code.co_filename).is_relative_to(root):
        seen.add(code.co_filename)
        looked_up += code.co_name == "find" and code.co_filename.endswith("registry.py")

def ask():
    return lazyscope.exact(lazyscope.QuadraticTarget([2.0, 1.0, 0.5]), lazyscope.NeuralTangent(), width=2)

ask()  # imports once
sys.setprofile(watch)
ask()
sys.setprofile(None)
print(looked_up, len(seen), *sorted(str(Path(name).relative_to(root)) for name in seen))
"""


def test_one_number_is_looked_up_once_and_passes_fifteen_files_at_most():
    output = subprocess.run([sys.executable, "-c", ROAD], check=True, capture_output=True, text=True).stdout.split()
    looked_up, files = int(output[0]), int(output[1])
    assert looked_up == 1
    assert files <= 15, output[2:]

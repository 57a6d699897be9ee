"""The skeletons of docs/extending.md, copied into a package outside the source tree, work there as they stand."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lazyscope

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
SOURCE = Path(lazyscope.__file__).parents[1]


def blocks(language):
    """Return the code blocks of the page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The page's files as an installed package: modules, and the entry points of its pyproject.toml."""
    root = tmp_path_factory.mktemp("site")
    for block in blocks("python"):
        name = re.match(r"# (\S+\.py)\n", block)[1]
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(block, encoding="utf-8")
    (root / "my_package" / "__init__.py").write_text("", encoding="utf-8")
    project = tomllib.loads(blocks("toml")[0])["project"]
    info = root / "my_package-0.1.dist-info"
    info.mkdir()
    header = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(header, encoding="utf-8")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def python(package, *arguments, folder=None):
    """Run Python with the package installed; return what it printed."""
    path = os.pathsep.join([str(package), str(SOURCE)])
    own = {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", "PYTEST_ADDOPTS": ""}
    environment = {**os.environ, **own}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder or package, env=environment, capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


COMMAND = ("-c", "from lazyscope.cli import main; main()")


def test_claims_lists_them_and_cites_their_source(package):
    shown = python(package, *COMMAND, "claims", "--json")
    for key in (
        "limit/SpreadTarget/IsotropicFeatures/some-of-the-inputs",
        "exact/SpreadTarget/IsotropicFeatures/some-of-the-inputs",
        "limit/QuadraticTarget/NeuralTangent/odd-activations",
    ):
        assert shown.count(f'"{key}"') == 1
    assert "@misc{me2026spread," in python(package, *COMMAND, "claims", "limit/SpreadTarget")


def test_the_verbs_compute_them(package):
    script = """
import lazyscope as ls
from my_package.problem import SpreadTarget
target = ls.QuadraticTarget([2.0, 1.0])
print(ls.limit(SpreadTarget(50), ls.IsotropicFeatures(), rho=[0.5, 2.0]).risk.values)
print(ls.exact(SpreadTarget(50), ls.IsotropicFeatures(), width=25, draws=9).rho.item())
print(ls.limit(target, ls.NeuralTangent("tanh"), rho=0.5).risk.item())
print(ls.limit(target, ls.NeuralTangent(), rho=0.5).theorem)
print(ls.exact(target, ls.RandomFeatures("bump"), width=2).regime)
"""
    assert python(package, "-c", script).splitlines() == ["[0.5 0. ]", "0.5", "1.0", "Theorem 2", "RF, σ = bump"]


def test_the_command_line_knows_the_theorem_and_the_activation(package):
    odd = python(package, *COMMAND, "limit", "quadratic", "--d", "20", "--regime", "nt", "--activation", "erf")
    assert "parity of the features" in odd
    assert "1.00000" in odd
    bump = ("exact", "quadratic", "--d", "8", "--width", "4", "--regime", "rf", "--activation", "bump")
    assert "σ = bump" in python(package, *COMMAND, *bump)


def test_the_problem_is_a_command_with_the_options_that_it_declares(package):
    assert "spread" in python(package, *COMMAND, "limit", "--help")
    shown = python(package, *COMMAND, "limit", "spread", "--d", "50", "--rho", "0.5")
    assert "linear target in a random direction, d = 50" in shown
    assert "law of large numbers" in shown
    assert "0.50000" in shown


def test_they_keep_the_contract_by_the_test_of_the_page(package):
    # its own folder, so that the settings of this repository are not its
    done = python(package, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(package), "tests")
    assert "4 passed" in done


def test_the_experiment_is_a_figure_of_the_command_line(package, tmp_path):
    listed = python(package, *COMMAND, "figure", "--list", folder=tmp_path)
    assert "spread-out" in listed and "The risk on N of d inputs against its limit" in listed
    said = python(package, *COMMAND, "figure", "spread-out", "--workers", "1", "--out", "out", folder=tmp_path)
    assert "The distance falls from" in said
    assert {path.suffix for path in (tmp_path / "out").iterdir()} >= {".png", ".pdf", ".csv", ".nc", ".json", ".sqlite"}

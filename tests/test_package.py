"""What people install: a wheel and an sdist that work in an empty environment, and metadata that say what is true."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

import lazyscope

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MEGABYTE = 1024 * 1024


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), text=True, encoding="utf-8", capture_output=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both, with the build back end of this environment: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_wheel_is_small_and_has_every_file_of_the_package(built):
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source)) for path in (source / "lazyscope").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert wanted <= names
    assert {name.split("/")[0] for name in names - wanted} == {f"lazyscope-{lazyscope.__version__}.dist-info"}
    assert built["wheel"].stat().st_size < 2 * MEGABYTE
    assert f"Version: {lazyscope.__version__}\n" in metadata and "License-Expression: MIT\n" in metadata


def test_the_sdist_has_what_it_takes_to_test_and_to_document(built):
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CITATION.cff", "Makefile", "constraints.txt", "docs/conf.py"} <= names
    assert "tests/test_package.py" in names and not any(name.startswith((".venv", "out/")) for name in names)


def test_one_version_everywhere():
    released = re.findall(r"^## \[(\d[^]]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert released[0] == cited[1] == lazyscope.__version__


def test_the_oldest_versions_are_those_that_are_allowed():
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(one for name, extra in extras.items() if name != "all" for one in extra)]
    bounds = dict(requirement.split(">=") for requirement in asked)
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert pins.keys() >= bounds.keys()  # and what these need themselves
    assert all(re.fullmatch(rf"{re.escape(bound)}(\.0)*", pins[name]) for name, bound in bounds.items()), pins


def test_every_extra_that_a_message_or_a_page_names_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {name for page in pages for name in re.findall(r"lazyscope\[([a-z]+)\]", page.read_text(encoding="utf-8"))}
    assert named and named <= PROJECT["optional-dependencies"].keys()


# -- in empty environments (minutes, and an index of packages) -------------------------------------------------

WITHOUT = {
    "dask": "from lazyscope.cli import main; main(['sweep', 'run', 'p.toml', '--backend', 'dask', '--address', 'h:1'])",
    "parquet": "from lazyscope.cli import main; main(['forecast', 't.parquet', '--target', 'y'])",
    "jax": "import lazyscope as ls; ls.lens((lambda p, x: x @ p, [1.0]), [[1.0]], [1.0])",
}


def commands_of(page):
    spec = importlib.util.spec_from_file_location("shown_commands", ROOT / "docs" / "test_commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda folder, programs: module.check(
        module.COMMANDS[page], lambda command: module.by_shell(command, folder, programs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_an_empty_environment_can_do_what_the_readme_says(kind, built, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", built[kind], env=environment)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "README.md").write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    commands_of("README.md")(folder, programs)
    flags = ("-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS")
    run(programs / "python", "-m", "doctest", *flags, "README.md", cwd=folder, env=environment)
    printed = run(programs / "lazyscope", "limit", "quadratic", "--rho", "0.5", cwd=folder, env=environment)
    assert re.search(r"0\.5 +225 +0\.83\d+ +0\.37\d+ +0\.03\d+", printed), printed

    page = subprocess.Popen(
        [programs / "lazyscope", "explore", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
    )  # fmt: skip
    try:
        address = page.stdout.readline().strip()
        with urlopen(address) as answer:
            assert b"lazyscope" in answer.read()
        with urlopen(address + "api/limit/quadratic") as answer:
            assert json.load(answer)["lines"]
    finally:
        page.terminate()
        page.wait(60)
        page.stdout.close()

    (folder / "p.toml").write_text('problem = "quadratic"\nregime = "rf"\nfidelity = "exact"\nwidth = 5\n')
    (folder / "t.parquet").write_bytes(b"PAR1")
    for extra, code in WITHOUT.items():
        said = subprocess.run(
            [programs / "python", "-c", code], cwd=folder, env=environment, text=True, capture_output=True, check=False
        )
        assert said.returncode and f"lazyscope[{extra}]" in said.stderr.strip().splitlines()[-1], said.stderr

#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.5"]
# ///

"""Sessions for those who have nox: `nox` lints and tests, `nox -l` lists the rest. `make` needs Python alone."""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)  # those of the classifiers
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a worker of pytest is on every core already


def groups(*names: str) -> list[str]:
    """Return the requirements of some of the dependency groups."""
    return list(nox.project.dependency_groups(PROJECT, *names))


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff and mypy, with the versions that the project pins."""
    session.install("--constraint", "constraints.txt", "--editable", ".[all]", *groups("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests with the newest versions of all dependencies; arguments after -- go to pytest."""
    session.install("--editable", ".[all]", *groups("test"))
    session.run("python", "-m", "pytest", "--numprocesses", "auto", *session.posargs, env=ONE_THREAD)


@nox.session(python=PYTHONS[0], default=False)
def oldest(session: nox.Session) -> None:
    """The tests with the oldest versions of all dependencies that pyproject.toml allows."""
    session.install("--constraint", "constraints-oldest.txt", "--editable", ".[all]", *groups("test"))
    session.run("python", "-m", "pytest", "--numprocesses", "auto", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation; warnings are errors."""
    session.install("--constraint", "constraints.txt", "--editable", ".[torch]", *groups("docs"))
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-b", "html", "docs", "docs/_build")
    session.run("python", "docs/making/links.py", "docs/_build")


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Wheel and sdist in dist/, each installed into an empty environment and tried with the README's commands."""
    session.install(*groups("test"))
    session.install("--editable", ".")
    session.run("python", "-m", "pytest", "tests/test_package.py", "-m", "slow or not slow")


if __name__ == "__main__":
    nox.main()

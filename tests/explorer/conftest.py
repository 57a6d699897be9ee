"""A client of the API, a server of its own process, a browser, and states that stand for all."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lazyscope.explorer.api import create_app
from lazyscope.explorer.views import VIEWS

STATES = [
    *((name, {}) for name in VIEWS),
    *((name, dict(preset)) for name, view in VIEWS.items() for preset in view.presets.values()),
    ("quadratic", {"levels": "0,1,2,5", "gamma": 0.35, "activation": "relu", "d": 50, "rho_max": 4.0}),
    ("quadratic", {"gamma": 1.0, "activation": "gelu", "d": 33}),
    ("quadratic", {"levels": "paper,0.05,0.2,0.35,0.6,0.85,1.15,1.65,3", "d": 50}),
    ("mixture", {"levels": "paper,1,1,1,1.5,1.5,1.5,2,2.5", "d": 50}),
    ("directions", {"levels": "0,1,2,5", "rho": 0.6, "d": 40}),
    ("training", {"rho": 1.2, "d": 30, "time": 1.0}),
    ("training", {"target": "committee", "neurons": 3, "eta": 1.0}),
    ("rich", {"axis": "time", "scale": 100.0, "d": 30}),
    ("mixture", {"strength": 0.6, "gamma": 0.5, "activation": "relu", "d": 50}),
    ("mixture", {"levels": "1,2,1", "strength": 1.2, "d": 40}),
    ("descent", {"axis": "psi2", "best": True, "split": False, "nonlinear": 0.4, "activation": "tanh"}),
    ("degrees", {"e3": 0.3, "activation": "relu3", "d": 57, "samples": 20_000, "learnt": "width", "log": True}),
    ("degrees", {"regime": "nt", "activation": "tanh", "ridge": 0.0, "infinite": True, "learnt": "width"}),
    ("degrees", {"regime": "nt", "activation": "gelu", "width": 50}),
    ("degrees", {"e1": 0.0, "e2": 0.0, "noise": 0.0}),
    ("margin", {"axis": "psi2", "link": "probit", "activation": "erf"}),
    ("beyond", {"activation": "tanh", "alpha": 0.4, "d": 6}),
    ("data", {"data": "breast_cancer", "activation": "erf", "samples": 3000, "ridge": 0.0, "log": False}),
]


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        yield client


@contextlib.contextmanager
def explore(*options, **environment):
    """Start `lazyscope explore` on a free port; yield (process, address), and end it."""
    command = [str(Path(sys.executable).with_name("lazyscope")), "explore", "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        sys.stderr.write(process.communicate()[1])  # pytest shows it beside a failure


@pytest.fixture(scope="session")
def server():
    """A server for all tests of the page, which run in one worker (tests/conftest.py)."""
    with explore("--no-browser") as (process, address):
        yield process, address


def chromium():
    """The system's Chromium, which `make test` installs where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    assert found, "The browser tests need a Chromium on PATH: `make browser` installs one."
    return found


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()

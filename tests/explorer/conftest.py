"""A client of the API, and states that stand for all."""

import pytest
from starlette.testclient import TestClient

from lazyscope.explorer.api import create_app
from lazyscope.explorer.views import VIEWS

STATES = [
    *((name, {}) for name in VIEWS),
    *((name, dict(preset)) for name, view in VIEWS.items() for preset in view.presets.values()),
    ("quadratic", {"levels": "0,1,2,5", "gamma": 0.35, "activation": "relu", "d": 50, "rho_max": 4.0}),
    ("quadratic", {"gamma": 1.0, "activation": "gelu", "d": 33}),
    ("mixture", {"strength": 0.6, "gamma": 0.5, "activation": "relu", "d": 50}),
    ("mixture", {"levels": "1,2,1", "strength": 1.2, "d": 40}),
    ("descent", {"axis": "psi2", "best": True, "split": False, "nonlinear": 0.4, "activation": "tanh"}),
    ("margin", {"axis": "psi2", "link": "probit", "activation": "erf"}),
    ("beyond", {"activation": "tanh", "alpha": 0.4, "d": 6}),
]


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        yield client

"""The API: its answers have their documented shape, are the library's numbers, and say how to compute them again."""

import asyncio
import json
import shlex
from types import SimpleNamespace

import anyio
import numpy as np
import pytest
from click.testing import CliRunner
from starlette.exceptions import HTTPException
from starlette.requests import Request

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.explorer.api import answered, in_thread
from lazyscope.explorer.guard import LARGEST_BODY, LONGEST_QUERY
from lazyscope.explorer.schemas import Answer, DotsAnswer, ViewList
from lazyscope.explorer.views import VIEWS
from lazyscope.numerics.blas import hold_threads, threads

from .conftest import STATES


def ask(client, view, state):
    response = client.get(f"/api/limit/{view}", params={name: str(value) for name, value in state.items()})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(("view", "state"), STATES)
def test_answers_have_their_shape_and_stand_on_claims(client, view, state):
    answer = ask(client, view, state)
    Answer.model_validate(answer)
    known = {claim.key for claim in ls.claims()}
    keys = {claim["key"] for claim in answer["claims"]}
    assert keys
    assert all(key in known or key.startswith("report/") for key in keys)
    assert {line["claim"] for line in answer["lines"]} <= keys
    assert answer["arguments"] == {**VIEWS[view].state().model_dump(), **state}
    for line in answer["lines"]:
        assert len(line["x"]) == len(line["y"]) >= 2
        assert line["x"] == sorted(line["x"])
    assert answer["lines"] or state.get("what") == "samples"


@pytest.mark.parametrize(("view", "state"), [pair for pair in STATES if pair[1].get("what") != "samples"])
def test_the_python_of_an_answer_computes_its_numbers(client, view, state):
    """The verbs, with their labels and checks, against the short way that sliders take."""
    answer = ask(client, view, state)
    names = {}
    exec(answer["python"], names)
    shown = {line["name"]: line for line in answer["lines"]}
    if "lines" in names:
        found = {}
        for name, result in names["lines"].items():
            label = PIECES.get(name, name)
            found[label] = result if isinstance(result, np.ndarray) else result.risk.values
    else:
        line = names["line"]
        found = {shown_name: line[name].values for name, shown_name in VARIABLES.items() if shown_name in shown}
        if "separable" in line:
            found["test error"] = line.error.values[line.separable.values.astype(bool)]
    assert found
    for name, values in found.items():
        expected = [np.nan if value is None else value for value in shown[name]["y"]]
        finite = np.where(np.isfinite(values), values, np.nan)
        np.testing.assert_allclose(expected, finite, rtol=1e-10, atol=1e-13, err_msg=name)


PIECES = {
    "linear_plain": "linear piece",
    "linear": "linear piece, random signs",
    "quadratic": "quadratic piece",
}
VARIABLES = {
    "risk": "risk",
    "bias": "bias",
    "variance": "variance",
    "train": "training error",
    "margin": "margin",
}

COMMANDS = [
    ("quadratic", {"levels": "0,1,2,5", "gamma": 0.35, "activation": "relu", "d": 50}, "RF"),
    ("quadratic", {}, "NN"),
    ("mixture", {"strength": 0.6, "gamma": 1.0, "d": 50}, "Bayes"),
    ("descent", {"noise": 0.3}, "risk"),
    ("margin", {"psi2": 1.0}, "margin"),
    ("degrees", {"e3": 0.1, "activation": "relu2", "ridge": 0.1}, "risk against N"),
    ("degrees", {"regime": "nt", "infinite": True}, "risk against n"),
    ("data", {"ridge": 0.5, "samples": 90}, "against N"),
]


def output(command):
    """What a command line of an answer prints last, run in this process: only `python -c` and `lazyscope` occur."""
    printed = ""
    for words in map(shlex.split, command.split(" && ")):
        if words[:2] == ["python", "-c"]:
            exec(words[2], {})
            continue
        assert words[0] == "lazyscope"
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output
        printed = done.stdout
    return printed


@pytest.mark.parametrize(("view", "state", "name"), COMMANDS)
def test_the_command_of_an_answer_prints_its_numbers(client, view, state, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = ask(client, view, state)
    document = json.loads(output(answer["command"] + " --json"))
    line = next(line for line in answer["lines"] if line["name"] == name)
    regime = next((one for one in document["results"] if one["regime"] == name), document["results"][0])
    values = np.sort(
        np.unique(
            np.ravel(regime["data"].get(name, regime["data"]["share" if view == "data" else "risk"])).astype(float)
        )
    )
    shown = np.sort(np.unique(np.array(line["y"], dtype=float)))
    np.testing.assert_allclose(shown, values, rtol=1e-10, atol=1e-13)


def test_the_schema_names_every_endpoint_and_parameter(client):
    schema = client.get("/openapi.json").json()
    for name, view in VIEWS.items():
        operation = schema["paths"][f"/api/limit/{name}"]["get"]
        assert {one["name"] for one in operation["parameters"]} == set(view.state.model_fields)
        assert all(one.get("description") for one in operation["parameters"])
        assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Answer")
    assert {"/api/simulate", "/api/jobs/{name}", "/api/jobs/{name}/events", "/api/views"} <= set(schema["paths"])
    assert "/api/exact/quadratic" in schema["paths"]


def test_views_describe_controls_that_their_states_accept(client):
    listed = ViewList.model_validate(client.get("/api/views").json())
    assert [view.name for view in listed.views] == [
        "quadratic",
        "directions",
        "mixture",
        "training",
        "rich",
        "descent",
        "degrees",
        "margin",
        "beyond",
        "data",
    ]
    for view in listed.views:
        state = VIEWS[view.name].state
        assert view.text.count(". ") + 1 == 2, f"{view.name} explains itself in two sentences"
        assert {control.name for control in view.controls} == set(state.model_fields)
        for control in view.controls:
            for value in (control.low, control.high, control.default, *(control.choices or ())):
                if value is not None and control.kind != "levels":
                    kind = type(control.default)
                    state(**{control.name: kind(value)})
        for preset in view.presets:
            state(**preset.state)


BAD = [
    ("limit/quadratic", {"activation": "__import__('os')"}, "activation"),
    ("limit/quadratic", {"levels": "/etc/passwd"}, "levels"),
    ("limit/quadratic", {"levels": "0,0"}, "non-zero"),
    ("limit/quadratic", {"d": "1000000"}, "d"),
    ("limit/quadratic", {"gamma": "nan"}, "gamma"),
    ("limit/quadratic", {"nonsense": "1"}, "nonsense"),
    ("limit/mixture", {"levels": "9,9", "d": "20"}, "positive definite"),
    ("limit/descent", {"activation": "square"}, "b₁"),
    ("limit/descent", {"ridge": "-1"}, "ridge"),
    ("limit/degrees", {"e2": "1.5"}, "e2"),
    ("limit/degrees", {"d": "30.5"}, "d"),
    ("limit/degrees", {"regime": "nt", "activation": "sign"}, "derivative"),
    ("limit/margin", {"link": "callable"}, "link"),
    ("limit/beyond", {"activation": "relu"}, "derivative"),
    ("limit/data", {"data": "/etc/passwd"}, "data"),
    ("limit/data", {"data": "0123456789abcdef"}, "Choose its file again"),
    ("limit/data", {"target": "nonsense"}, "name a column"),
    ("limit/data", {"ridge": "101"}, "ridge"),
    ("limit/quadratic", {"levels": "paper,1,2"}, "8 numbers"),
    ("limit/training", {"time": "0"}, "time"),
    ("limit/training", {"levels": "-1,1"}, "B ⪰ 0"),
    ("limit/rich", {"scale": "0"}, "scale"),
]


@pytest.mark.parametrize(("path", "query", "word"), BAD)
def test_what_no_view_accepts_is_refused_in_one_line(client, path, query, word):
    response = client.get(f"/api/{path}", params=query)
    assert response.status_code == 422
    (message,) = response.json().values()
    assert word in message
    assert "\n" not in message and "pattern" not in message


def test_only_this_servers_own_page_may_ask(client):
    good = "/api/limit/beyond"
    assert client.get(good, headers={"host": "lazyscope.example:8765"}).status_code == 403
    assert client.get(good, headers={"host": "[::1]:8765"}).status_code == 200
    assert client.get(good, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get(good, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get(good, headers={"origin": "http://127.0.0.1"}).status_code == 200
    assert client.post("/api/simulate", content=b"{}", headers={"content-type": "text/plain"}).status_code == 422


def test_sizes_of_requests_are_bounded(client):
    assert client.get("/api/limit/beyond?x=" + "1" * LONGEST_QUERY).status_code == 414
    assert client.post("/api/simulate", content=b" " * (LARGEST_BODY + 1)).status_code == 413
    endless = (b" " * 1000 for _ in range(1000))  # without a length beforehand
    assert client.post("/api/simulate", content=endless).status_code == 413


def test_answers_allow_nothing_from_elsewhere(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    sources = {word for part in policy.split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "'self'", "'unsafe-inline'", "data:", "blob:"}
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert scripts.split() == ["script-src", "'self'"]
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404  # they load from other hosts


@pytest.mark.parametrize(
    "path", ["/static/../api.py", "/static/%2e%2e/api.py", "/static//etc/passwd", "/static/index.html"]
)
def test_no_path_leaves_the_files_of_the_page(client, path):
    assert client.get(path).status_code == 404


def test_exact_dots_are_those_of_the_library(client):
    response = client.get("/api/exact/mixture", params={"d": 30, "draws": 3, "rho_max": 1.0, "seed": 5})
    answer = DotsAnswer.model_validate(response.json())
    mixture = ls.GaussianMixture.three_level(30, seed=0)
    for dots in answer.dots:
        regime = {"RF": ls.RandomFeatures, "NT": ls.NeuralTangent, "NN": ls.Trained}[dots.name]()
        width = round(dots.x[0] * 30)
        expected = ls.exact(mixture, regime, width=width, draws=1 if dots.name == "NN" else 3, seed=5)
        assert dots.y[0] == pytest.approx(float(expected.risk), rel=1e-9, abs=1e-12)
        assert dots.claim.key == expected.attrs["claim"]
    assert {dots.name for dots in answer.dots} == {"RF", "NT", "NN"}
    assert shlex.split(answer.command)[:3] == ["lazyscope", "exact", "mixture"]


def test_a_state_that_nobody_waits_for_is_not_computed():
    """A slider in motion leaves requests behind, which would be computed before the one that it waits for."""
    computed = []

    async def ask(leaves):
        words = ["http.request", *(["http.disconnect"] if leaves else [])]

        async def receive():
            return {"type": words.pop(0)} if words else await asyncio.Future()

        loading = asyncio.get_running_loop().create_future()
        loading.set_result(None)
        state = SimpleNamespace(loading=loading, limiter=anyio.CapacityLimiter(1))
        request = Request({"type": "http", "app": SimpleNamespace(state=state)}, receive)
        await in_thread(request, VIEWS["beyond"], computed.append, leaves)

    asyncio.run(ask(False))
    with pytest.raises(HTTPException):
        asyncio.run(ask(True))
    assert computed == [False]


def test_lines_are_computed_on_one_thread():
    try:
        hold_threads(2)
        answered(VIEWS["beyond"], VIEWS["beyond"].state())
        assert threads() == 1
    finally:
        hold_threads(None)

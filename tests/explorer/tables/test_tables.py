"""A user's own file: what is a table is forecast, what is none is refused in a line, and nothing is kept."""

import asyncio
import io
import os
import pickle
import signal
import threading
import urllib.request
import zipfile

import numpy as np
import psutil
import pytest

import lazyscope as ls
from lazyscope.errors import LazyscopeError
from lazyscope.explorer.guard import LARGEST_TABLE, Guard
from lazyscope.explorer.schemas import Answer, TableRecord
from lazyscope.explorer.tables import reading
from lazyscope.explorer.tables.process import Reader
from lazyscope.explorer.tables.reading import Source
from lazyscope.explorer.tables.shelf import SHELF, Shelf
from lazyscope.explorer.views import VIEWS
from lazyscope.lenses.data.table import describe, example, read
from lazyscope.lenses.forecast.held_out import held_out
from lazyscope.lenses.forecast.of_table import forecast_table

from ..conftest import explore  # noqa: TID252 (tests are no package that could be named)

BINARY = {"content-type": "application/octet-stream"}


def house(rows=240, seed=0):
    """A table with numbers, a category, free text, and a target that is no last column."""
    rng = np.random.default_rng(seed)
    rooms, age = rng.standard_normal((2, rows))
    price = np.tanh(rooms) + 0.3 * age * rooms + 0.3 * rng.standard_normal(rows)
    columns = zip(rooms, age, price, range(rows), strict=True)
    lines = [f"{x:.6f},{z:.6f},{y:.6f},{'ab'[k % 2]},remark number {k}" for x, z, y, k in columns]
    return "\n".join(["rooms,age,price,town,remark", *lines, ""]).encode()


def archive(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def send(client, name, content, **headers):
    return client.post("/api/tables", params={"name": name}, content=content, headers={**BINARY, **headers})


def refusal(response, status=422):
    assert response.status_code == status, response.text
    (line,) = response.json().values()
    assert "\n" not in line
    return line


def test_a_file_is_forecast_and_named_by_its_content(client, tmp_path):
    found = TableRecord.model_validate(send(client, "house.csv", house()).json())
    assert (found.name, found.rows, found.target) == ("house.csv", 240, "town")  # the last that is no free text
    assert found.columns == ["rooms", "age", "price", "town", "remark"]
    assert send(client, "house.csv", house()).json()["data"] == found.data
    assert send(client, "house.csv", house(seed=1)).json()["data"] != found.data
    asked = {"data": found.data, "target": "price", "ridge": 0.3, "samples": 100, "width": 100}
    answer = client.get("/api/limit/data", params=asked).json()
    Answer.model_validate(answer)
    assert answer["table"] == {**found.model_dump(), "target": "price"}
    file = tmp_path / "house.csv"
    file.write_bytes(house())
    table = describe(read(file), "price", drop=["remark"])
    expected = forecast_table(
        table, ls.RandomFeatures("relu"), samples=[100, 240, 2400], width=100, ridge=0.3, rows=reading.MOST_ROWS
    ).dataset
    lines = {line["name"]: line for line in answer["lines"]}
    known, farther = lines["against n"], lines["beyond the rows"]
    assert (known["dash"], farther["dash"]) == ("solid", "dash")
    assert known["x"][-1] == farther["x"][0] == 240.0 and farther["x"][-1] == 2400.0
    shown = [
        lines["against N"]["y"][lines["against N"]["x"].index(100.0)],
        known["y"][-1],
        farther["y"][-1],
    ]
    np.testing.assert_allclose(shown, expected.share.values, rtol=1e-9)
    np.testing.assert_allclose(known["high"][-1], expected.high[1] / expected.baseline, rtol=1e-9)
    assert np.all(np.array(known["low"]) < known["y"]) and np.all(np.array(known["high"]) > known["y"])
    assert "remark" in next(note["message"] for note in answer["notes"] if note["about"] == "The table")
    assert "lazyscope forecast house.csv --target price --drop remark" in answer["command"]
    assert "describe(read('house.csv'), 'price', drop=['remark'])" in answer["python"]
    assert answer["reading"].startswith("At n = 100, N = 100, λ = 0.3: ")


def test_an_archive_of_arrays_is_a_table_too(client):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    found = send(client, "mine.npz", archive(X=X, y=X @ [1.0, -1.0, 0.5] + X[:, 0] * X[:, 1])).json()
    assert (found["columns"], found["target"]) == (["X_0", "X_1", "X_2", "y"], "y")
    answer = client.get("/api/limit/data", params={"data": found["data"], "samples": 90, "ridge": 0.01}).json()
    assert answer["lines"][0]["x"][-1] == 120.0
    few = send(client, "few.npz", archive(X=X[:60], y=X[:60, 0] ** 2)).json()["data"]
    answer = client.get("/api/limit/data", params={"data": few, "samples": 90}).json()
    assert [line["name"] for line in answer["lines"]] == [
        "against n",
        "against N",
    ]  # too few to look beyond
    assert {"about": "Rows n", "message": "Shown at 60, all rows: too few to look beyond them."} in answer["notes"]


class Trap:
    """Whoever unpickles it knows."""

    opened = False

    def __reduce__(self):
        return setattr, (Trap, "opened", True)


def bomb():
    """An archive of a few kilobytes that says that it holds 8 TB."""
    content, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("y.npy", header.getvalue() + bytes(10**6))
    return content.getvalue()


def broken():
    """An archive whose bytes are not those that were packed."""
    content = bytearray(archive(x=np.arange(300.0), y=np.arange(300.0)))
    content[400] ^= 255
    return bytes(content)


REFUSED = [
    ("notes.txt", b"Dear diary,\n", "must end in .csv, .tsv, .npz"),
    ("notes.csv", b"Dear diary.\nNothing today.\n", "at least two columns"),
    ("empty.csv", b"", "must hold a table"),
    ("model.pkl", pickle.dumps(Trap()), "must end in"),
    ("model.csv", pickle.dumps({"x": bytes(range(256))}), "UTF-8"),
    ("model.npz", pickle.dumps(Trap()), "archive of arrays"),
    ("objects.npz", archive(x=np.array([Trap(), 1], dtype=object), y=np.arange(2.0)), "Python objects"),
    ("other.npz", b"PK\x05\x06" + bytes(18), "table"),
    ("broken.npz", broken(), "Got"),
    ("bomb.npz", bomb(), "at most 200,000,000 bytes"),
    ("wide.csv", b"," * 6000 + b"\n1,2\n", "at most 5,000 columns"),
    ("wide.npz", archive(x=np.zeros((2, 6000))), "at most 5,000 columns"),
    ("deep.npz", archive(x=np.zeros((4, 2, 2)), y=np.zeros(4)), "one or two dimensions"),
    ("../../etc/passwd", b"root:x:0:0\n", "must end in"),
]


@pytest.mark.parametrize(("name", "content", "words"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_what_is_no_table_is_refused_in_one_line_and_leaves_nothing(client, name, content, words):
    before = kept()
    line = refusal(send(client, name, content))
    assert words in line
    assert "/tmp" not in line and str(SHELF.folder) not in line
    assert not Trap.opened
    assert kept() == before


def kept():
    return set() if SHELF.folder is None else {place.name for place in SHELF.folder.iterdir()}


def test_a_file_that_is_too_large_is_refused_before_it_is_read(client):
    def never():
        raise AssertionError("it was read")
        yield b""

    line = refusal(send(client, "large.csv", never(), **{"content-length": "200000000"}), 413)
    assert line == "A table must have at most 20 MB. Got 200.0 MB instead."
    assert send(client, "large.csv", iter([b"a,b\n"])).status_code == 411  # who does not say how much
    assert LARGEST_TABLE == 20_000_000


def test_two_files_at_once_are_let_in_and_the_third_waits():
    async def scenario():
        arriving, said = asyncio.Event(), []

        async def app(scope, receive, send):
            await receive()
            await send({"type": "http.response.start", "status": 201, "headers": []})

        async def receive():
            await arriving.wait()
            return {"type": "http.request", "body": b"a,b", "more_body": False}

        async def send(message):
            said.append(message.get("status"))

        headers = [(b"host", b"localhost"), (b"content-length", b"3")]
        scope = {"type": "http", "method": "POST", "path": "/api/tables", "query_string": b"", "headers": headers}
        guard = Guard(app)
        waiting = [asyncio.create_task(guard(dict(scope), receive, send)) for _ in range(2)]
        await asyncio.sleep(0)
        await guard(dict(scope), receive, send)
        assert [one for one in said if one] == [429]
        arriving.set()
        await asyncio.gather(*waiting)
        await guard(dict(scope), receive, send)
        assert [one for one in said if one] == [429, 201, 201, 201]

    asyncio.run(scenario())


def test_only_this_servers_own_page_may_send_a_file(client):
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        assert send(client, "house.csv", house(), **headers).status_code == 403
    assert client.post("/api/tables", content=house(), headers=BINARY).status_code == 422  # without a name


def test_a_table_that_cannot_be_forecast_is_refused_in_one_line(client):
    key = send(client, "house.csv", house()).json()["data"]

    def ask(**asked):
        return refusal(client.get("/api/limit/data", params={"data": key, **asked}))

    assert "at most 50 classes" in ask(target="remark")
    assert "must name a column" in ask(target="nonsense")
    few = send(client, "few.csv", house(12)).json()["data"]
    assert "at least 20 rows" in ask(data=few, target="price")
    far = np.random.default_rng(0).standard_normal((2, 99)) * 1e300
    assert "left what float64 holds" in ask(data=send(client, "far.npz", archive(x=far[0], y=far[1])).json()["data"])
    assert "not in this server's memory" in ask(data="0123456789abcdef")
    assert "data" in ask(data="../../../../etc")
    assert "width = inf" not in client.get("/api/limit/data", params={"regime": "nt", "width": 3}).text


def test_a_few_files_are_kept_and_all_are_gone_in_the_end():
    shelf = Shelf()
    keys = [shelf.add("house.csv", house(seed=seed))[0] for seed in range(6)]
    folder = shelf.folder
    assert {place.name for place in folder.iterdir()} == set(keys[-4:])
    assert folder.stat().st_mode & 0o077 == 0
    regime = ls.RandomFeatures("relu")
    first = shelf.known(keys[-1], "price", regime)
    assert shelf.known(keys[-1], "price", ls.RandomFeatures("relu")) is first
    for name in ("tanh", "erf", "sign", "relu2", "abs", "step"):
        shelf.known(keys[-1], "price", ls.RandomFeatures(name))
    assert len(shelf._pools) == 6 and shelf.known(keys[-1], "price", regime) is not first
    with pytest.raises(LazyscopeError, match="Choose its file again"):
        shelf.known(keys[0], "price", regime)
    shelf.close()
    assert not folder.exists()


def test_of_a_long_table_some_rows_make_the_kernel(monkeypatch):
    assert reading.MOST_ROWS == 2500
    monkeypatch.setattr(reading, "MOST_ROWS", 100)
    known = reading.known(Source("diabetes"), "", ls.RandomFeatures("relu"))
    assert (known.forecaster.rows, known.rows, known.far) == (100, 442, 1000)
    assert "100 of 442 rows, drawn at random, make the kernel matrix" in known.notes


def test_the_process_that_reads_is_replaced_when_it_dies_and_ended_when_it_stalls():
    reader = Reader()
    try:
        assert reader("look", Source("diabetes")).rows == 442
        with pytest.raises(LazyscopeError, match="Choose its file again"):
            reader("look", Source("gone.csv", "/nowhere/gone.csv"))
        first = reader._process
        first.kill()
        first.wait()
        assert reader("look", Source("diabetes")).rows == 442
        assert reader._process is not first
        reader.seconds = 0.1
        os.kill(reader._process.pid, signal.SIGSTOP)  # it stalls, however fast the machine is
        with pytest.raises(LazyscopeError, match="process that reads tables ended"):
            reader("look", Source("diabetes"))
    finally:
        reader.close()
    with pytest.raises(LazyscopeError, match="ending"):
        reader("look", Source("diabetes"))


def test_the_process_outlives_the_thread_that_asked_first():
    """On Linux a child that ends with its parent ends with the parent's thread: a server's threads come and go."""
    reader = Reader()
    try:
        first = threading.Thread(target=reader, args=("look", Source("diabetes")))
        first.start()
        first.join()
        process = reader._process
        assert reader("look", Source("diabetes")).rows == 442 and reader._process is process
    finally:
        reader.close()


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGKILL])
def test_the_process_ends_with_its_server_and_files_with_one_that_ends_itself(signal_, tmp_path):
    with explore("--no-browser", TMPDIR=str(tmp_path)) as (process, address):
        request = urllib.request.Request(f"{address}api/tables?name=house.csv", house(), BINARY)
        with urllib.request.urlopen(request, timeout=120) as response:
            assert response.status == 201
        ((folder,), children) = tmp_path.glob("lazyscope-tables-*"), psutil.Process(process.pid).children()
        assert children
        process.send_signal(signal_)
        process.wait(10)
        assert not psutil.wait_procs(children, timeout=60.0)[1]
        assert folder.exists() == (signal_ == signal.SIGKILL)


def test_dots_are_fits_on_other_rows_and_lie_on_the_lines():
    """Of eight draws on 442 rows: test errors scatter by some 3 %, and the forecast itself by 7 % (its band)."""
    view = VIEWS["data"]
    state = view.state(ridge=0.1, samples=200, width=100, draws=8)
    answer, plan = view.lines(state), view.plan(state, "simulate")
    lines = {line["name"]: line for line in answer["lines"]}
    distances = []
    for task in plan.tasks:
        ((_, name, _, variable),) = task.shown
        value, stderr = task.call.values(task.call.run(), variable)
        line = lines[name]
        at = task.x(None)
        y, high = (np.interp(np.log(at), np.log(line["x"]), line[part]) for part in ("y", "high"))
        distances.append(abs(np.log(value / y)) / np.hypot(stderr / value, np.log(high / y) / 1.7))
    assert len(distances) == 5 + 8  # n = 10 … 200, N = 10 … 2000
    assert np.median(distances) < 1.5 and max(distances) < 4.0, distances


def test_the_python_of_dots_is_what_the_worker_runs():
    view = VIEWS["data"]
    for asked in ({"samples": 50, "width": 20, "draws": 2}, {"regime": "nt", "best": True, "draws": 2}):
        plan = view.plan(view.state(**asked), "simulate")
        names = {}
        exec(plan.python, names)
        for task in plan.tasks[:3]:
            np.testing.assert_array_equal(names["dots"][task.name], task.call.run())


def test_held_out_fits_leave_rows_to_test_on():
    table = example("diabetes")
    with pytest.raises(LazyscopeError, match="leave rows to test on"):
        held_out(table, ls.RandomFeatures("relu"), samples=442, width=10, ridge=0.1)
    with pytest.raises(LazyscopeError, match="be inf for the tangent kernel"):
        held_out(table, ls.NeuralTangent("relu"), samples=100, width=10, ridge=0.1)
    wide = held_out(table, ls.RandomFeatures("relu"), samples=100, width=20_000, ridge=0.1, draws=3)
    kernel = held_out(table, ls.RandomFeatures("relu"), samples=100, width=np.inf, ridge=0.1, draws=3)
    np.testing.assert_allclose(wide, kernel, rtol=0.02)  # the same rows; features fluctuate by N^−½ around the kernel

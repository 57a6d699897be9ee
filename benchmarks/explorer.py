"""What it costs to open the explorer, and to move a slider in it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection
from itertools import count
from pathlib import Path

from benchmarks.harness import Bound, Figure, interleaved

START, SLIDER, KEPT, AT_MOST, UPLOAD = Bound(1.25), Bound(8.0), Bound(1.0), Bound(1.0), Bound(3.0)
KEPT_SECONDS = 3e-3  # a delay of the network's making is the same on every machine
MOVED_SECONDS = 0.1  # what a hand takes for at once
# An application of one route, and the imports that the library's verbs need.
BARE = """
import sys, uvicorn
from fastapi import FastAPI
import lazyscope.verbs, xarray, scipy.special
app = FastAPI()
values = [0.1 * i for i in range(240)]
@app.get("/")
async def index(): return "ready"
@app.get("/numbers")
async def numbers(): return values
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


def explorer_start(repeats: int = 7) -> Iterable[Figure]:
    """From the start of the process to the first page, polled every 5 ms."""
    seconds = interleaved(
        {"explorer": lambda: _until_ready(*_explore()), "bare": lambda: _until_ready(*_bare())}, repeats
    )
    against = "bare FastAPI app that imports the verbs"
    yield Figure("lazyscope explore, first page", seconds["explorer"], seconds["bare"], against, START)


def explorer_slider(repeats: int = 200) -> Iterable[Figure]:
    """An answer that is not remembered, over one connection, against a bare app that sends as many numbers."""
    with _running(*_explore()) as explorer, _running(*_bare()) as bare:
        for view, name in (("quadratic", "gamma"), ("descent", "noise"), ("margin", "signal")):
            places = count(1)
            asked = {
                "explorer": lambda view=view, name=name, places=places: _get(
                    explorer, f"/api/limit/{view}?{name}={next(places) * 1e-3:.3f}"
                ),
                "bare": lambda: _get(bare, "/numbers"),
            }
            seconds = interleaved(asked, repeats)
            against = "bare FastAPI app, 240 numbers"
            yield Figure(f"slider of {view}, answer", seconds["explorer"], seconds["bare"], against, SLIDER)


def explorer_kept_alive(repeats: int = 300) -> Iterable[Figure]:
    """A remembered answer over a connection that is kept, as browsers do, against one that is opened for it."""
    path = "/api/limit/quadratic"
    with _running(*_explore()) as port, contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=30)) as kept:

        def ask() -> None:
            kept.request("GET", path)
            kept.getresponse().read()

        seconds = interleaved({"kept": ask, "new": lambda: _get(port, path)}, repeats)
    yield Figure("request, connection kept", seconds["kept"], seconds["new"], "the same, new connection", KEPT)
    yield Figure("request, connection kept", seconds["kept"], KEPT_SECONDS, "the bound", AT_MOST)


def explorer_upload(repeats: int = 3) -> Iterable[Figure]:
    """A file of 2,500 rows, from its first byte to its curves, against one eigendecomposition; then its sliders."""
    import numpy as np
    from scipy.linalg import eigh

    P, turns, places = 2500, count(), count(1)
    K = np.random.default_rng(0).standard_normal((P, P))
    K = K @ K.T / P
    with _running(*_explore()) as port:
        shown: dict[str, str] = {}

        def upload() -> None:
            rng = np.random.default_rng(next(turns))  # another file each time
            X = rng.standard_normal((P, 20))
            table = np.column_stack([X, X[:, 0] * X[:, 1] + np.tanh(X[:, 2]) + 0.5 * rng.standard_normal(P)])
            lines = [",".join(f"x{j}" for j in range(21)), *(",".join(f"{x:.6f}" for x in row) for row in table)]
            shown["data"] = _sent(port, "\n".join(lines).encode())
            _get(port, f"/api/limit/data?data={shown['data']}")

        pieces = {"upload": upload, "eigh": lambda: eigh(K.T, check_finite=False, driver="evd")}
        seconds = interleaved(pieces, repeats)
        against = "one eigendecomposition, 2,500 × 2,500"
        yield Figure("a file of 2,500 rows, first curve", seconds["upload"], seconds["eigh"], against, UPLOAD)

        def move() -> None:
            _get(port, f"/api/limit/data?data={shown['data']}&ridge={next(places) * 1e-3:.3f}")

        seconds = interleaved({"move": move}, 50)
        yield Figure("slider of its view, answer", seconds["move"], MOVED_SECONDS, "the bound", AT_MOST)


def _sent(port: int, content: bytes) -> str:
    address = f"http://127.0.0.1:{port}/api/tables?name=table.csv"
    request = urllib.request.Request(address, content, {"Content-Type": "application/octet-stream"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return str(json.load(response)["data"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _explore() -> tuple[list[str], int]:
    port = _free_port()
    command = Path(sys.executable).with_name("lazyscope")
    return [str(command), "explore", "--no-browser", "--port", str(port)], port


def _bare() -> tuple[list[str], int]:
    port = _free_port()
    return [sys.executable, "-c", BARE, str(port)], port


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while True:
                with contextlib.suppress(OSError):
                    _get(port, "/")
                    break
                time.sleep(0.005)
            yield port
        finally:
            process.kill()


def _until_ready(command: list[str], port: int) -> None:
    with _running(command, port):
        pass


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=300) as response:
        return bytes(response.read())

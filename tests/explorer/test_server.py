"""Starting and stopping: an address that answers, one clear line for what goes wrong, nothing left behind."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from lazyscope.cli import main
from lazyscope.explorer.jobs import Bounds
from lazyscope.explorer.server import keep_compiled_code

from .conftest import explore

LAZYSCOPE = str(Path(sys.executable).with_name("lazyscope"))


def get(address, path=""):
    with urllib.request.urlopen(address + path, timeout=300) as response:
        return response.status, response.read()


def test_it_prints_its_address_on_loopback_and_ends_at_once_on_ctrl_c():
    with explore("--no-browser") as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        assert get(address)[0] == 200
        assert len(get(address, "plotly.min.js")[1]) > 1e6
        (listening,) = [c for c in psutil.Process(process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
        assert listening.laddr.ip == "127.0.0.1"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_workers_end_with_their_server_however_it_ends():
    with explore("--no-browser") as (process, address):
        order = json.dumps({"view": "quadratic", "state": {"d": 120}, "fidelities": ["simulate"]}).encode()
        request = urllib.request.Request(address + "api/simulate", order, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            events = json.load(response)["events"]
        stream = urllib.request.urlopen(address + events.lstrip("/"), timeout=60)
        while b'"total": 0' in (line := stream.readline()) or not line.startswith(b"data:"):
            pass  # until a worker is at work
        workers = psutil.Process(process.pid).children()
        assert workers
        process.kill()
        _, left = psutil.wait_procs(workers, timeout=60.0)
        assert not left
        stream.close()


def post(address, order):
    request = urllib.request.Request(address + "api/simulate", json.dumps(order).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def cancel(address, job):
    request = urllib.request.Request(address + "api/jobs/" + job["job"], method="DELETE")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["cancelled"]


def test_submitted_and_cancelled_jobs_leave_no_worker_and_no_memory():
    # soak/explorer.py has the same with a thousand
    short = {"view": "quadratic", "state": {"d": 20, "rho_max": 1.0, "draws": 2}, "fidelities": ["exact"]}
    long = {"view": "quadratic", "state": {"d": 120}, "fidelities": ["simulate"]}
    with explore("--no-browser") as (process, address):
        server = psutil.Process(process.pid)

        def memory():
            total = 0
            for one in (server, *server.children()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += one.memory_info().rss
            return total

        assert b"event: done" in get(address, post(address, short)["events"].lstrip("/"))[1]
        job = post(address, long)
        with urllib.request.urlopen(address + job["events"].lstrip("/"), timeout=60) as stream:
            while b' samples"' not in stream.readline():
                pass  # until it has drawn some: by then the worker has loaded the code of simulations, which it keeps
        cancel(address, job)  # unless that its reader has left has done so
        before = memory()
        for _ in range(5):
            jobs = [post(address, long) for _ in range(8)]
            assert len(server.children()) <= Bounds().workers
            assert all(cancel(address, job) for job in jobs)
        while len(server.children()) > 1:  # the last of them are on their way out; one stays for the next job
            time.sleep(0.05)
        assert memory() <= 1.1 * before
        assert b"event: done" in get(address, post(address, short)["events"].lstrip("/"))[1]


def test_without_a_browser_it_says_so_and_serves(tmp_path):
    with explore(PATH=str(tmp_path), DISPLAY="", WAYLAND_DISPLAY="", BROWSER="") as (process, address):
        assert get(address)[0] == 200
        process.send_signal(signal.SIGINT)
        process.wait(10)
        assert process.stderr.read() == "lazyscope: note: no browser was found. Open the address above in one.\n"


def test_a_port_in_use_is_one_clear_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [LAZYSCOPE, "explore", "--port", str(port), "--no-browser"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"must be free. Got {port}, which is in use, instead" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", "70000"), "between 0 and 65535"),
        (("--host", "no.such.host.invalid"), "an address of this machine"),
        (("--export", "/proc/nowhere/page.html"), "--export"),
        (("--export", "page.txt"), "end in .html"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(options, words):
    done = CliRunner().invoke(main, ["explore", "--no-browser", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line


def test_with_a_read_only_home_everything_works():
    with explore("--no-browser", HOME="/proc/nohome", XDG_CACHE_HOME="/proc/nocache") as (_, address):
        assert get(address)[0] == 200
        assert json.loads(get(address, "api/limit/margin")[1])["lines"]


def test_where_nothing_can_be_written_compiled_code_goes_elsewhere_and_that_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = []
    keep_compiled_code(Path("/proc/package"), Path("/proc/home"), said.append)
    (line,) = said
    assert "/proc/home is read-only" in line
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_dir()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    with pytest.raises(ValueError, match="Set NUMBA_CACHE_DIR"):
        keep_compiled_code(Path("/proc/package"), Path("/proc/home"), said.append)


def test_a_usual_port_that_is_taken_gives_way():
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # taken by somebody else already: just as well
            taken.bind(("127.0.0.1", 8765))
            taken.listen()
        command = [LAZYSCOPE, "explore", "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            address = process.stdout.readline().strip()
            assert not address.endswith(":8765/")
            assert get(address)[0] == 200
        finally:
            process.kill()
            process.communicate()

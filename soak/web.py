"""Clients of the explorer: those that move sliders, drop dots, cancel, forge, stammer and stall."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from lazyscope.explorer.views import VIEWS
from soak.tally import Tally

PATIENCE = 60.0  # seconds for an answer or an end of connection: a server that has forgotten a client, not a slow one
LONG = {"view": "quadratic", "state": {"d": 120}, "fidelities": ["simulate"]}  # minutes, unless cancelled
Answered = tuple[int, bytes]  # status and body; status 0 is a connection that was closed without a word


@dataclass
class Site:
    """The server under attack, and what is known of it."""

    host: str
    port: int
    tally: Tally
    cancelled: int = 0
    answers: dict[str, dict[str, bytes]] = field(default_factory=lambda: {name: {} for name in VIEWS})
    dots: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a request must call the server."""
        return f"{self.host}:{self.port}"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection(self.host, self.port, limit=1 << 22)

    async def send(self, request: bytes, *, end: bool = False) -> bytes:
        """Send bytes over a connection of their own and return all that comes back."""
        reader, writer = await self.open()
        try:
            with contextlib.suppress(ConnectionError):  # refused before it was all sent: the answer says so
                writer.write(request)
                await writer.drain()
                if end:
                    with contextlib.suppress(OSError):  # closed by the server meanwhile: there is nothing left to end
                        writer.write_eof()
            heard = b""
            with contextlib.suppress(ConnectionError):
                while part := await asyncio.wait_for(reader.read(1 << 16), PATIENCE):
                    heard += part
            return heard
        except TimeoutError:
            raise TimeoutError(f"{shown(request)}: no end after {PATIENCE:g} s") from None
        finally:
            writer.close()

    async def ask(self, method: str, path: str, body: Any = None) -> Answered:
        """Ask over a connection of its own."""
        return split(await self.send(self.request(method, path, body)))

    def request(self, method: str, path: str, body: Any = None, version: str = "1.0") -> bytes:
        """Return a request, well-formed."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/{version}\r\nHost: {self.name}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        return head.encode() + b"\r\n" + content


def split(heard: bytes) -> Answered:
    """Return status and body of an answer that ends with its connection."""
    if not heard:
        return 0, b""
    head, _, body = heard.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def strictly(body: bytes) -> Any:
    """Parse JSON that knows no NaN."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} in an answer")

    return json.loads(body, parse_constant=refuse)


def refused(answered: Answered) -> bool:
    """Whether it is a refusal of one line."""
    status, body = answered
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return 400 <= status < 500 and "\n" not in json.loads(body)["error"]
    return False


# -- sliders -------------------------------------------------------------------------------------------------


def some_state(view: str, rng: Random) -> dict[str, Any]:
    """Return a state of a view: most of its controls where they are, some elsewhere, now and then out of bounds."""
    state: dict[str, Any] = {}
    for control in VIEWS[view].record().controls:
        if rng.random() < 0.5:
            continue
        value: Any
        if control.kind == "choice":
            value = rng.choice(control.choices or [control.default])
        elif control.kind == "file":
            value = rng.choice(["diabetes", "breast_cancer", "0123456789abcdef"])
        elif control.kind == "column":
            value = rng.choice(["", "target", "nonsense"])
        elif control.kind == "switch":
            value = rng.random() < 0.5
        elif control.kind == "levels":
            value = rng.choice(["0,1", "1,2,5", "0,1,2,5", "3", "0,0", "", "1,x"])
        elif control.kind == "log":
            value = control.low * (control.high / control.low) ** rng.random()
        else:
            value = control.low + (control.high - control.low) * rng.random()
        if rng.random() < 0.02:
            value = rng.choice([-1, "", "nan", 1e300, "ä", None])
        if isinstance(control.default, int) and isinstance(value, float) and not isinstance(control.default, bool):
            value = round(value)
        state[control.name] = value
    return state


async def mover(site: Site, rng: Random) -> None:
    """Move a slider over a connection that is kept."""
    reader, writer = await site.open()
    try:
        for _ in range(rng.randint(5, 30)):
            view = rng.choice(list(VIEWS))
            state = some_state(view, rng)
            query = urlencode(state)
            path = f"/api/limit/{view}?{query}"
            writer.write(site.request("GET", path, version="1.1"))
            try:
                head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode("latin-1").lower()
            except (ConnectionError, asyncio.IncompleteReadError):
                return  # kept too long without a word; a new client comes
            size = next(int(line[15:]) for line in head.splitlines() if line.startswith("content-length:"))
            body = await asyncio.wait_for(reader.readexactly(size), PATIENCE)
            judge_lines(site, view, query, (int(head.split()[1]), body))
            if "connection: close" in head:
                return
            await asyncio.sleep(2.0 * rng.random())
    finally:
        writer.close()


def judge_lines(site: Site, view: str, query: str, answered: Answered) -> None:
    """Check that an answer is refused or has the arguments that were sent and numbers that can be drawn."""
    from urllib.parse import parse_qsl

    what = f"GET /api/limit/{view}?{query}: {answered[0]} {answered[1][:300]!r}"
    try:
        sent = VIEWS[view].state(**dict(parse_qsl(query, keep_blank_values=True)))
    except ValidationError:
        site.tally.check(refused(answered), what)
        return
    if answered[0] == 422:
        site.tally.check(refused(answered), what)
        return
    with site.tally.trying(what):
        if answered[0] != 200:
            raise ValueError("neither an answer nor a refusal")
        said = strictly(answered[1])
        if said["arguments"] != sent.model_dump():
            raise ValueError("the answer is to another question")
        if any(len(line["x"]) != len(line["y"]) for line in said["lines"]):
            raise ValueError("a line with more places than values")
        site.answers[view][query] = answered[1]


def same(left: Any, right: Any) -> bool:
    """Whether two JSON documents agree, numbers to nine digits: threads of the linear algebra change the last ones."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float | int):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return bool(left == right)


# -- jobs ----------------------------------------------------------------------------------------------------


async def dropper(site: Site, rng: Random) -> None:
    """Drop dots and read them to the end; the same order has the same dots each time."""
    state = {"d": rng.choice([20, 25]), "rho_max": 1.0, "draws": rng.choice([2, 3]), "seed": rng.randint(0, 2)}
    order = {"view": rng.choice(["quadratic", "mixture"]), "state": state, "fidelities": ["exact"]}
    key = json.dumps(order)
    accepted = await site.ask("POST", "/api/simulate", order)
    if accepted[0] == 429:
        site.tally.check(refused(accepted), f"POST /api/simulate {key}: {accepted}")
        await asyncio.sleep(rng.random())
        return
    with site.tally.trying(f"POST /api/simulate {key}, to its end"):
        _, heard = await site.ask("GET", strictly(accepted[1])["events"])
        events = [part.split("\ndata: ") for part in heard.decode().split("\n\n") if part.startswith("event: ")]
        if events[-1][0] != "event: done":
            raise ValueError(f"ended by {events[-1]}")
        dots = [strictly(data.encode()) for event, data in events if event == "event: dots"]
        if not dots or site.dots.setdefault(key, dots) != dots:
            raise ValueError(f"other dots than before: {dots} and {site.dots[key]}")
        site.tally.count("jobs done")


async def canceller(site: Site, rng: Random) -> None:
    """Submit up to ten long jobs, and cancel them in some way: a word, a reader that leaves, or silence."""
    what = f"POST /api/simulate {json.dumps(LONG)}, cancelled"
    jobs = []
    for _ in range(rng.randint(1, 10)):
        answered = await site.ask("POST", "/api/simulate", LONG)
        if answered[0] == 429:
            site.tally.check(refused(answered), f"{what}: {answered}")
            break
        site.tally.check(answered[0] == 202, f"{what}: {answered}")
        if answered[0] == 202:
            jobs.append(strictly(answered[1]))
    await asyncio.sleep(rng.choice([0.0, 0.0, rng.random()]))
    for job in jobs:
        if rng.random() < 0.1:
            reader, writer = await site.open()
            writer.write(site.request("GET", job["events"]))
            await asyncio.wait_for(reader.readuntil(b"event: "), PATIENCE)
            writer.close()
            site.tally.check(True, what)
        else:
            answered = await site.ask("DELETE", job["cancel"])
            # too slow to come: cancelled already, as nobody read it
            site.tally.check(answered[0] == 200, f"{what}: DELETE: {answered}")
        site.cancelled += 1


# -- what must be refused ------------------------------------------------------------------------------------


async def forger(site: Site, rng: Random) -> None:
    """Ask under another name, or from another site's page."""
    names = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1", "127.0.0.2", "0", "::1"]
    origins = ["http://evil.example", "null", f"http://{site.host}:{site.port + 1}", "https://localhost", "file://"]
    path = rng.choice(["/", "/api/views", "/api/limit/quadratic", "/openapi.json", "/static/app.js", "/nowhere"])
    method = rng.choice(["GET", "GET", "POST", "DELETE"])
    kind = rng.choice(["host", "origin", "site"])
    head = f"Host: {rng.choice(names) if kind == 'host' else site.name}\r\n"
    if kind == "origin":
        head += f"Origin: {rng.choice(origins)}\r\n"
    if kind == "site":
        path = "/api/views" if path == "/" else path
        head += "Sec-Fetch-Site: cross-site\r\n"
    request = f"{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode()
    status, body = split(await site.send(request))
    site.tally.check(status == 403, f"{request!r}: {status} {body[:200]!r}")
    await asyncio.sleep(rng.random())


def malformed(site: Site, rng: Random) -> bytes:
    """Return a request that has no right answer."""
    host = f"Host: {site.name}\r\n"
    close = f"{host}Connection: close\r\n\r\n"
    noise = bytes(rng.randrange(256) for _ in range(rng.randint(1, 300)))
    word = "".join(rng.choice("abcXYZ019%./\\?&=~{}\"'") for _ in range(rng.randint(1, 40)))
    view = rng.choice(list(VIEWS))
    bodies = [
        b"", b"{", b"null", b"[]", b'"x"', noise, b"{}" * 10000, b"[" * 5000, b'{"view": "quadratic", "state": 1}',
        b'{"view": "quadratic", "state": {"d": "60"}}', b'{"view": "quadratic", "fidelities": []}',
        b'{"view": "quadratic", "state": {"d": 1e999}}', b'{"view": "quadratic", "state": {"gamma": NaN}}',
        b'{"view": "quadratic", "state": {"d": 20}, "x": 1}', b'{"view": "none"}', b'{"view": {"view": "quadratic"}}',
    ]  # fmt: skip
    body = rng.choice(bodies)
    post = f"POST /api/simulate HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
    requests = [
        noise + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        f"GET /api/views\r\n{close}".encode(),
        f"GET /api/{word.replace('?', '')} HTTP/1.1\r\n{close}".encode(),
        f"GET /static/../{word} HTTP/1.1\r\n{close}".encode(),
        f"GET /api/views HTTP/1.1\r\nBad Header: x\r\n{close}".encode(),
        f"GET /api/views HTTP/1.1\r\nX: {'a' * 600000}\r\n{close}".encode(),
        f"GET /api/views HTTP/1.1\r\n{host}{close}".encode(),
        b"GET /api/views HTTP/1.1\r\nConnection: close\r\n\r\n",
        f"{rng.choice(['PUT', 'PATCH', 'TRACE', 'BREW', 'DELETE'])} /api/views HTTP/1.1\r\n{close}".encode(),
        f"GET /api/limit/{view}?nonsense={word.replace('&', '')} HTTP/1.1\r\n{close}".encode(),
        f"GET /api/limit/{view}?x={'1' * 3000} HTTP/1.1\r\n{close}".encode(),
        f"GET /api/jobs/{rng.randbytes(8).hex()}/events HTTP/1.1\r\n{close}".encode(),
        f"DELETE /api/jobs/{word.replace('/', '').replace('?', '') or 'x'} HTTP/1.1\r\n{close}".encode(),
        f"{post}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body,
        f"{post}Connection: close\r\nContent-Length: {rng.choice(['-1', 'x', '1e3', '1, 2', ''])}\r\n\r\n".encode()
        + body,
        f"{post}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + noise,
        f"{post}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{xxxx\r\n0\r\n\r\n".encode(),
        f"{post}Connection: close\r\nTransfer-Encoding: {word}\r\n\r\n".encode() + body,
        f"{post}Connection: close\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n".encode() + body,
    ]
    return rng.choice(requests)


def shown(request: bytes) -> str:
    """Return a request as Python writes it, the one long header of `malformed` and long bodies cut."""
    return f"{request[:600]!r}{f' and {len(request) - 600} more bytes' if len(request) > 600 else ''}"


async def stammerer(site: Site, rng: Random) -> None:
    """Send what no server can answer, and end: a refusal, or the end of the connection, is right."""
    request = malformed(site, rng)
    heard = await site.send(request, end=rng.random() < 0.3)
    with site.tally.trying(f"{shown(request)}: {heard[:200]!r}"):
        status = split(heard)[0]
        if status and not 400 <= status < 500:
            raise ValueError("no refusal")
    site.tally.count("malformed")
    await asyncio.sleep(0.5 * rng.random())


async def staller(site: Site, rng: Random) -> None:
    """Send half a request, at once or a byte now and then, and wait: the server must close."""
    whole = site.request("POST", "/api/simulate", LONG, "1.1")
    head = whole.index(b"\r\n\r\n") + 4
    half = whole[: rng.choice([0, 1, rng.randrange(head), head, rng.randrange(head, len(whole))])]
    slowly = rng.random() < 0.5
    reader, writer = await site.open()

    async def drip() -> None:
        with contextlib.suppress(ConnectionError):
            for i in range(len(half)):
                writer.write(half[i : i + 1])
                await writer.drain()
                await asyncio.sleep(0.3 + rng.random())  # so slowly that most of it is never sent

    if slowly:
        dripping = asyncio.create_task(drip())
    else:
        writer.write(half)
    what = f"{half!r}, {'a byte now and then' if slowly else 'and no more'}"
    try:
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            heard = await asyncio.wait_for(reader.read(), PATIENCE)
        site.tally.check(split(heard)[0] in (0, 408), f"{what}: {heard[:200]!r}")
        site.tally.count("stalled and closed")
    except TimeoutError:
        site.tally.check(False, f"{what}: still open after {PATIENCE:g} s")
    finally:
        if slowly:
            dripping.cancel()
        writer.close()

"""A crowd of clients that move sliders: what a lecture hall does to the server."""

import asyncio
import random
import time
from urllib.parse import urlencode, urlsplit

from lazyscope.explorer.views import VIEWS


def moves(view, rng):
    """Yield the queries of somebody who takes a slider for a while, then another."""
    state = VIEWS[view].state().model_dump()
    sliders = [c for c in VIEWS[view].record().controls if c.kind in ("linear", "log") and c.group == "theory"]
    while True:
        control = rng.choice(sliders)
        for _ in range(rng.randint(3, 8)):
            place = rng.random()
            if control.kind == "log":
                value = control.low * (control.high / control.low) ** place
            else:
                steps = round((control.high - control.low) / (control.step or 1.0) * place)
                value = control.low + steps * (control.step or 1.0)
            state[control.name] = round(value) if isinstance(control.default, int) else float(f"{value:.4g}")
            yield urlencode(state)


async def one(address, view, seed, until, pause, took, errors):
    """Keep one connection, as a browser does; a move every `pause` seconds, the next only after the answer."""
    where = urlsplit(address)
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    await asyncio.sleep(rng.random() * pause)
    try:
        for query in moves(view, rng):
            if time.monotonic() > until:
                return
            began = time.perf_counter()
            writer.write(f"GET /api/limit/{view}?{query} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
            body = await reader.readexactly(size)
            took.append(time.perf_counter() - began)
            if " 200 " not in head.splitlines()[0]:
                errors.append((view, query, body[:200]))
            await asyncio.sleep(max(0.0, pause - took[-1]))
    except (OSError, asyncio.IncompleteReadError) as error:
        errors.append((view, repr(error), b""))
    finally:
        writer.close()


def crowd(address, clients, seconds, pause=0.5):
    """Return how long every answer took, in seconds, and all that went wrong."""

    async def whole():
        took, errors = [], []
        until = time.monotonic() + seconds
        names = list(VIEWS)
        some = (one(address, names[i % len(names)], i, until, pause, took, errors) for i in range(clients))
        await asyncio.gather(*some)
        return took, errors

    return asyncio.run(whole())

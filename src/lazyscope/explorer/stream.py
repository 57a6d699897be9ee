"""Server-sent events that notice at once when their reader leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_HEARTBEAT = 10.0  # seconds: a reader behind a proxy should not take silence for the end


class EventStream(Response):
    """Sends (name, data) pairs as they come, and closes their source when the reader has gone."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[tuple[str, dict[str, Any]]]) -> None:
        self.events = events
        self.status_code, self.background = 200, None
        self.raw_headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the source ends or the reader leaves, whichever is first."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await sending
            await self.events.aclose()  # type: ignore[attr-defined]  # a generator, whose end cancels the job

    async def _send(self, send: Send) -> None:
        upcoming = asyncio.ensure_future(anext(self.events))
        try:
            while True:
                done, _ = await asyncio.wait({upcoming}, timeout=_HEARTBEAT)
                if not done:
                    await _part(send, ": still here\n\n")
                    continue
                try:
                    event, data = upcoming.result()
                except StopAsyncIteration:
                    break
                await _part(send, f"event: {event}\ndata: {json.dumps(data, allow_nan=False)}\n\n")
                upcoming = asyncio.ensure_future(anext(self.events))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            upcoming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await upcoming


async def _part(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

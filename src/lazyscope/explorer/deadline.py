"""A deadline for requests: who does not send a whole one in time is let go."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lazyscope.explorer.guard import App


class Timely(H11Protocol):
    """HTTP, where a request must arrive whole, head and body, within `seconds` of its connection or its first byte.

    uvicorn itself closes a connection that is silent after an answer, but waits forever for the rest of a request. The
    time runs from the beginning: a byte now and then does not prolong it. A whole request stops it, however long its
    answer takes.
    """

    seconds: ClassVar[float] = 20.0

    _timer: asyncio.TimerHandle | None = None
    _heard = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time."""
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when the request is complete; else start it, unless it runs already."""
        super().data_received(data)
        self._heard = True
        if self._whole:
            self._stop()
        elif self._timer is None and not self.transport.is_closing():
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _whole(self) -> bool:
        """Whether a request is being answered of which nothing more is to come."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first head, whatever its type says
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _start(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._let_go)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _let_go(self) -> None:
        """Say why, unless nothing was asked or its answer has begun, and close."""
        self._timer = None
        if self.transport.is_closing():
            return
        if self._heard and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": f"A request must arrive whole within {self.seconds:g} s."}).encode()
            head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\n" + head.encode() + body)
        self.transport.close()


def configured(app: App, protocol: type[Timely] = Timely) -> uvicorn.Config:
    """Return how an application is served: requests in time, no other protocol, a second to end."""
    return uvicorn.Config(
        app, http=protocol, ws="none", log_level="warning", timeout_graceful_shutdown=1, access_log=False
    )

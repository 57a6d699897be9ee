"""What stands before every request: whose page may ask, how much it may send, what a browser may do with the answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from lazyscope.explorer.tables.reading import MOST_BYTES

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LONGEST_QUERY = 2000
LARGEST_BODY = 16_384
LARGEST_TABLE = MOST_BYTES
TABLES = "/api/tables"
_SENT = 2  # tables at once

# Everything from this server and nothing from elsewhere. Plotly writes style attributes, hence the one exception;
# pictures are made in the page, hence data: and blob:.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """An ASGI application around another.

    Refuses hosts other than its own (a page elsewhere can give its name our address), requests that another site's
    page made, and queries and bodies that no view has any use for. `hosts` None lets every name through.
    """

    def __init__(self, app: App, hosts: tuple[str, ...] | None = LOOPBACK) -> None:
        self.app, self.hosts = app, hosts
        self._sent = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        headers = dict(scope["headers"])
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
            if scope["path"] == TABLES:
                await self._table(scope, headers, receive, dressed)
                return
            receive, fits = await _bounded(receive, LARGEST_BODY)
            if not fits:
                refusal = (413, f"The body must be at most {LARGEST_BODY} bytes.")
        if refusal is not None:
            await _refuse(dressed, *refusal)
            return
        await self.app(scope, receive, dressed)

    async def _table(self, scope: Message, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Let a file in, one that says its size and is small enough, while few others are on their way."""
        said = headers.get(b"content-length", b"")
        if not said.isdigit():
            await _refuse(send, 411, "A table must say its length beforehand.")
        elif int(said) > LARGEST_TABLE:
            got = f"{int(said) / 1e6:,.1f}"
            await _refuse(send, 413, f"A table must have at most {LARGEST_TABLE / 1e6:g} MB. Got {got} MB instead.")
        elif self._sent >= _SENT:
            await _refuse(send, 429, f"{_SENT} tables are being sent already. Wait for one of them.")
        else:
            self._sent += 1
            try:
                receive, _ = await _bounded(receive, LARGEST_TABLE)
                await self.app(scope, receive, send)
            finally:
                self._sent -= 1

    def _refusal(self, scope: Message, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if self.hosts is not None and name not in self.hosts:
            return 403, "This server answers to its own address only. Open the one that `lazyscope explore` printed."
        if headers.get(b"sec-fetch-site") == b"cross-site" and scope["path"] != "/":
            return 403, "The request came from another site's page."
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and origin.partition("://")[2] != host:
            return 403, "The request came from another site's page."
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, f"The query must be at most {LONGEST_QUERY} characters."
        return None


async def _bounded(receive: Receive, most: int) -> tuple[Receive, bool]:
    """Read a body while it is small; return what gives it once more, and whether that was all of it."""
    parts: list[Message] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        parts.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)

    async def again() -> Message:
        return parts.pop(0) if parts else await receive()

    return again, size <= most


async def _refuse(send: Send, status: int, error: str) -> None:
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Starting: one address, bound before anything else, so that what is printed is what answers."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

import lazyscope
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.explorer.guard import LOOPBACK
from lazyscope.explorer.memory import give_back

PORT = 8765
_OWNER = "lazyscope explore"
_TURN = 5e-4  # seconds until a thread that computes makes way for the one that answers; Python's 5 ms delay each answer


def bind(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens: on the port asked for, or on the usual one, or on any that is free.

    >>> with bind("127.0.0.1", 0) as first:
    ...     try:
    ...         bind("127.0.0.1", first.getsockname()[1])
    ...     except InvalidParameter as error:
    ...         print(error)
    The --port parameter of lazyscope explore must be free. Got ..., which is in use, instead. Pass another, or none.
    """
    if port is not None and not 0 <= port <= 65535:
        raise InvalidParameter.of(_OWNER, "--port", "be between 0 and 65535", port)
    for number in (PORT, 0) if port is None else (port,):
        try:
            asked = {"type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP, "flags": socket.AI_PASSIVE}
            family, kind, protocol, _, address = socket.getaddrinfo(host, number, **asked)[0]
        except OSError as error:
            raise InvalidParameter.of(_OWNER, "--host", "be an address of this machine", f"{host} ({error})") from None
        # asyncio sets TCP_NODELAY only if the protocol is named; without it answers wait 40 ms for an acknowledgement
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(128)
        except OSError as error:
            sock.close()
            if port is None and number:
                continue  # the usual port is taken, perhaps by another explorer: any other will do
            raise _refused(host, number, error) from None
        return sock
    raise AssertionError("unreachable")


def _refused(host: str, port: int, error: OSError) -> InvalidParameter:
    if error.errno == errno.EADDRINUSE:
        return InvalidParameter.of(_OWNER, "--port", "be free", f"{port}, which is in use,", "Pass another, or none.")
    if error.errno == errno.EACCES:
        must = "be one that you may listen on"
        return InvalidParameter.of(_OWNER, "--port", must, f"{port} ({error.strerror})", "Pass one above 1023.")
    return InvalidParameter.of(_OWNER, "--host", "be an address of this machine", f"{host} ({error.strerror})")


def address_of(host: str, sock: socket.socket) -> str:
    """Return the address to open."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sock.getsockname()[1]}/"


def keep_compiled_code(package: Path, home: Path, say: Callable[[str], None]) -> None:
    """Find a place for machine code where neither the package nor the home can be written to; say which.

    >>> keep_compiled_code(Path("."), Path("/nowhere"), print)
    """
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(place, os.W_OK) for place in (package, home)):
        return
    try:
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="lazyscope-")
    except OSError as error:
        raise LazyscopeError(
            f"No folder can be written to, neither {home} nor {package} nor one for temporary files "
            f"({error.strerror}): compiled code has no place. Set NUMBA_CACHE_DIR to one that can."
        ) from None
    say(f"note: {home} is read-only: compiled code goes to {os.environ['NUMBA_CACHE_DIR']}.")


def serve(host: str, port: int | None, *, browser: bool, say: Callable[[str], None]) -> None:
    """Serve until interrupted; `say` gets the address, and whatever else a person should know."""
    sock = bind(host, port)
    try:
        keep_compiled_code(Path(lazyscope.__file__).parent, Path.home(), say)
        give_back()
        sys.setswitchinterval(_TURN)
        import uvicorn

        from lazyscope.explorer.api import create_app
        from lazyscope.explorer.deadline import configured
        from lazyscope.explorer.pages import plotly

        plotly()
        address = address_of(host, sock)
        known = host in ("localhost", "::1") or host.startswith("127.")
        if not known:
            say(f"note: {host} is not loopback: whoever reaches this machine can use its processors through the page.")
        app = create_app(hosts=LOOPBACK if known else None)
        server = uvicorn.Server(configured(app))
        say(address)
        if browser:
            open_browser(address, say)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[sock])
    finally:
        sock.close()


def open_browser(address: str, say: Callable[[str], None]) -> None:
    """Open the address where there is a browser; say so where there is none."""
    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        say("note: no browser was found. Open the address above in one.")

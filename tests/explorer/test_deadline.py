"""Connections: answers are sent at once, and who does not send a whole request is let go."""

import asyncio
import contextlib
import json
import socket
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from lazyscope.explorer.api import create_app
from lazyscope.explorer.deadline import Timely, configured
from lazyscope.explorer.server import bind

GET = b"GET /api/views HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
TABLE = b"POST /api/tables?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 19000000\r\n\r\n"
POST = (
    b"POST /api/simulate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


class Loop:
    """Timers that run when the test says so; nothing is ever computed."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, what):
        self.timers.append(Timer(seconds, what))
        return self.timers[-1]

    def create_task(self, coroutine):
        coroutine.close()
        return Mock()

    @property
    def running(self):
        return [timer for timer in self.timers if not timer.done]


class Timer:
    def __init__(self, seconds, what):
        self.seconds, self.what, self.done = seconds, what, False

    def cancel(self):
        self.done = True

    def ring(self):
        assert not self.done
        self.done = True
        self.what()


class Transport:
    """The other side, which hears what is written."""

    def __init__(self):
        self.written, self.closed = b"", False

    def write(self, data):
        self.written += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_extra_info(self, name):
        return None


@pytest.fixture
def connection():
    async def app(scope, receive, send):
        raise AssertionError("no request is answered here")

    config = configured(app)
    assert config.http is Timely
    protocol = Timely(config, ServerState(), {}, Loop())
    protocol.connection_made(Transport())
    return protocol


def test_a_silent_connection_is_closed_without_a_word(connection):
    (timer,) = connection.loop.running
    assert timer.seconds == Timely.seconds == 20.0
    timer.ring()
    assert connection.transport.closed
    assert connection.transport.written == b""


@pytest.mark.parametrize("sent", [b"G", GET[:-2], POST, POST + b"{", POST + 99 * b" ", TABLE + b"a,b\n"])
def test_half_a_request_is_refused_when_its_time_is_over(connection, sent):
    (timer,) = connection.loop.running
    for byte in sent:  # a byte now and then does not prolong it
        connection.data_received(bytes([byte]))
        assert connection.loop.running == [timer]
    timer.ring()
    assert connection.transport.closed
    head, body = connection.transport.written.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body) == {"error": "A request must arrive whole within 20 s."}


@pytest.mark.parametrize("sent", [GET, POST + 100 * b" "])
def test_a_whole_request_has_all_the_time_for_its_answer(connection, sent):
    connection.data_received(sent[:10])
    connection.data_received(sent[10:])
    assert connection.loop.running == []
    connection.connection_lost(None)
    assert connection.loop.running == []


def test_the_next_request_of_a_connection_has_its_own_time(connection):
    connection.data_received(GET)
    asyncio.run(answer(connection.cycle))
    (silence,) = connection.loop.running  # uvicorn's own: nothing has begun
    assert silence.seconds == connection.timeout_keep_alive
    connection.data_received(GET[:5])
    (timer,) = connection.loop.running
    assert timer is not silence
    connection.data_received(GET[5:])
    assert connection.loop.running == []
    asyncio.run(answer(connection.cycle))
    connection.data_received(GET[:5])
    before = connection.transport.written
    connection.loop.running[0].ring()
    assert connection.transport.written.removeprefix(before).startswith(b"HTTP/1.1 408 ")
    assert connection.transport.closed


def test_an_answer_before_the_whole_body_is_not_followed_by_another(connection):
    connection.data_received(GET[:-2] + b"Content-Length: 9\r\n\r\n")
    asyncio.run(answer(connection.cycle))
    connection.data_received(b".")
    before = connection.transport.written
    connection.loop.running[0].ring()
    assert connection.transport.closed
    assert connection.transport.written == before


async def answer(cycle):
    await cycle.send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await cycle.send({"type": "http.response.body", "body": b"{}"})


class Impatient(Timely):
    seconds = 0.1


@contextlib.asynccontextmanager
async def serving(protocol):
    """Serve in this process; yield (server, address)."""
    with bind("127.0.0.1", 0) as sock:
        server = uvicorn.Server(configured(create_app(), protocol))
        server.capture_signals = contextlib.nullcontext  # signals are pytest's
        running = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield server, sock.getsockname()
        finally:
            server.should_exit = True
            await running


def test_accepted_connections_send_at_once():
    async def scenario():
        async with serving(Timely) as (server, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
            (connection,) = server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            writer.close()

    asyncio.run(scenario())


def test_half_sent_requests_are_closed_and_the_others_are_served(capfd):
    async def scenario():
        async with serving(Impatient) as (server, address):
            opened = []
            for sent in (b"", b"GET", GET[:-1], POST, POST + b"{", TABLE + 100_000 * b"1,2\n"):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(sent)
                opened.append((sent, reader, writer))
            for sent, reader, writer in opened:
                said = await asyncio.wait_for(reader.read(), 60)  # until the server closes
                assert said.startswith(b"HTTP/1.1 408 ") if sent else said == b""
                writer.close()
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 200 ")
            writer.close()
            while server.server_state.connections:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert capfd.readouterr().err == ""  # an upload that breaks off is no mistake of the server

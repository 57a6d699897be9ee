"""A process that reads and decomposes tables: an eigendecomposition holds Python's lock, and sliders go on meanwhile.

`python -m lazyscope.explorer.tables.process SERVER` starts one; it answers one request after another over its pipes,
and ends with its server. What it says is unpickled: it is our own code, and a user's file is never unpickled in it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lazyscope.errors import LazyscopeError

SECONDS = 120.0
"""The most that a table may take."""


class Reader:
    """One process, started when it is first needed and again when it has died; one request at a time.

    A thread of its own talks to it: on Linux the process ends with the thread that started it (`end_with`), and a
    server's threads come and go.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._thread = ThreadPoolExecutor(1, "tables")
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Call a function of `reading` in the process; raise what it refuses."""
        if self._closed:
            raise _ending()
        return self._thread.submit(self._ask, name, arguments).result()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # whoever waits for it is told, and lets go
        self._thread.submit(self._end)
        self._thread.shutdown()

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self.seconds, process.kill)
        timer.start()
        try:
            pickle.dump((name, arguments), process.stdin)
            process.stdin.flush()
            answered, value = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end()
            raise LazyscopeError(
                f"The process that reads tables ended: {self.seconds:g} s or the memory did not do. "
                "Use fewer rows or columns."
            ) from None
        finally:
            timer.cancel()
        if not answered:
            raise value
        return value

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise _ending()
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            command = [sys.executable, "-m", "lazyscope.explorer.tables.process", str(os.getpid())]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _ending() -> LazyscopeError:
    return LazyscopeError("The server is ending.")


def main() -> None:
    """Answer until standard input ends, or the server whose number is the only argument."""
    from lazyscope.explorer.memory import give_back
    from lazyscope.explorer.tables import reading
    from lazyscope.explorer.worker import end_with

    end_with(int(sys.argv[1]))
    give_back()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
    functions: dict[str, Callable[..., Any]] = {"look": reading.look, "known": reading.known}
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: tuple[bool, Any]
        try:
            answer = True, functions[name](*arguments)
        except LazyscopeError as error:
            answer = False, error
        except MemoryError:
            answer = False, LazyscopeError("Out of memory. Use fewer rows or columns.")
        except Exception as error:  # a mistake in the code: said in the page, and the process lives on
            answer = False, LazyscopeError(" ".join(f"{type(error).__name__}: {error}".split())[:300])
        pickle.dump(answer, out)
        out.flush()


if __name__ == "__main__":
    main()

"""The JSON API: a GET for each view's lines, jobs for its dots, and the page itself.

    GET  /api/views                      what there is: controls, bounds, presets, explanations
    GET  /api/limit/<view>?<state>       the lines of a state, at once
    GET  /api/exact/<view>?<state>       its dots without sampling noise, when they are computed
    GET  /api/simulate/<view>?<state>    its simulated dots, when they are computed
    POST /api/tables?name=<file>         a CSV or NPZ file of the user's, which views then name by a key
    POST /api/simulate                   dots as a job: exact, simulated or both
    GET  /api/jobs/<job>/events          what a job has to say (server-sent events); leaving cancels it
    DELETE /api/jobs/<job>               cancel a job

Every answer names its claims and its arguments, and carries the command line and the Python that compute it again.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeVar

import anyio
from anyio.to_thread import run_sync
from fastapi import Body, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import Field, create_model
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lazyscope import __version__
from lazyscope.errors import LazyscopeError
from lazyscope.explorer import loading, pages
from lazyscope.explorer.guard import LOOPBACK, TABLES, Guard
from lazyscope.explorer.jobs import Bounds, Job, Jobs, TooManyJobs
from lazyscope.explorer.schemas import Accepted, Answer, Cancelled, DotsAnswer, Problem, Record, TableRecord, ViewList
from lazyscope.explorer.stream import EventStream
from lazyscope.explorer.tables.process import Reader
from lazyscope.explorer.tables.shelf import PATTERN, SHELF, here
from lazyscope.explorer.views import VIEWS
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Plan
from lazyscope.explorer.views.controls import State
from lazyscope.explorer.views.lazy import LEVELS
from lazyscope.lenses.data.table import EXAMPLES
from lazyscope.numerics.blas import hold_threads

T = TypeVar("T")

_REMEMBERED = 512  # answers, of some ten thousand bytes each
_COMPUTING = 2  # lines computed at once: more threads would only fight for the interpreter

_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "No HTTP, or a body that is no JSON"},
    403: {"model": Problem, "description": "Not this server's page"},
    411: {"model": Problem, "description": "A table of unknown length"},
    413: {"model": Problem, "description": "A body that is too large"},
    414: {"model": Problem, "description": "A query that is too long"},
    422: {"model": Problem, "description": "A parameter out of bounds, or outside a theorem's hypotheses"},
}
_BUSY: dict[int | str, dict[str, Any]] = {429: {"model": Problem, "description": "Too many jobs"}}
_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such job"}}

_KINDS = {"limit": "lines", "exact": "dots, without sampling noise", "simulate": "simulated dots"}

JobName = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="As POST /api/simulate returned it.")]


def create_app(bounds: Bounds | None = None, hosts: tuple[str, ...] | None = LOOPBACK) -> FastAPI:
    """Return the application; `hosts` are the names it answers to, None for any."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.jobs = Jobs(bounds)
        app.state.limiter = anyio.CapacityLimiter(_COMPUTING)
        app.state.patient = anyio.CapacityLimiter(_COMPUTING)
        app.state.loading = loading.begun()
        SHELF.read = reader = Reader()
        yield
        SHELF.read = here
        await run_sync(reader.close)
        await app.state.jobs.close()
        SHELF.close()
        hold_threads(None)

    app = FastAPI(
        title="lazyscope explorer",
        version=__version__,
        description=__doc__ or "",
        docs_url=None,  # these pages would load their scripts from another host
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(Guard, hosts=hosts)
    for kind, handler in ((LazyscopeError, _refuse), (RequestValidationError, _refuse), (HTTPException, _fail)):
        app.add_exception_handler(kind, handler)
    app.get("/api/views", summary="All views")(_views)
    for view in VIEWS.values():
        _add_view(app, view)
    _add_tables(app)
    _add_jobs(app)
    pages.add(app)
    return app


def _views() -> ViewList:
    """Return what the page shows: views with their controls, bounds, presets and explanations."""
    return ViewList(version=__version__, views=[view.record() for view in VIEWS.values()])


# -- lines ---------------------------------------------------------------------------------------------------


class Answers:
    """The latest answers, kept as they were sent: a slider that goes back and forth asks for them again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[State, bytes] = OrderedDict()

    async def of(self, view: View, state: State, request: Request) -> bytes:
        """Return the answer to a state, computed in a thread unless it is known."""
        body = self._kept.get(state)
        if body is None:
            body = await in_thread(request, view, answered, view, state)
            self._kept[state] = body
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(state)
        return body


def answered(view: View, state: State) -> bytes:
    """Compute the lines of a state and write them as JSON."""
    hold_threads(None if view.long else 1)  # what takes long has large matrices
    return json.dumps(view.lines(state), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _add_view(app: FastAPI, view: View) -> None:
    """Add the endpoints of a view, whose query is its state."""
    answers = Answers()

    async def limit(request: Request, state: Any) -> Response:
        body = await answers.of(view, state, request)
        return Response(body, media_type="application/json")

    def dots(fidelity: Drawn) -> Callable[[Request, Any], Awaitable[DotsAnswer]]:
        async def endpoint(request: Request, state: Any) -> DotsAnswer:
            return await _dots(request, view, state, fidelity)

        return endpoint

    endpoints: dict[str, Any] = {"limit": limit, **{fidelity: dots(fidelity) for fidelity in view.fidelities}}
    for name, endpoint in endpoints.items():
        endpoint.__annotations__["state"] = Annotated[view.state, Query()]
        model = Answer if name == "limit" else DotsAnswer
        app.get(
            f"/api/{name}/{view.name}",
            name=f"{name} {view.name}",
            summary=f"{view.title}: {_KINDS[name]}",
            description=f"{view.text}\n\n{view.theorem}",
            response_model=None,
            responses={200: {"model": model}, **_REFUSED, **({} if name == "limit" else _BUSY)},
        )(endpoint)


async def in_thread(request: Request, view: View, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in one of the threads of a view, of which there are few, once all is imported."""
    here = request.app.state
    await asyncio.shield(here.loading)  # a client that leaves must not end what all wait for
    await request.body()  # the end of a request is told after its body
    async with here.patient if view.long else here.limiter:
        if await request.is_disconnected():  # a slider went on: nobody waits for this state any more
            raise HTTPException(499, "The client has left.")
        return await run_sync(function, *arguments)


async def _dots(request: Request, view: View, state: State, fidelity: Drawn) -> DotsAnswer:
    """Compute dots in a worker while the client waits; give up when it does not."""
    plan = await _planned(request, view, state, [fidelity])
    jobs: Jobs = request.app.state.jobs
    job = jobs.submit(_order(view, state, [fidelity]))
    events: dict[str, list[Any]] = {"dots": [], "note": []}
    leaving = asyncio.create_task(_gone(request, lambda: jobs.cancel(job)))
    try:
        async for event, data in jobs.read(job):
            if event in events:
                events[event].append(data)
            elif event == "error":
                raise HTTPException(503, data["error"])
    finally:
        leaving.cancel()
    whole: dict[str, Any] = {"dots": events["dots"], "notes": events["note"]}
    whole |= {"command": plan[0].command, "python": plan[0].python}
    return DotsAnswer(view=view.name, fidelity=fidelity, arguments=state.model_dump(), **whole)


async def _gone(request: Request, then: Callable[[], Any]) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(0.2)
    then()


async def _planned(request: Request, view: View, state: State, fidelities: list[Drawn]) -> list[Plan]:
    """Return what would be computed: refuses at once what a worker would refuse later."""
    drawn = [name for name in fidelities if name in view.fidelities]
    return [await in_thread(request, view, view.plan, state, name) for name in drawn]


def _order(view: View, state: State, fidelities: list[Drawn]) -> dict[str, Any]:
    shelf = None if SHELF.folder is None else str(SHELF.folder)
    return {"view": view.name, "state": state.model_dump(), "fidelities": list(fidelities), "shelf": shelf}


# -- tables --------------------------------------------------------------------------------------------------


def _add_tables(app: FastAPI) -> None:
    """Add the endpoint that takes a user's file."""
    body = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}

    @app.post(
        TABLES,
        status_code=201,
        summary="Bring a table",
        responses={**_REFUSED, 429: {"model": Problem, "description": "Too many tables at once"}},
        openapi_extra={"requestBody": {"required": True, **body}},
    )
    async def table(
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=200, description="The file's name, for its ending.")],
    ) -> TableRecord:
        """Keep a CSV or NPZ file, whose bytes are the body, in this server's memory, and say what it has.

        Nothing in it is unpickled. A few files are kept, the oldest forgotten.
        """
        try:
            content = await request.body()
        except ClientDisconnect:  # whoever it was does not hear it
            raise HTTPException(400, "The table did not arrive whole.") from None
        key, called, found = await run_sync(SHELF.add, name, content, limiter=request.app.state.patient)
        return TableRecord(data=key, name=called, rows=found.rows, columns=list(found.columns), target=found.target)


# -- jobs ----------------------------------------------------------------------------------------------------


def _wish(view: View) -> type[Record]:
    """Return the type of the body that asks for dots of a view.

    A query is text, in which "60" is a number; in JSON it is not.
    """
    name = view.state.__name__.removesuffix("State")
    strict = type(view.state.__name__, (view.state,), {"model_config": {"strict": True}, "__doc__": view.state.__doc__})
    return create_model(
        f"{name}Dots",
        __base__=Record,
        view=(Literal[view.name], ...),  # type: ignore[arg-type]
        state=(strict, Field(default_factory=strict, description="As in the query of /api/limit.")),
        fidelities=(
            list[Literal[view.fidelities]],  # type: ignore[name-defined]
            Field(list(view.fidelities), min_length=1, max_length=2, description="Which dots are wanted."),
        ),
    )


def _add_jobs(app: FastAPI) -> None:
    """Add the endpoints of jobs."""

    async def simulate(request: Request, wish: Any) -> Accepted:
        view, state = VIEWS[wish.view], wish.state
        plans = await _planned(request, view, state, wish.fidelities)
        job = request.app.state.jobs.submit(_order(view, state, wish.fidelities))
        where = f"/api/jobs/{job.name}"
        command = " && ".join(plan.command for plan in plans if plan.command)
        again = {"command": command, "python": "\n".join(plan.python for plan in plans)}
        return Accepted(job=job.name, events=f"{where}/events", cancel=where, arguments=state.model_dump(), **again)

    wishes = reduce(or_, (_wish(view) for view in VIEWS.values()))
    simulate.__annotations__["wish"] = Annotated[wishes, Body(discriminator="view")]
    app.post("/api/simulate", status_code=202, summary="Drop dots", responses={**_REFUSED, **_BUSY})(simulate)

    @app.get(
        "/api/jobs/{name}/events",
        status_code=200,
        summary="Events of a job",
        response_class=EventStream,
        responses={**_REFUSED, **_UNKNOWN, 200: {"description": "progress, dots, note, done and error events"}},
    )
    async def events(request: Request, name: JobName) -> EventStream:
        """Stream `progress`, `dots` and `note` events, and at the end `done` or `error`; leaving cancels the job."""
        return EventStream(request.app.state.jobs.read(_known(request, name)))

    @app.delete("/api/jobs/{name}", summary="Cancel a job", responses={**_REFUSED, **_UNKNOWN})
    async def cancel(request: Request, name: JobName) -> Cancelled:
        """End a job and free its worker."""
        return Cancelled(job=name, cancelled=request.app.state.jobs.cancel(_known(request, name)))


def _known(request: Request, name: str) -> Job:
    job: Job | None = request.app.state.jobs.jobs.get(name)
    if job is None:
        raise HTTPException(404, "There is no such job. Jobs are forgotten some time after their end.")
    return job


# -- errors --------------------------------------------------------------------------------------------------


_IN_WORDS = {
    LEVELS: "it must be 2 to 12 numbers from -99 to 99 with commas between, such as 0,0.5,2",
    PATTERN: f"it must be {', '.join(EXAMPLES)}, or the name that a file has here once it was brought",
}
"""What a text must be whose pattern nobody wants to read."""


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Say in one line what must hold, as the library does."""
    if isinstance(error, TooManyJobs):
        return JSONResponse({"error": str(error)}, 429, {"Retry-After": "5"})
    if not isinstance(error, RequestValidationError):
        return JSONResponse({"error": str(error)}, 422)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "body"
    got = repr(first.get("input"))[:60]
    must = _IN_WORDS.get(first.get("ctx", {}).get("pattern"), first["msg"])
    return JSONResponse({"error": f"The {where} parameter: {must}. Got {got} instead."}, 422)


async def _fail(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)

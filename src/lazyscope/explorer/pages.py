"""The page: a few files of this package, and plotly.min.js of the installed plotly. No path comes from a request."""

from __future__ import annotations

import mimetypes
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response

from lazyscope.errors import LazyscopeError

MODULES = (
    "format.js",
    "source.js",
    "tables.js",
    "controls.js",
    "chart.js",
    "heat.js",
    "look.js",
    "tour.js",
    "downloads.js",
    "dots.js",
    "app.js",
)
"""The page's modules; each imports those before it only, so that a single file can hold them in this order."""

FILES = ("style.css", "icon.svg", *MODULES)


def text(name: str) -> str:
    """Return one of the page's own files."""
    return files("lazyscope.explorer").joinpath("static", name).read_text(encoding="utf-8")


@cache
def plotly() -> Path:
    """Return the script that the package plotly ships; the package itself takes seconds to import, and is not."""
    plotly = find_spec("plotly")
    if plotly is None or plotly.origin is None:
        raise LazyscopeError("The explorer draws with the package plotly, which is missing. pip install plotly")
    return Path(plotly.origin).parent / "package_data/plotly.min.js"


def add(app: FastAPI) -> None:
    """Add the routes of the page; each file by its own name, known beforehand."""

    async def index(request: Request) -> Response:
        request.app.state.jobs.warm_up()
        return Response(
            text("index.html"), media_type="text/html; charset=utf-8", headers={"Cache-Control": "no-cache"}
        )

    app.get("/", include_in_schema=False)(index)
    for name in FILES:
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        _serve(app, name, "text/javascript" if name.endswith(".js") else kind)

    async def script() -> Response:
        kept = {"Cache-Control": "max-age=86400", "ETag": f'"plotly-{version("plotly")}"'}
        return FileResponse(plotly(), media_type="text/javascript", headers=kept)

    app.get("/plotly.min.js", include_in_schema=False)(script)


def _serve(app: FastAPI, name: str, kind: str) -> None:
    async def file() -> Response:
        return Response(text(name), media_type=kind, headers={"Cache-Control": "no-cache"})

    app.get(f"/static/{name}", include_in_schema=False)(file)

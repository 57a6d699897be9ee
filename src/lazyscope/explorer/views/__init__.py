"""The views of the explorer, one question a file; adding one here enrols it in the API, the page and its tests."""

from __future__ import annotations

from lazyscope.explorer.views import beyond, data, degrees, descent, margin, mixture, quadratic
from lazyscope.explorer.views.base import View

VIEWS: dict[str, View] = {
    one.VIEW.name: one.VIEW for one in (quadratic, mixture, descent, degrees, margin, beyond, data)
}

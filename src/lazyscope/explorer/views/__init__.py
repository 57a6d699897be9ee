"""The views of the explorer, one question a file; adding one here enrols it in the API, the page and its tests."""

from __future__ import annotations

from lazyscope.explorer.views import beyond, data, degrees, descent, margin
from lazyscope.explorer.views.base import View
from lazyscope.explorer.views.dynamics import rich, training
from lazyscope.explorer.views.lazy import directions, mixture, quadratic

VIEWS: dict[str, View] = {
    module.VIEW.name: module.VIEW
    for module in (quadratic, directions, mixture, training, rich, descent, degrees, margin, beyond, data)
}

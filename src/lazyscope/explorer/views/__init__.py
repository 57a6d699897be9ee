"""The views of the explorer, one question a file; adding one here enrols it in the API, the page and its tests."""

from __future__ import annotations

from lazyscope.explorer.views import beyond, degrees, descent, margin, mixture, quadratic
from lazyscope.explorer.views.base import View

VIEWS: dict[str, View] = {
    view.name: view for view in (quadratic.VIEW, mixture.VIEW, descent.VIEW, degrees.VIEW, margin.VIEW, beyond.VIEW)
}

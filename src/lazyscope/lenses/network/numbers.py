"""The numbers of a network lens as a labelled Dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.lenses.network.rivals import NAMES

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.lenses.network.lens import NetworkLens

MEANING = {
    "laziness": "1 − min(1, max(‖f − f_lin‖/‖f − f₀‖, ‖K − K₀‖/‖K₀‖))",
    "taylor_error": "‖f − f_k‖/‖f − f₀‖, f_k the Taylor model of order k around the start",
    "drift": "1 − cosine between the tangent kernel and that of the start",
    "kernel_change": "‖K − K₀‖/‖K₀‖",
    "kernel_change_stderr": "its standard error, where the kernel is made by random directions",
    "alignment": "cosine between the centred tangent kernel and YYᵀ",
    "movement": "‖θ − θ₀‖/‖θ₀‖ of each layer",
    "loss": "mean loss on the data",
    "error": "share of wrong classes, or squared error over the variance of the targets",
    "rival_error": "the same error of Taylor models trained on the same data, on the test data",
}


def dataset(lens: NetworkLens) -> xr.Dataset:
    """Return all looks; the linearisation error is the Taylor error of order 1."""
    import xarray as xr

    from lazyscope import __version__

    def along(name: str) -> Any:
        return ("step", np.array([getattr(look, name) for look in lens.looks]))

    variables: dict[str, Any] = {
        "laziness": along("laziness"),
        "taylor_error": (("step", "order"), np.stack([look.taylor for look in lens.looks])),
        "drift": along("drift"),
        "kernel_change": along("change"),
        "kernel_change_stderr": along("change_stderr"),
        "alignment": along("alignment"),
        "movement": (("step", "layer"), np.stack([look.movement for look in lens.looks])),
        "loss": along("loss"),
        "error": along("error"),
    }
    coordinates: dict[str, Any] = {
        "step": [look.step for look in lens.looks],
        "order": np.arange(1, lens.orders + 1),
        "layer": list(lens.model.layers),
    }
    if lens.trained:
        names = [NAMES.get(rival.order, f"order {rival.order}") for rival in lens.trained]
        variables |= {
            "rival_error": ("rival", [rival.test for rival in lens.trained]),
            "rival_train_error": ("rival", [rival.train for rival in lens.trained]),
            "rival_loss": ("rival", [rival.loss for rival in lens.trained]),
        }
        coordinates["rival"] = names
    if lens.test_error is not None:
        variables["test_error"] = ((), lens.test_error)
    result = xr.Dataset(variables, coordinates, {"verdict": lens.verdict, "lazyscope_version": __version__})
    for name, words in MEANING.items():
        if name in result:
            result[name].attrs["long_name"] = words
    return result

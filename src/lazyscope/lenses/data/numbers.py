"""The numbers of a data lens as a labelled Dataset and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import jsonable
from lazyscope.lenses.data.regimes import NAMES

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.lenses.data.lens import DataLens


def dataset(lens: DataLens) -> xr.Dataset:
    """Return error (regime, width, samples, fold), seconds, the baseline, and the quadratic part."""
    import xarray as xr

    from lazyscope import __version__

    cells, errors = [cell for cell in lens.measured.losses if cell.regime in NAMES], lens.measured.errors
    regimes = [name for name in NAMES if any(cell.regime == name for cell in cells)]
    widths, sizes = sorted({cell.width for cell in cells}), sorted({cell.samples for cell in cells})
    folds = len(lens.measured.baseline)
    error = np.full((len(regimes), len(widths), len(sizes), folds), np.nan)
    seconds = np.full(error.shape[:3], np.nan)
    for cell in cells:
        at = regimes.index(cell.regime), widths.index(cell.width), sizes.index(cell.samples)
        error[at], seconds[at] = errors[cell], lens.measured.seconds[cell]
    variables: dict[str, Any] = {
        "error": (("regime", "width", "samples", "fold"), error, {"long_name": lens.error_name}),
        "seconds": (("regime", "width", "samples"), seconds, {"long_name": "time of all folds"}),
        "baseline": ("fold", lens.measured.baseline, {"long_name": "error of the best constant"}),
    }
    trees = lens.measured.reference
    if trees is not None:
        variables["boosted"] = ("fold", errors[trees], {"long_name": f"{lens.error_name}, of boosted trees"})
    coordinates: dict[str, Any] = {"regime": regimes, "width": widths, "samples": sizes, "fold": np.arange(folds)}
    if lens.part is not None:
        variables["spectrum"] = ("component", lens.part.spectrum, {"long_name": "eigenvalues of B, whitened inputs"})
        for name in ("linear", "quadratic", "rest", "linear_stderr", "quadratic_stderr", "quadratic_z"):
            variables[name] = ((), getattr(lens.part, name))
    if lens.forecast:
        variables["forecast"] = (
            ("theory", "forecast_width"), np.stack(list(lens.forecast.values())),
            {"long_name": "unexplained variance at best, infinitely many samples"},
        )  # fmt: skip
        coordinates |= {"theory": list(lens.forecast), "forecast_width": list(lens.forecast_widths)}
    if lens.outlook is not None:
        n, lines = lens.outlook.along_samples(min(sizes, default=lens.measured.rows), lens.middle)
        dims = ("outlook_regime", "outlook_samples")
        coordinates |= {"outlook_regime": list(lines), "outlook_samples": n}
        shares, factors = (np.stack([line[k] for line in lines.values()]) for k in (0, 1))
        for name, values in (("", shares), ("_low", shares / factors), ("_high", shares * factors)):
            said = "forecast of the squared error, as a share of the best constant's"
            variables[f"outlook{name}"] = (dims, values, {"long_name": said})
    about = {"about": lens.about, "verdict": lens.verdict, "notes": "; ".join(lens.notes), "seed": lens.seed}
    return xr.Dataset(variables, coordinates, {**about, "lazyscope_version": __version__})


def document(lens: DataLens) -> dict[str, Any]:
    """Return the same for machines that read JSON: a row for each setting."""
    rows, errors = [], lens.measured.errors
    for cell in sorted(errors):
        mean, stderr = lens.measured.mean(cell)
        rows.append(
            {
                "regime": cell.regime,
                "width": cell.width,
                "samples": cell.samples,
                "error": mean,
                "stderr": stderr,
                "folds": errors[cell].tolist(),
                "seconds": round(lens.measured.seconds[cell], 3),
            }
        )
    part = lens.part
    told_of = (
        "linear",
        "linear_stderr",
        "quadratic",
        "quadratic_stderr",
        "rest",
        "quadratic_z",
        "significant",
        "spectrum",
    )
    quadratic = None if part is None else {name: getattr(part, name) for name in told_of}
    theory = {
        name: dict(zip(map(str, lens.forecast_widths), values, strict=True)) for name, values in lens.forecast.items()
    }
    ahead = None
    if lens.outlook is not None:
        least = min((cell.samples for cell in errors), default=lens.measured.rows)
        n, lines = lens.outlook.along_samples(least, lens.middle)
        ahead = {"samples": n, "advice": list(lens.outlook.advice.lines)}
        ahead |= {name: {"share": share, "band": factor} for name, (share, factor) in lines.items()}
    told: dict[str, Any] = jsonable(
        {
            "about": lens.about,
            "task": lens.task,
            "verdict": lens.verdict,
            "error": lens.error_name,
            "samples": lens.samples,
            "training_rows": lens.measured.rows,
            "baseline": float(lens.measured.baseline.mean()),
            "rows": rows,
            "quadratic_part": quadratic,
            "forecast": theory,
            "outlook": ahead,
            "notes": list(lens.notes),
            "seed": lens.seed,
        }
    )
    return told

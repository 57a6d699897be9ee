"""The reports of both lenses: what is on the page, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lazyscope.lenses import page
from lazyscope.lenses.data import pictures, verdict
from lazyscope.lenses.data.regimes import REFERENCE

if TYPE_CHECKING:
    from lazyscope.lenses.data.lens import DataLens


def data_page(lens: DataLens) -> str:
    """Return the report on a table of data."""
    from lazyscope import __version__

    parts = [page.heading("lazyscope: is it worth training the features?", lens.about)]
    parts.append(page.paragraph(lens.verdict, "verdict"))
    if lens.samples:
        parts.append(page.section("Measured", *_measured(lens)))
    ahead = pictures.more_rows(lens)
    if ahead is not None and lens.outlook is not None:
        said = "Forecast from one kernel matrix (lines, dashed beyond the rows at hand) and fits (dots)"
        advice = page.items(lens.outlook.advice.lines)
        parts.append(
            page.section("What more rows would change", page.figure(pictures.svg(ahead, "rows"), said), advice)
        )
    if lens.part is not None:
        parts.append(page.section("The linear and the quadratic part", *_quadratic(lens)))
    if lens.notes:
        parts.append(page.section("Notes", page.items(lens.notes)))
    footer = (
        f"lazyscope {__version__}, seed {lens.seed}. Errors are means over cross-validation folds ± standard errors."
    )
    return page.page("lazyscope lens", parts, footer)


def _measured(lens: DataLens) -> list[str]:
    cells = lens.measured.at(lens.samples)
    widths = sorted({cell.width for line in cells.values() for cell in line})
    rows = []
    for name in (name for name in lens.names if name in cells):
        means = {cell.width: lens.measured.mean(cell) for cell in cells[name]}
        shown = [f"{means[w][0]:.3f} ± {means[w][1]:.3f}" if w in means else "" for w in widths]
        rows.append([f"{name}, {lens.names[name]}", *shown])
    trees = lens.measured.reference
    if trees is not None:
        mean, stderr = lens.measured.mean(trees)
        alone = [f"{mean:.3f} ± {stderr:.3f}" if width == lens.middle else "" for width in widths]
        rows.append([f"{REFERENCE}, for reference (no width)", *alone])
    parts = [
        page.paragraph(
            f"{lens.error_name}; the best constant has {lens.measured.baseline.mean():.3f}. "
            f"{lens.samples:,} training rows in each fold."
        ),
        page.table(["regime", *(f"N = {width}" for width in widths)], rows),
        page.figure(pictures.svg(pictures.against_width(lens), "width"), "Error against width"),
    ]
    samples = pictures.against_samples(lens)
    if samples is not None:
        parts.append(page.figure(pictures.svg(samples, "samples"), "Error against the number of training rows"))
    return parts


def _quadratic(lens: DataLens) -> list[str]:
    part = lens.part
    assert part is not None
    parts = [page.paragraph(f"Of the variance, {verdict.shares(part)}. Shares are cross-fitted, ± a standard error.")]
    if part.significant:
        parts.append(page.figure(pictures.svg(pictures.spectrum(lens), "spectrum"), "Eigenvalues of B, by size"))
    if lens.forecast:
        said = (
            "Within reach: what theory gives for this linear and quadratic part, "
            "Gaussian inputs and infinitely many samples: random features and the tangent model with relu, "
            "the trained network with the square."
        )
        parts.append(page.figure(pictures.svg(pictures.forecasts(lens), "forecast"), said))
    return parts

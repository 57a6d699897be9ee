"""What the figures of max-margin classification share: dots of one setting beside the limit, judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr

MEASURED = ("error", "margin", "support", "separable")
_STANDARD_ERRORS = 4.0
_FINITE_SIZE = 2.0  # over d: what the mean of draws may be off by


@dataclass(frozen=True, eq=False)
class Setting:
    """Features of some widths on n samples in d dimensions, at least two draws."""

    problem: LinearLabels
    regime: RandomFeatures | IsotropicFeatures | GaussianFeatures
    d: int
    samples: int
    widths: tuple[int, ...]
    draws: int

    @property
    def trials(self) -> list[Run]:
        """The work, width by width."""
        sizes = {"width": self.widths, "samples": (self.samples,), "d": (self.d,)}
        first = Run("simulate", self.problem, self.regime, sizes, "margin")
        return [part.at(number=number) for part in first.parts() for number in range(self.draws)]

    def data(self, rows: Sequence[Row]) -> xr.Dataset:
        """Return means, standard errors and limits at the dots, with every draw of margin and error."""
        import xarray as xr

        psi1 = np.array(self.widths) / self.d
        theory = limit(self.problem, self.regime, psi1=psi1, psi2=self.samples / self.d, method="margin")
        columns: dict[str, Any] = {}
        for name in MEASURED:
            values = np.array([row[name] for row in rows]).reshape(len(self.widths), self.draws)
            columns[name] = (("width",), values.mean(axis=1))
            columns[f"{name}_stderr"] = (("width",), values.std(axis=1, ddof=1) / np.sqrt(self.draws))
            columns[f"{name}_expected"] = (("width",), theory[name].values.astype(np.float64))
            if name in ("error", "margin"):
                columns[f"{name}_draws"] = (("width", "draw"), values)
        about = {"problem": str(self.problem), "regime": str(self.regime), "d": self.d, "samples": self.samples}
        return xr.Dataset(
            columns,
            {
                "width": list(self.widths),
                "psi1": (("width",), psi1),
                "ratio": (("width",), psi1 * self.d / self.samples),
            },
            {**about, "draws": self.draws, "seed": 0, "citations": theory.attrs["citations"]},
        )


def lines(problem: LinearLabels, regime: RandomFeatures, psi1: NDArray[np.float64], psi2: float) -> xr.Dataset:
    """Return the limit along ψ₁ where data are separable, with the Bayes error."""
    found = limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")
    shown = found[["error", "margin", "support"]].isel(psi1=found.separable.values)
    shown["bayes"] = problem.bayes_error
    return shown


def far_away(panels: Iterable[xr.Dataset], names: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many dots there are, and name those beyond 4 standard errors plus 2/d of their limit.

    Dots below the separability threshold, where the limit is that of no classifier, are not judged.
    """
    count, far = 0, []
    for data in panels:
        d = data.attrs["d"]
        for name in names:
            dots, error, expected = (data[f"{name}{end}"].values for end in ("", "_stderr", "_expected"))
            judged = data.separable_expected.values > 0.0
            count += int(np.count_nonzero(judged))
            wrong = judged & (np.abs(dots - expected) > _STANDARD_ERRORS * error + _FINITE_SIZE / d)
            far += [
                f"{name} at d = {d}, N = {data.width.values[i]} ({dots[i]:.4f}, limit {expected[i]:.4f})"
                for i in np.flatnonzero(wrong)
            ]
    return count, far


def agreement(panels: Iterable[xr.Dataset], names: Sequence[str] = ("error", "margin")) -> str:
    """Return in one line whether dots and limit agree."""
    count, far = far_away(panels, names)
    rule = "4 standard errors plus 2/d"
    if not far:
        return f"Theory and simulation agree: all {count} dots within {rule}."
    return f"Theory and simulation differ: {len(far)} of {count} dots beyond {rule}: {'; '.join(far[:4])}."


def with_error(data: xr.Dataset, name: str, i: int) -> str:
    """Return a number with its standard error."""
    return f"{float(data[name][i]):.4f} ± {float(data[f'{name}_stderr'][i]):.4f}"

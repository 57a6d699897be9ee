"""What the experiments on max-margin classification share: dots beside the limit, judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.work import Row
from lazyscope.experiments.frame import dots
from lazyscope.experiments.frame.dots import Setting
from lazyscope.experiments.frame.verdict import Answer
from lazyscope.problems import LinearLabels
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr

_STANDARD_ERRORS = 4.0
_FINITE_SIZE = 2.0  # over d: what the mean of draws may be off by


@dataclass(frozen=True, eq=False)
class MarginSetting(Setting):
    """Features of some widths at the largest margin, at least two draws."""

    measured = ("error", "margin", "support", "separable")
    kept = ("error", "margin")
    method = "margin"

    def data(self, rows: Sequence[Row]) -> xr.Dataset:
        """Return means, standard errors and limits at the dots, with every draw of margin and error."""
        import xarray as xr

        psi1 = np.array(self.widths) / self.d
        theory = limit(self.problem, self.regime, psi1=psi1, psi2=self.samples / self.d, method="margin")
        ratios = {"psi1": (("width",), psi1), "ratio": (("width",), psi1 * self.d / self.samples)}
        columns = self.columns(rows, theory, np.full(len(self.widths), True))
        return xr.Dataset(columns, {"width": list(self.widths), **ratios}, self.about(theory))


def lines(problem: LinearLabels, regime: RandomFeatures, psi1: NDArray[np.float64], psi2: float) -> xr.Dataset:
    """Return the limit along ψ₁ where data are separable, with the Bayes error."""
    along = limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")
    shown = along[["error", "margin", "support"]].isel(psi1=along.separable.values)
    shown["bayes"] = problem.bayes_error
    return shown


def agreement(panels: Iterable[xr.Dataset], names: Sequence[str] = ("error", "margin")) -> Answer:
    """Return in one line whether dots and limit agree, within 4 standard errors plus 2/d.

    Dots below the separability threshold, where the limit is that of no classifier, are not judged.
    """
    count, far = 0, []
    for data in panels:
        d, judged = data.attrs["d"], data.separable_expected.values > 0.0
        for name in names:
            values, error, expected = (data[f"{name}{end}"].values for end in ("", "_stderr", "_expected"))
            count += int(np.count_nonzero(judged))
            wrong = judged & (np.abs(values - expected) > _STANDARD_ERRORS * error + _FINITE_SIZE / d)
            far += [
                f"{name} at d = {d}, N = {data.width.values[i]} ({values[i]:.4f}, limit {expected[i]:.4f})"
                for i in np.flatnonzero(wrong)
            ]
    return dots.agreement(count, far, "4 standard errors plus 2/d", most=4)


def with_error(data: xr.Dataset, name: str, i: int) -> str:
    """Return a number with its standard error."""
    return f"{float(data[name][i]):.4f} ± {float(data[f'{name}_stderr'][i]):.4f}"

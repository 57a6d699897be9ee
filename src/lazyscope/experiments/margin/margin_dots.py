"""What the experiments on max-margin classification share: dots beside the limit, each draw held to its prediction.

Gordon's formula takes any spectrum of the features. So each draw has a prediction at its own weights: the eigenvalues
of Σ = b₁²WWᵀ + b⋆²I, and the share of the score that the features carry along each eigenvector, take the place of their
limit. What remains of the sizes are n and N, and the formula is right to relative order 1/n in them.

Nonlinear features differ from these noisy linear ones by relative order 1/d, and measurably so: at N = 3d, n = 2d the
margins of ReLU features are smaller by about 2/n, those of noisy linear ones are not (docs/max-margin.md).
A part of it is the features' covariance, which has the higher powers of ⟨w_i, w_j⟩ as well. What these change is the
same for nearly all draws: it is computed for the first one and added to the predictions of all. The other part, that
the features are not Gaussian, is of the same order, so that as much is allowed for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Row, dataset, wrong_rows, wrong_work
from lazyscope.experiments.frame.dots import Prediction, Setting, held, trials
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.types import Dataset, Panels
from lazyscope.experiments.frame.verdict import Answer, Data, Fault
from lazyscope.limits.margin.at_weights import features_at, nonlinear_features_at
from lazyscope.problems import LinearLabels
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.verbs import limit
from lazyscope.training.linear.margin import drawn_weights

HOW = (
    "Predicted: Gordon's formula at each draw's own weights; allowed: what one sample or neuron changes, and as much "
    "as the higher powers in the covariance of nonlinear features."
)
_JUDGED = ("error", "margin")
_ONE_MORE = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # neurons and samples, more or less


@dataclass(frozen=True, eq=False)
class MarginSetting(Setting):
    """Features of some widths at the largest margin, at least two draws."""

    measured = ("error", "margin", "support", "separable")
    method = "margin"

    def data(self, rows: Sequence[Row]) -> Dataset:
        """Return means, standard errors, limits and predictions at the dots, with every draw."""
        psi1 = np.array(self.widths) / self.d
        theory = limit(self.problem, self.regime, psi1=psi1, psi2=self.samples / self.d, method="margin")
        ratios = {"psi1": (("width",), psi1), "ratio": (("width",), psi1 * self.d / self.samples)}
        columns = self.columns(rows, theory, np.full(len(self.widths), True)) | self.predicted(self.predictions())
        return dataset(columns, {"width": list(self.widths), **ratios}, self.about(theory))

    def predictions(self) -> dict[str, Prediction]:
        """Return error and margin of every draw at its own weights, and what they leave out.

        NaN, no prediction, where the formula calls the data inseparable: margins of a few draws are positive there.
        """
        values = np.full((len(_JUDGED), len(self.widths), self.draws), np.nan)
        left_out = np.zeros_like(values)
        for i, N in enumerate(self.widths):
            for number in range(self.draws):
                near = self._near(N, number)
                if near is not None:
                    values[:, i, number], left_out[:, i, number] = near[:, 0], np.abs(near[:, 1:] - near[:, :1]).max(1)
        higher = np.stack([self._higher_powers(N) for N in self.widths], axis=1)
        values, allowed = values + higher[..., None], left_out.mean(axis=2) + np.abs(higher)
        return {name: (values[k], allowed[k]) for k, name in enumerate(_JUDGED)}

    def _higher_powers(self, N: int) -> FloatArray:
        """Return what the higher powers in the covariance change in error and margin, for the weights of one draw."""
        assert isinstance(self.regime, RandomFeatures)
        if self.regime.surrogate:
            return np.zeros(len(_JUDGED))
        W = drawn_weights(0, 0, N, self.samples, self.d)
        pair = [features_at(self.regime, W), nonlinear_features_at(self.regime, W)]
        ratios = {"psi1": N / self.d, "psi2": self.samples / self.d}
        before, after = (limit(self.problem, features, **ratios, method="margin") for features in pair)
        if not (bool(before.separable) and bool(after.separable)):
            return np.zeros(len(_JUDGED))
        return np.array([float(after[name] - before[name]) for name in _JUDGED])

    def _near(self, N: int, number: int) -> FloatArray | None:
        """Return error and margin, (2, 5): at N and n, and at one more or less of each; None if not all separable."""
        assert isinstance(self.regime, RandomFeatures)
        features = features_at(self.regime, drawn_weights(0, number, N, self.samples, self.d))
        results = [
            limit(self.problem, features, psi1=(N + a) / self.d, psi2=(self.samples + b) / self.d, method="margin")
            for a, b in _ONE_MORE
        ]
        if not all(bool(result.separable) for result in results):
            return None
        return np.array([[float(result[name]) for result in results] for name in _JUDGED])


def lines(problem: LinearLabels, regime: RandomFeatures, psi1: NDArray[np.float64], psi2: float) -> Dataset:
    """Return the limit along ψ₁ where data are separable, with the Bayes error."""
    along = limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")
    shown = along[["error", "margin", "support"]].isel(psi1=along.separable.values)
    shown["bayes"] = problem.bayes_error
    return shown


def agreement(panels: Panels) -> Answer:
    """Return in one line whether errors and margins are what Gordon's formula says at the weights of each draw.

    Dots below the separability threshold, where the limit is that of no classifier, are not judged.
    """
    separable = {key: data.isel(width=data.separable_expected.values > 0.0) for key, data in panels.items()}
    return judged(held(separable, _JUDGED)).answer()


def faults(data: Data, fainter: Callable[[Any], Any]) -> tuple[Fault, ...]:
    """Return the mistakes that a figure of max-margin classification must see; the last argument changes a preset."""

    def tested_elsewhere(preset: Any, rows: Sequence[Row]) -> Panels:
        return data(preset, [*rows[:-1], rows[-1] | {"error": np.full_like(rows[-1]["error"], 0.5)}])

    return (
        wrong_work("labels with a quarter of the signal", data, trials, fainter),
        Fault("a last draw that was tested with other weights than its own", tested_elsewhere),
        wrong_rows("margins of features that are 5 % too small", data, "margin", lambda k, margin: 0.95 * margin),
    )

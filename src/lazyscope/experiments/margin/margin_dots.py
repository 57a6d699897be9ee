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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.dots import Prediction, Setting, held
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.verdict import Answer, Data, Fault, Worked, wrong_rows, wrong_work
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, RandomFeatures
from lazyscope.runs.verbs import limit
from lazyscope.training.linear.margin import drawn_weights

if TYPE_CHECKING:
    import xarray as xr

HOW = (
    "Predicted: Gordon's formula at each draw's own weights; allowed: what one sample or neuron changes, and as much "
    "as the higher powers in the covariance of nonlinear features."
)
_JUDGED = ("error", "margin")
_POWERS = 12  # of ⟨w_i, w_j⟩ in the covariance: of order d^(−k/2), i ≠ j
_ONE_MORE = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # neurons and samples, more or less


@dataclass(frozen=True, eq=False)
class MarginSetting(Setting):
    """Features of some widths at the largest margin, at least two draws."""

    measured = ("error", "margin", "support", "separable")
    method = "margin"

    def data(self, rows: Sequence[Row]) -> xr.Dataset:
        """Return means, standard errors, limits and predictions at the dots, with every draw."""
        import xarray as xr

        psi1 = np.array(self.widths) / self.d
        theory = limit(self.problem, self.regime, psi1=psi1, psi2=self.samples / self.d, method="margin")
        ratios = {"psi1": (("width",), psi1), "ratio": (("width",), psi1 * self.d / self.samples)}
        columns = self.columns(rows, theory, np.full(len(self.widths), True)) | self.predicted(self.predictions())
        return xr.Dataset(columns, {"width": list(self.widths), **ratios}, self.about(theory))

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
        found = [
            limit(self.problem, features, psi1=(N + a) / self.d, psi2=(self.samples + b) / self.d, method="margin")
            for a, b in _ONE_MORE
        ]
        if not all(bool(one.separable) for one in found):
            return None
        return np.array([[float(one[name]) for one in found] for name in _JUDGED])


def features_at(regime: RandomFeatures, W: FloatArray) -> GaussianFeatures:
    """Return b₁⟨w_i, x⟩ + b⋆z_i at these weights, (N, d), as Gaussian features with a spectrum.

    With WᵀW = V diag(s²) Vᵀ the eigenvalues are λ = b₁²s² + b⋆², and N − d more of them are b⋆² where N > d. The score
    S = x₁ has covariance b₁We₁ with the features, so that its share along an eigenvector is b₁²s²V₁²/λ.

    >>> W = np.eye(3)[:2]
    >>> features = features_at(RandomFeatures("relu"), W)
    >>> features.spectrum.round(4), features.shares.round(4)
    (array([0.3408, 0.3408]), array([0.    , 0.7335]))
    """
    N, d = W.shape
    squares, V = np.linalg.eigh(W.T @ W)
    squares, toward = squares[-N:].clip(0.0), V[0, -N:]
    signal, noise = regime.activation.b1**2, regime.activation.lambda_tilde
    spectrum = signal * squares + noise
    shares = signal * squares * toward**2 / spectrum
    more = max(0, N - d)
    return GaussianFeatures(np.append(spectrum, np.full(more, noise)), np.append(shares, np.zeros(more)))


def nonlinear_features_at(regime: RandomFeatures, W: FloatArray) -> GaussianFeatures:
    """Return Gaussian features with the covariance of σ(⟨w_i, x⟩) at these weights, (N, d): unit vectors, x ~ N(0, I).

    It is Σ_{k≥1} c_k²⟨w_i, w_j⟩^k with the Hermite coefficients c_k of σ, cut off between different neurons, and Var σ
    on the diagonal.

    >>> W = np.eye(3)[:2]  # orthogonal neurons: there are no higher powers
    >>> nonlinear_features_at(RandomFeatures("relu"), W).spectrum.round(4)
    array([0.3408, 0.3408])
    """
    sigma = regime.activation
    cosines, covariance = W @ W.T, np.zeros((len(W), len(W)))
    for k in range(_POWERS, 0, -1):
        covariance += sigma.hermite(k) ** 2
        covariance *= cosines
    np.fill_diagonal(covariance, sigma.b1**2 + sigma.lambda_tilde)
    spectrum, V = np.linalg.eigh(covariance)
    spectrum = np.maximum(spectrum, np.finfo(float).eps * spectrum[-1])
    return GaussianFeatures(spectrum, (sigma.b1 * (V.T @ W[:, 0])) ** 2 / spectrum)


def lines(problem: LinearLabels, regime: RandomFeatures, psi1: NDArray[np.float64], psi2: float) -> xr.Dataset:
    """Return the limit along ψ₁ where data are separable, with the Bayes error."""
    along = limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")
    shown = along[["error", "margin", "support"]].isel(psi1=along.separable.values)
    shown["bayes"] = problem.bayes_error
    return shown


def agreement(panels: Mapping[str, xr.Dataset]) -> Answer:
    """Return in one line whether errors and margins are what Gordon's formula says at the weights of each draw.

    Dots below the separability threshold, where the limit is that of no classifier, are not judged.
    """
    separable = {key: data.isel(width=data.separable_expected.values > 0.0) for key, data in panels.items()}
    return judged(held(separable, _JUDGED)).answer()


def faults(data: Data, work: Worked, fainter: Callable[[Any], Any]) -> tuple[Fault, ...]:
    """Return the mistakes that a figure of max-margin classification must see; the last argument changes a preset."""

    def tested_elsewhere(preset: Any, rows: Sequence[Row]) -> Mapping[str, xr.Dataset]:
        return data(preset, [*rows[:-1], rows[-1] | {"error": np.full_like(rows[-1]["error"], 0.5)}])

    return (
        wrong_work("labels with a quarter of the signal", data, work, fainter),
        Fault("a last draw that was tested with other weights than its own", tested_elsewhere),
        wrong_rows("margins of features that are 5 % too small", data, "margin", lambda k, margin: 0.95 * margin),
    )

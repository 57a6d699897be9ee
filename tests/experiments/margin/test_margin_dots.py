"""Experiments on max-margin classification: the verdict can say no, and pairs share their draws."""

import numpy as np
import pytest

from lazyscope.experiments import load
from lazyscope.experiments.margin import margin_dots, margin_equivalence
from lazyscope.regimes import RandomFeatures
from lazyscope.training.linear.margin import drawn_weights


@pytest.mark.parametrize("name", ["max-margin", "margin-equivalence", "separability"])
def test_the_verdict_says_no_to_what_is_wrong(name, tiny):
    assert load(name).verdict(tiny(name).panels)[-1].startswith("Theory and simulation")
    wrong = {key: data.copy(deep=True) for key, data in tiny(name).panels.items()}
    for data in wrong.values():
        assert data.attrs["problem"] and data.attrs["citations"]
        if "margin_predicted_draws" in data:
            data["margin_predicted_draws"] += 1.0
        if "predicted" in data:
            data["predicted"] = 1.0 - data.predicted
    assert "differ" in load(name).verdict(wrong)[-1]


def test_the_paired_difference_uses_the_same_draws(tiny):
    table = margin_equivalence.pairs(tiny("margin-equivalence").panels)
    assert {row["activation"] for row in table} == {"relu", "tanh"}
    # paired: the same weights, inputs and labels leave less variance than two independent samples would
    data = tiny("margin-equivalence").panels
    one, other = (data[f"tanh, {kind}, d = 64"].margin_draws.values for kind in ("nonlinear", "noisy linear"))
    assert np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(one, other, strict=True)]) > 0.2
    moved = {key: value.copy(deep=True) for key, value in data.items()}
    moved["relu, nonlinear, d = 64"]["error_draws"] += 0.5
    assert not margin_equivalence.verdict(moved)[-1].holds
    assert any(line.startswith("Not equivalent: 2 of") for line in margin_equivalence.verdict(moved))


def test_spectra_of_drawn_weights_are_those_of_the_covariance():
    """Eigenvalues and shares by the N × N covariance and the covariance with the score, N below and above d."""
    regime = RandomFeatures("tanh")
    b1, noise = regime.activation.b1, regime.activation.lambda_tilde
    for N in (5, 12):
        W = drawn_weights(0, 1, N, 20, 8)
        features = margin_dots.features_at(regime, W)
        covariance = b1**2 * W @ W.T + noise * np.eye(N)
        values, vectors = np.linalg.eigh(covariance)
        assert np.sort(features.spectrum) == pytest.approx(values)
        shares = (vectors.T @ (b1 * W[:, 0])) ** 2 / values
        order = np.argsort(features.spectrum, kind="stable")
        assert np.cumsum(features.shares[order])[-5:] == pytest.approx(np.cumsum(shares)[-5:])


def test_the_covariance_of_nonlinear_features_is_the_arc_cosine_kernel():
    """The Hermite series, cut off, against Cho and Saul's closed form for ReLU."""
    W = drawn_weights(0, 1, 60, 80, 40)
    cosine = np.clip(W @ W.T, -1.0, 1.0)
    moment = (np.sqrt(1.0 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine) / (2.0 * np.pi)
    expected = np.linalg.eigvalsh(moment - 1.0 / (2.0 * np.pi))
    features = margin_dots.nonlinear_features_at(RandomFeatures("relu"), W)
    # what is cut off is below c_14²·max⟨w_i, w_j⟩¹⁴, and the covariance has 60 rows
    cut = RandomFeatures("relu").activation.hermite(14) ** 2 * np.max(np.abs(cosine - np.eye(60))) ** 14
    np.testing.assert_allclose(features.spectrum, expected, atol=60 * 2 * cut + 1e-12)
    assert features.shares.sum() == pytest.approx(0.25 * W[:, 0] @ np.linalg.solve(moment - 0.5 / np.pi, W[:, 0]), 1e-5)

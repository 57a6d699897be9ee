"""What is learnt of every eigendirection: sums are risks, lines are means of draws, and a wrong line is found out."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.experiments.lazy import directions
from lazyscope.limits import directions as theory
from lazyscope.population import minimum, projector, random_features


def test_sums_over_directions_are_the_risk_of_exact_to_1e_10(tiny, sizes):
    one, preset = tiny("directions").panels["directions"], sizes["directions"]
    assert float(np.max(np.abs(one["sum"] - one.risk))) < 1e-10
    target = ls.QuadraticTarget.exponential(preset.d)
    for label, regime in {"RF": ls.RandomFeatures(), "NT": ls.NeuralTangent(), "NN": ls.Trained()}.items():
        risk = ls.exact(target, regime, width=preset.width, draws=preset.draws).risk
        assert np.isclose(one.risk.sel(regime=label).mean(), risk, rtol=0, atol=1e-12)
    assert directions.verdict(tiny("directions").panels)[-1].holds


@pytest.mark.parametrize("sign", ["B ⪰ 0", "B of any sign"])
@pytest.mark.parametrize("N", [3, 10, 25])
def test_sums_over_the_eigenvectors_of_a_full_B_are_the_risk_of_exact_to_1e_10(sign, N):
    A = np.random.default_rng(N).standard_normal((20, 20))
    B = A @ A.T / 20 if sign == "B ⪰ 0" else 0.5 * (A + A.T) + 0.3 * np.eye(20)
    target, U = ls.QuadraticTarget(B), np.linalg.eigh(B)[1]
    W = weights.draw(target, ls.NeuralTangent(), N, weights.generator(4, 0, N))
    forms = {
        ls.RandomFeatures(): random_features.learnt_form(target, W),
        ls.NeuralTangent(): (projector.learnt_form(target, ls.NeuralTangent(), W), 0.0),
        ls.Trained(): (minimum.learnt_form(target, N), 0.0),
    }
    for regime, (G, offset) in forms.items():
        missed = np.sum(((B - G) @ U) ** 2, axis=0)
        risk = ls.exact(target, regime, width=N, seed=4).risk
        assert np.isclose((missed.sum() + 0.5 * offset**2) / np.sum(B**2), risk, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0, 2.0])
def test_lines_sum_to_the_theorems(rho):
    target = ls.QuadraticTarget.exponential(200)
    b = target.eigenvalues
    for line, regime in (
        (theory.random_features, ls.RandomFeatures()),
        (theory.neural_tangent, ls.NeuralTangent()),
        (theory.trained, ls.Trained()),
    ):
        learnt, missed = line(b, rho)
        assert np.isclose(missed.sum() / np.sum(b**2), ls.limit(target, regime, rho=rho).risk, rtol=0, atol=1e-10)
        assert np.all(missed >= (b - learnt) ** 2 - 1e-12)  # the diagonal is a part of what is missed


def test_limits_are_what_means_at_given_sizes_tend_to():
    """What the predictions have more than the lines falls like 1/d."""
    away = []
    for d in (40, 80, 160, 320):
        b = 2.0 * (np.arange(d) + 0.5) / d
        once, twice = theory.projected(b, d - d // 4)
        pairs = [((b - once, twice), theory.neural_tangent(b, 0.25))]
        pairs.append((theory.features_at(b, d // 4), theory.random_features(b, 0.25)))
        away.append([np.max(np.abs(here[k] - line[k])) for here, line in pairs for k in (0, 1)])
    slopes = np.polyfit(np.log([40, 80, 160, 320]), np.log(away), 1)[0]
    assert np.all((slopes > -1.25) & (slopes < -0.8)), slopes


def wrong_tangent(b, rank):
    return (1.0 - rank / b.size) * b, (rank / b.size) ** 2 * b**2


def wrong_network(b, rho):
    return trained(b[::-1], rho)


trained = theory.trained


@pytest.mark.parametrize(("name", "wrong"), [("projected", wrong_tangent), ("trained", wrong_network)])
def test_a_wrong_prediction_is_found_out(name, wrong, sizes, tiny, monkeypatch):
    """Planted faults: NT that learns a share ρ of each direction, NN that learns the N smallest."""
    monkeypatch.setattr(theory, name, wrong)
    assert not directions.verdict(directions.data(sizes["directions"], tiny.rows("directions")))[-1].holds


def test_a_sum_that_is_not_the_risk_is_found_out(tiny):
    one = tiny("directions").panels["directions"]
    assert "do NOT equal" in directions.verdict({"directions": one.assign(risk=one.risk + 1e-9)})[-1]

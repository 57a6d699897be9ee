"""Experiments on sizes: exponents and grouped spectra have a second route, and every verdict can say no."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments import load
from lazyscope.experiments.sizes import bridge
from lazyscope.experiments.sizes.scaling_laws import ScalingDraw, path, risks
from lazyscope.limits.spectral.harmonic import steps
from lazyscope.limits.spectral.power_laws import PowerLaw

BAD = {"degrees": "Theory and simulation differ", "scaling-laws": "Scaling laws do NOT hold", "bridge": "NOT reached"}


def planted(name, panels):
    """Panels with one fault each, named: what a wrong formula, rate or draw would leave behind."""
    if name == "degrees":
        for panel, one in panels.items():
            for key in {"expected", "exact_expected"} & set(one):
                yield f"{panel}, {key}", {**panels, panel: one.assign({key: 0.7 * one[key]})}
    elif name == "scaling-laws":
        one, paths, dots = panels["regions"], panels["path"], panels["dots"]
        yield "n", {**panels, "regions": one.assign(measured_n=one.measured_n + 0.03)}
        yield "N", {**panels, "regions": one.assign(measured_N=one.measured_N - 0.03)}
        yield "cost", {**panels, "path": paths.assign(risk=paths.risk * paths.cost**0.03)}
        yield "dots", {**panels, "dots": dots.assign(expected=1.3 * dots.expected)}
    else:
        one, far = panels["risk"], panels["distance"]
        yield "rate", {**panels, "distance": far.assign(distance=far.distance * far.d**0.05)}
        yield "dots", {**panels, "risk": one.assign(expected=1.2 * one.expected)}
        yield "the limit is as good", {**panels, "risk": one.assign(there=one.risk)}


@pytest.mark.parametrize("name", BAD)
def test_the_verdict_agrees_and_says_no_to_a_planted_fault(name, tiny):
    experiment, panels = load(name), tiny(name).panels
    assert BAD[name] not in experiment.verdict(panels)[-1]
    for fault, changed in planted(name, panels):
        assert BAD[name] in experiment.verdict(changed)[-1], fault


def test_lines_close_in_on_the_steps(tiny):
    for panel in tiny("degrees").panels.values():
        tread = panel.sel(kappa=[1.5, 2.5], method="nearest")
        assert np.all(np.diff(np.abs(tread.line - tread.steps).mean("kappa").values) < 0.0)
    assert steps((0.0, 1 / 3, 1 / 3, 1 / 3), np.array([1.0, 1.0001])).round(3).tolist() == [1.0, 0.667]


def test_a_grouped_power_law_is_the_power_law():
    """Against a hundred thousand eigenvalues one by one: at n = 300 they miss a tail of 3·10⁻³ of n."""
    law = PowerLaw(2.0, 0.75)
    plain, grouped = ls.SpectralTarget.power_law(2.0, 0.75, noise=0.1), law.target(0.1)
    for N, n, ridge in ((100.0, 300.0, 0.0), (np.inf, 300.0, 1e-3), (3000.0, 300.0, 0.1), (50.0, np.inf, 0.0)):
        expected = float(risks(plain, N, n, ridge))
        assert float(risks(grouped, N, n, ridge)) == pytest.approx(expected, rel=4e-3), (N, n)


def test_the_draw_is_the_one_that_was_checked():
    """theory.md §9: ξ = i^−1.5, energies i^−2.2, n = 100, N = 300, λ = 0.01, τ = 0.1 has risk 0.031443."""
    draw = ScalingDraw(1.5, 0.4, 300, 100, 0.01, 0.1, 800)
    assert float(risks(draw.target, 300, 100, 0.01)) == pytest.approx(0.031443, abs=5e-7)
    drawn = np.array([float(ScalingDraw(1.5, 0.4, 300, 100, 0.01, 0.1, 800, k).compute()["risk"]) for k in range(12)])
    assert abs(drawn.mean() - 0.031443) < 4.0 * drawn.std(ddof=1) / np.sqrt(12)


def test_the_best_share_of_a_cost_beats_its_neighbours():
    law, cost = PowerLaw(1.5, 0.75), 1e6
    (n,), (least,) = path(law, [cost])
    for factor in (0.7, 1.4):
        assert float(risks(law.target(), cost / (factor * n), factor * n)) > least * 0.9999
    assert float(risks(law.target(), cost / n, n)) == pytest.approx(least, rel=2e-3)


def test_the_rate_is_fitted_over_all_dimensions(tiny):
    far = tiny("bridge").panels["distance"]
    assert bridge.rates(far.assign(distance=far.distance * 0.0 + 3.0 / far.d)) == pytest.approx(-1.0, abs=1e-12)

"""One neuron, one to three inputs, B from 10⁻¹⁵⁰ to 10¹⁵⁰: a right number or a refusal. Minutes: `make validate`.

A number is right when the same call on B of ordinary size gives it too, and when it lies between 0 and the best
constant's risk for what is computed on the population; tests/test_numbers.py checks that ordinary size at d = 1
against least squares on a quadrature.
"""

import warnings

import numpy as np
import pytest

import lazyscope as ls

pytestmark = pytest.mark.slow

EXPONENTS = (-150, -141, -139, -100, -45, -20, -7, 7, 20, 45, 100, 139, 141, 150)
REGIMES = (ls.RandomFeatures, ls.NeuralTangent, ls.Trained, ls.MeanField)  # Taylor models serve other problems
FAST = ls.SGD(steps=20, batch=5, step_sizes=(0.01,), test=50)
# float32 labels differ by their rounding, 6e-8 each, and a fit to 50 of them amplifies that
SAME = {"limit": (1e-9, 1e-12), "exact": (1e-4, 1e-5), "simulate": (1e-3, 1e-6)}


def calls(regime, width):
    """The three fidelities; `simulate` in the way that the regime is trained."""
    protocol = {
        "MeanField": {"samples": 20, "protocol": ls.ParticleDescent(steps=5)},
        "RandomFeatures": {"samples": 50},
    }.get(type(regime).__name__, {"protocol": FAST})
    return {
        "limit": lambda p: ls.limit(p, regime, rho=width / p.d),
        "exact": lambda p: ls.exact(p, regime, width=width),
        "simulate": lambda p: ls.simulate(p, regime, width=width, **protocol),
    }


def answer(call, problem):
    """The risk, or None for a refusal in one line. Anything else, a warning among them, is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = call(problem)
        except ls.LazyscopeError as refusal:
            assert "\n" not in str(refusal).strip()
            return None
    risk = np.asarray(result.risk.values)
    assert np.all(np.isfinite(risk))
    return risk


@pytest.mark.parametrize("kind", REGIMES, ids=lambda kind: kind.__name__)
def test_a_right_number_or_a_refusal(kind, keep):
    counts = {"answers": 0, "refusals": 0, "activations": 0}
    for name in ls.activation_names():
        try:
            regime = kind(name)
        except ls.LazyscopeError:
            continue  # a regime that needs a derivative refuses an activation without one
        counts["activations"] += 1
        for d in (1, 2, 3):
            for fidelity, call in calls(regime, 1).items():
                for given in at_every_scale(fidelity, call, np.array([1.3, -0.4, 0.9])[:d], kind):
                    counts["answers" if given else "refusals"] += 1
    keep(**counts)
    assert counts["answers"] > 0


def at_every_scale(fidelity, call, B, kind):
    """For each scale of B whether there is an answer; an answer is compared with that at scale 1."""
    expected = answer(call, ls.QuadraticTarget(B))
    if fidelity != "simulate" and expected is not None:
        assert np.all(expected >= -1e-9)
        assert np.all(expected <= 1.0 + 1e-5)
    for exponent in EXPONENTS:
        try:
            problem = ls.QuadraticTarget(B * 10.0**exponent)
        except ls.InvalidParameter:
            assert abs(exponent) > 140
            yield False
            continue
        risk = answer(call, problem)
        # the steps of a trained network know the scale of its labels: there is no number to compare with
        if risk is not None and not (fidelity == "simulate" and kind is ls.Trained):
            relative, absolute = SAME[fidelity]
            np.testing.assert_allclose(risk, expected, rtol=relative, atol=absolute)
        yield risk is not None

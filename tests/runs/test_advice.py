"""The contract of refusals: a verb that `NoTheorem` says to use for a problem and a regime does not refuse them, too.

Every problem, with and without what makes theorems fail, is asked with every regime by every verb, in eight dimensions.
What a refusal advises is then done. How fine a number comes out depends on sizes, and is not looked at here.
"""

import warnings

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.errors import InvalidParameter, LazyscopeError, NoTheorem
from lazyscope.evidence.registry import find
from lazyscope.runs import contract

D = 8
PROBLEMS = {
    "quadratic": ls.QuadraticTarget(np.linspace(0.5, 1.5, D)),
    "indefinite": ls.QuadraticTarget(np.array([-1.0, -0.5, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5])),
    "mixture": ls.GaussianMixture.three_level(D, seed=0),
    "mixture, Sigma": ls.GaussianMixture(0.3 * np.ones(D), Sigma=np.linspace(0.8, 1.2, D)),
    "linear": ls.LinearTarget(1.0, 0.3),
    "linear, nonlinear": ls.LinearTarget(1.0, 0.3, 0.5),
    "labels": ls.LinearLabels(1.0),
    "parity": ls.SparseParity(D, 2),
    "monomial": ls.RidgeMonomial(D, 3),
    "harmonic": ls.HarmonicTarget(D, [0.0, 1.0, 0.5]),
    "spectral": ls.SpectralTarget.power_law(1.5, 1.2),
    "relu index": ls.MultiIndex(D, "relu"),
    "he3 index": ls.MultiIndex(D, "he3"),
}
REGIMES = {
    "RF": ls.RandomFeatures("square"),
    "RF relu": ls.RandomFeatures("relu"),
    "RF optimal": ls.RandomFeatures("square", weights="optimal"),
    "RF Γ": ls.RandomFeatures("relu", weights=np.linspace(0.5, 1.5, D)),
    "NT": ls.NeuralTangent("square"),
    "NT relu": ls.NeuralTangent("relu"),
    "joint": ls.JointTangent("relu"),
    "NN": ls.Trained("square"),
    "NN erf": ls.Trained("erf"),
    "NN α": ls.Trained("square", alpha=2.0),
    "NN relu α": ls.Trained("relu", alpha=2.0),
    "Taylor": ls.Taylor(2, "relu3"),
    "MF": ls.MeanField("relu"),
    "GS": ls.GiantStep("erf"),
    "GS, samples": ls.GiantStep("erf", samples=40),
    "isotropic": ls.IsotropicFeatures(),
}


@pytest.fixture(scope="module")
def refusal():
    """Ask a verb, once, and return its refusal, or None."""
    known = {}

    def asked(verb, problem, regime, method=None):
        key = verb, problem, regime, method
        if key not in known:
            known[key] = None
            instance = PROBLEMS[problem], REGIMES[regime]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    contract.evaluate(find(verb, *instance, method), D, instance=instance)
            except LazyscopeError as error:
                known[key] = error
        return known[key]

    return asked


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_a_refusal_advises_is_not_refused(problem, refusal):
    wrong = []
    for regime in REGIMES:
        for verb in ("limit", "exact", "simulate"):
            error = refusal(verb, problem, regime)
            for other, method in error.advised if isinstance(error, NoTheorem) else ():
                then = refusal(other, problem, regime, method)
                if isinstance(then, (NoTheorem, InvalidParameter)):
                    wrong.append(f"{verb}, {regime}: {error}\n  {other}: {then}")
    assert not wrong, "\n".join(wrong)

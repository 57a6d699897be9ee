"""The contract finds what is wrong: a test that cannot fail is none. That it holds for all claims is tests/evidence."""

from dataclasses import replace

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import named
from lazyscope.activations.named import Definition
from lazyscope.evidence import registry
from lazyscope.evidence.claim import at_ratios
from lazyscope.limits.spectral import harmonic
from lazyscope.runs import contract

KEY = "limit/QuadraticTarget/NeuralTangent/neural-tangent"
NT = next(claim for claim in ls.claims() if claim.key == KEY)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    # private: there is no way to take a registered claim back, and none is wanted
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


def registered(**changes):
    """Register Theorem 2 with a mistake, as the answer to a question of its own."""
    changed = replace(NT, title="with a mistake", method="mistaken", dimensions=(20, 40, 80, 160), **changes)
    ls.register(changed)
    return changed


def theorem(problem, rho):
    left = np.maximum(1.0 - rho, 0.0)
    return left**2 * (1.0 - problem.alignment) + left * problem.alignment


def test_the_theorem_itself_passes():
    contract.check(registered(compute=at_ratios(lambda problem, regime, rho: {"risk": theorem(problem, rho)})))


NUMBERS = iter(np.linspace(0.1, 0.2, 1000))
MISTAKES = {
    "a factor": (lambda problem, rho: 1.05 * theorem(problem, rho), "measured d"),
    "no number": (lambda problem, rho: np.nan * rho, "gave no number for risk"),
    "above the best constant": (lambda problem, rho: 2.0 + rho, "not between 0 and 1"),
    "chance": (lambda problem, rho: np.full_like(rho, next(NUMBERS)), "one seed gave two numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_number_is_found(mistake):
    risk, said = MISTAKES[mistake]
    claim = registered(compute=at_ratios(lambda problem, regime, rho: {"risk": risk(problem, rho)}))
    with pytest.raises(AssertionError, match=said) as error:
        contract.check(claim)
    assert str(error.value).startswith(claim.key)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate": 2.0}, "declared d\\^-2.0"),
        ({"rate": None}, "declare a rate"),
        ({"example": lambda d: (NT.example(d)[0], ls.RandomFeatures())}, "method"),
    ],
    ids=["another rate", "no rate", "an example that it does not serve"],
)
def test_a_wrong_declaration_is_found(changes, said):
    with pytest.raises((AssertionError, ls.InvalidParameter), match=said):
        contract.check(registered(**changes))


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (0.85, True)])
def test_a_wrong_factor_of_a_theorem_at_given_sizes_is_found(factor, wrong):
    """15 per cent at N = 80, n = 200: nine standard errors of 40 draws."""
    pair = {claim.fidelity: claim for claim in ls.claims() if claim.title == "random features, every degree"}

    def mistaken(problem, regime, *sizes):
        return {"risk": factor * harmonic.random_features(problem, regime, *sizes)["risk"]}

    changes = {"title": "with a mistake", "method": "mistaken"}
    ls.register(replace(pair["simulate"], **changes))
    claim = replace(pair["limit"], compute=at_ratios(mistaken), dims={}, **changes)
    ls.register(claim)
    if not wrong:
        contract.check(claim)
        return
    with pytest.raises(AssertionError, match="simulations are"):
        contract.check(claim)


def test_a_claim_that_is_never_asked_is_found():
    ls.register(replace(NT, title="the same again"))
    with pytest.raises(AssertionError, match=f"served by another claim, {KEY}"):
        contract.check(replace(NT, title="the same again"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"derivative": lambda u: -u * np.exp(-u * u)}, "derivative"),
        ({"derivative": None}, "belongs to a function that does not jump"),
        ({"degree": 1}, "degree"),
        ({"settles": 1.0}, "settles"),
    ],
    ids=["derivative", "no derivative", "degree", "settles"],
)
def test_an_activation_that_is_not_what_it_declares_is_found(changes, said, monkeypatch):
    bump = Definition("e^(−u²)", lambda u: np.exp(-u * u), lambda u: -2.0 * u * np.exp(-u * u))
    monkeypatch.setitem(named.NAMED, "bump", bump)
    contract.check_activation("bump")
    monkeypatch.setitem(named.NAMED, "bump", replace(bump, **changes))
    with pytest.raises(AssertionError, match=said):
        contract.check_activation("bump")

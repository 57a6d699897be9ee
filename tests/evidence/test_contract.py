"""What is registered is tested: one contract over every claim, and the rates that limits declare."""

import pytest

import lazyscope as ls
from lazyscope.evidence.registry import claims
from lazyscope.runs import contract
from lazyscope.runs.contract import is_open


def by_key(claim):
    return claim.key


@pytest.mark.parametrize("claim", claims(), ids=by_key)
def test_every_claim_keeps_the_contract(claim):
    contract.check_result(claim)


@pytest.mark.parametrize("claim", claims(), ids=by_key)
def test_every_result_survives_netcdf(claim):
    contract.check_file(claim)


@pytest.mark.parametrize("claim", [claim for claim in claims() if claim.fidelity == "limit"], ids=by_key)
def test_limits_equal_or_approach_the_other_fidelity_as_declared(claim):
    contract.check_rate(claim)


@pytest.mark.parametrize("name", ls.activation_names())
def test_named_activations_are_what_they_declare(name):
    contract.check_activation(name)


def test_keys_are_unique_and_every_pair_is_complete():
    keys = [claim.key for claim in claims()]
    assert len(keys) == len(set(keys))

    def pairs(fidelity, among):
        return {(c.problem, c.regime) for c in claims() if c.fidelity == fidelity and c.arguments and among(c)}

    # theorems at given sizes have no limit of d; simulations at these sizes are their check, on the sphere quadrature;
    # and one giant step has no limit that is published with formulas
    on_sphere = (ls.HarmonicTarget, ls.RidgeMonomial)
    assert pairs("limit", lambda c: "rho" in c.arguments) == pairs(
        "exact", lambda c: c.problem not in on_sphere and c.regime is not ls.GiantStep
    )
    # the mean field is learning by descent on any problem: no theorem of this package is its limit
    limits = pairs("limit", lambda c: "psi2" in c.arguments)
    assert limits == pairs("simulate", lambda c: is_open(c) and c.regime is not ls.MeanField)

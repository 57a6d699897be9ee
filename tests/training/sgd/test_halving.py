"""Successive halving of step sizes: the best is kept, and is trained as if it were alone."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.errors import InvalidParameter
from lazyscope.experiments.frame import references
from lazyscope.protocols import SGD

GRID = SGD(steps=400, batch=20, step_sizes=(1e-5, 1e-4, 0.003, 0.01), test=2000)


def trained(protocol: SGD):
    return ls.simulate(ls.QuadraticTarget.exponential(8), ls.Trained("relu"), width=6, protocol=protocol)


def test_halving_ends_with_the_best_step_size_of_the_whole_grid() -> None:
    whole = trained(GRID)
    halved = trained(SGD(**{**GRID.__dict__, "halving": (0.25, 0.5)}))
    assert float(halved.step_size_best) == float(whole.step_size_best) == 0.01
    # the same stream and the same start: products of other shapes round differently in float32, and nothing else does
    np.testing.assert_allclose(halved.risk, whole.risk, rtol=1e-4)
    assert int(np.isfinite(halved.risk_by_step).sum()) == 1


def test_the_best_of_every_stored_run_at_d_450_would_have_been_kept() -> None:
    """Figure 1 tried all six step sizes to the end: halving after 10 % and 30 % of the steps keeps the best of each."""
    runs = [row for kept in references.shipped() for row in kept.rows.values() if "trace" in row]
    whole = [row for row in runs if row["trace"].shape[1] == 6 and np.isfinite(row["trace"][0, :, -1]).sum() > 2]
    assert len(whole) >= 8
    for row in whole:
        trace, samples, left = row["trace"][0], row["samples"], np.arange(6)
        for share in (0.1, 0.3):
            risks = trace[left, np.searchsorted(samples, share * samples[-1])]
            left = left[np.argsort(risks)][: -(-len(left) // 2)]
        assert np.argmin(trace[:, -1]) in left


@pytest.mark.parametrize("shares", [(1.0,), (0.0,), (-0.1,), (np.nan,), "half", 2])
def test_shares_lie_between_0_and_1(shares) -> None:
    with pytest.raises(InvalidParameter, match="halving"):
        SGD(halving=shares)

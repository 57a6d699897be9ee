"""The three fidelities at the paper's own size, d = 450. Minutes each: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def target():
    return ls.QuadraticTarget.exponential(450, seed=100)


def test_sgd_ends_near_the_floor_of_theorem_3(target, keep):
    widths = [45, 225]
    plan = ls.SGD(steps=200_000, step_sizes=(0.002,))
    result = ls.simulate(target, ls.Trained(), width=widths, protocol=plan)
    floor = ls.limit(target, ls.Trained(), rho=np.divide(widths, 450)).risk.values
    keep(widths=widths, step_size=0.002, risk=result.risk.values.tolist(), floor=floor.tolist())
    assert np.all((result.risk.values > floor) & (result.risk.values < floor + 0.015))


def test_fitted_random_features_agree_with_exact(target, keep):
    regime, width, samples = ls.RandomFeatures("relu"), 450, 500_000
    fitted = ls.simulate(target, regime, width=width, samples=samples, draws=4)
    exact = ls.exact(target, regime, width=width, draws=20)
    error = float(np.hypot(fitted.stderr, exact.stderr))
    keep(
        width=width,
        fitted=float(fitted.risk),
        fitted_stderr=float(fitted.stderr),
        exact=float(exact.risk),
        exact_stderr=float(exact.stderr),
    )
    # out of sample the fit pays width/samples of the risk, 0.001
    assert abs(float(fitted.risk) - float(exact.risk)) < 3 * error + width / samples

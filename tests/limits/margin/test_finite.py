"""The probability of separability at given n and N: Cover's count without signal, linear programs with one."""

import numpy as np
import pytest
from scipy.stats import binom

from lazyscope.evidence.run import Run
from lazyscope.limits.margin.finite import separable_share
from lazyscope.limits.margin.separability import separability_threshold
from lazyscope.problems import LinearLabels
from lazyscope.regimes import IsotropicFeatures


@pytest.mark.parametrize(("n", "N"), [(20, 8), (20, 10), (60, 26), (60, 33)])
def test_without_signal_it_is_covers_count(n, N):
    """Labels that no feature knows: 2^(1−n) Σ_{k<N} C(n − 1, k)."""
    share, stderr = separable_share(LinearLabels(1e-9), np.ones(1), N, n, draws=10_000)
    assert abs(share - binom.cdf(N - 1, n - 1, 0.5)) < 3.5 * stderr


@pytest.mark.parametrize("N", [8, 12])
def test_with_signal_it_is_the_share_of_drawn_data_that_a_program_separates(N):
    problem, n, draws = LinearLabels(4.0), 40, 150
    sizes = {"width": (N,), "samples": (n,), "d": (N,)}
    runs = (Run("simulate", problem, IsotropicFeatures(), sizes, "margin", number=k) for k in range(draws))
    share = np.mean([float(run.compute()["separable"]) for run in runs])
    P, stderr = separable_share(problem, np.ones(1), N, n)
    assert abs(share - P) < 3.5 * np.hypot(np.sqrt(P * (1.0 - P) / draws), stderr)


def test_the_step_is_at_the_threshold_and_as_wide_as_the_root_of_n():
    problem = LinearLabels(4.0)
    ratio = float(separability_threshold(problem, IsotropicFeatures()).ratio)
    widths = []
    for n in (100, 400):
        at, above = (separable_share(problem, np.ones(1), round(ratio * n + k * np.sqrt(n)), n)[0] for k in (0.0, 0.5))
        assert abs(at - 0.5) < 1.5 / np.sqrt(n)
        widths.append(above - at)
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


def test_what_features_do_not_see_makes_data_harder_to_separate():
    shares = [separable_share(LinearLabels(4.0), np.array([seen]), 16, 50)[0] for seen in (0.2, 0.6, 1.0)]
    assert shares[0] < shares[1] < shares[2]

"""Sample complexity: crossings and slopes against other routes, each learner on its own, and the gap in small."""

import numpy as np
import pytest
from scipy.stats import linregress, t

import lazyscope as ls
from lazyscope.experiments.beyond import sample_complexity as sample_complexity_experiment
from lazyscope.experiments.beyond.sample_complexity.learners import KERNELS, LEARNERS, error
from lazyscope.experiments.beyond.sample_complexity.numbers import (
    SampleComplexityDraw,
    assemble,
    crossing,
    curves,
    gain,
    grid,
    sample_complexity,
    slope,
)
from lazyscope.population.infinite_width import InfiniteWidthKernel

SEPARATED = ("NTK", "quadratic model", "randomised network")


def learnt(name, problem, n, width=128, seed=0):
    rng = np.random.default_rng(seed)
    X, y = problem.sample(n, rng)
    X_test, _ = problem.sample(1000, rng)
    found = LEARNERS[name](problem, X, y, X_test, width, rng)
    return float(np.min(error(problem, found, problem.target(X_test))))


def test_slopes_equal_an_independent_regression():
    rng = np.random.default_rng(0)
    d = np.array([8.0, 16.0, 64.0])
    needed = 3.0 * d[:, None] ** 1.3 * np.exp(0.1 * rng.standard_normal((3, 5)))
    needed[1, 2] = np.nan
    found, stderr, low, high = slope(d, needed)
    kept = np.isfinite(needed)
    wanted = linregress(np.log(np.broadcast_to(d[:, None], needed.shape)[kept]), np.log(needed[kept]))
    assert found == pytest.approx(wanted.slope) and stderr == pytest.approx(wanted.stderr)
    assert high - found == pytest.approx(t.ppf(0.975, 12) * stderr) == pytest.approx(found - low)
    assert np.all(np.isnan(slope(d, np.full((3, 5), np.nan))))


def test_crossings():
    """Exact for a power law; NaN where the level is not reached, or was from the start."""
    n = np.array([50, 100, 200])
    assert crossing(n, 20.0 / n, 0.2) == pytest.approx(100.0)
    assert crossing(n, 30.0 / n, 0.2) == pytest.approx(150.0)
    assert np.isnan(crossing(n, 60.0 / n, 0.05))
    assert np.isnan(crossing(n[:1], np.array([0.01]), 0.05))
    assert 100 < crossing(n, np.array([0.5, 0.3, 0.0]), 0.05) < 200
    assert grid(8, 64) == [16, 23, 32, 45, 64]


def test_a_crossing_lies_where_the_errors_say():
    draw = SampleComplexityDraw(ls.SparseParity(8), "NTK", most=200)
    row = draw.compute()
    assert row["samples"][-2] < crossing(row["samples"], row["error"], 0.05) <= row["samples"][-1]
    assert row["error"][-1] <= 0.05 < row["error"][-2]
    again = draw.compute()
    assert all(np.array_equal(row[name], again[name]) for name in row), "one seed, one number"
    short = SampleComplexityDraw(ls.SparseParity(8), "NTK", most=30).compute()
    assert np.isnan(crossing(short["samples"], short["error"], 0.05))


def test_the_tangent_kernel_learner_equals_a_dense_solve():
    """The best of its ridges, one by one with numpy, on the same samples."""
    problem, n = ls.SparseParity(7), 60
    rng = np.random.default_rng(3)
    X, y = problem.sample(n, rng)
    X_test, _ = problem.sample(300, rng)
    kernel = InfiniteWidthKernel("relu3", 1, problem.Bx)
    K, wide = kernel(X), kernel(X_test, X)
    wanted = [
        np.mean(np.sign(wide @ np.linalg.solve(K + ridge * K[0, 0] * np.eye(n), y)) != problem.target(X_test))
        for ridge in (1e-4, 1e-2, 1e-1, 1.0)
    ]
    found = LEARNERS["NTK"](problem, X, y, X_test, 0, rng)
    assert error(problem, found, problem.target(X_test)) == pytest.approx(np.array(wanted), abs=0.004)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_from_enough_samples(name):
    """n = 30d for what is trained, 2d² for kernels, d = 10: both far above what each of them needs."""
    assert learnt(name, ls.SparseParity(10), 300) < 0.05
    assert learnt(name, ls.SparseParity(10), 15) > 0.15


@pytest.mark.parametrize("name", LEARNERS)
def test_noisy_labels_are_seen_through(name):
    """5% of the labels wrong, also on inputs that are there twice: the error against the true parity stays small."""
    assert learnt(name, ls.SparseParity(8, flip=0.05), 400) < 0.06


@pytest.mark.parametrize("name", ["NTK", "quadratic model", "trained network"])
def test_monomials_are_learnt_in_squared_error(name):
    problem = ls.RidgeMonomial(8, 2, alpha=3**-0.5)
    assert learnt(name, problem, 320) < 0.1
    assert learnt(name, problem, 16) > 0.4


def test_at_one_n_between_the_two_only_the_quadratic_model_and_networks_have_learnt():
    """d = 32, n = 12d: below n(d) of the kernels, 0.65d², and above that of the others, at most 11d."""
    problem = ls.SparseParity(32)
    errors = {name: learnt(name, problem, 384) for name in LEARNERS}
    assert all(errors[name] > 0.12 for name in KERNELS), errors
    assert all(errors[name] < 0.06 for name in LEARNERS if name not in KERNELS), errors


def test_the_exponents_differ_by_a_half():
    """d = 16 and 40, two data sets each; the validation goes to 96 with more."""
    result = sample_complexity([ls.SparseParity(d) for d in (16, 40)], SEPARATED, draws=2)
    assert np.all(result.missed == 0)
    assert 1.7 < float(result.exponent.sel(learner="NTK")) < 2.2
    for learner in SEPARATED[1:]:
        found, low, high = gain(result, learner)
        assert low < found < high
        assert found > 0.5
        assert result.exponent.sel(learner=learner) < 1.5


def test_assembly_keeps_draws_apart_and_says_what_is_missing():
    plan = [
        SampleComplexityDraw(ls.SparseParity(d), learner, number=number)
        for learner in ("NTK", "quadratic model")
        for d in (4, 8)
        for number in range(3)
        if not (learner == "NTK" and d == 8 and number == 2)
    ]
    rows = []
    for draw in plan:  # 10% at 80 and 2.5% at 320 in d = 4 (four times as many in d = 8): 5% at 160; one never there
        n = 20 * np.array([1, 4, 16]) * (draw.problem.d // 4) ** 2
        missing = draw.learner == "NTK" and draw.number == 1
        rows.append({"samples": n, "error": np.array([0.2, 0.1, 0.06 if missing else 0.025])})
    result = assemble(plan, rows)
    assert result.exponent.values == pytest.approx([2.0, 2.0])
    assert result.missed.values.tolist() == [[1, 1], [0, 0]]
    assert result.needed.values == pytest.approx(np.array([[160.0, 640.0]] * 2))
    assert result.needed_stderr.values[1] == pytest.approx(np.zeros(2), abs=1e-12)
    shown = curves(plan, rows, 8)
    assert shown.samples.values.tolist() == [[80, 320, 1280]] * 2
    assert shown.error.values[0] == pytest.approx([0.2, 0.1, (0.06 + 0.025) / 2])


def test_errors_are_shares_or_relative_squares():
    monomial = ls.RidgeMonomial(3, 2)
    wanted = np.array([1.0, 3.0])
    assert error(monomial, np.array([[1.0, 3.0], [2.0, 2.0]]), wanted) == pytest.approx([0.0, 1.0])
    assert error(ls.SparseParity(3), np.array([[0.0, -1.0]]), np.array([1.0, 1.0])) == pytest.approx([0.5])


def test_bad_input_is_refused_in_one_line():
    with pytest.raises(ls.InvalidParameter, match="one of NTK, NTK, max margin"):
        SampleComplexityDraw(ls.SparseParity(4), "SVM")
    with pytest.raises(ls.InvalidParameter, match="between 0 and 1"):
        SampleComplexityDraw(ls.SparseParity(4), "NTK", level=0.0)
    with pytest.raises(ls.InvalidParameter, match="two dimensions"):
        sample_complexity([ls.SparseParity(4)])
    with pytest.raises(ls.InvalidParameter, match=r"draws .* at least 2"):
        sample_complexity([ls.SparseParity(4), ls.SparseParity(5)], draws=1)
    with pytest.raises(ls.InvalidParameter, match="labels, ±1"):
        LEARNERS["NTK, max margin"](ls.RidgeMonomial(3, 2), np.eye(3) * 3**0.5, np.arange(3.0), np.eye(3), 4, None)
    with pytest.raises(ls.NoTheorem, match="2-XOR"):
        learnt("quadratic model", ls.SparseParity(5, k=3), 20)


def test_the_verdict_says_no_to_wrong_exponents(tiny):
    wrong = {name: panel.copy(deep=True) for name, panel in tiny("sample-complexity").panels.items()}
    for panel in wrong.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][...] = 0.7
    assert sample_complexity_experiment.verdict(wrong)[-1].startswith("Not ")


def test_full_presets_hold_every_learner_and_the_dimensions_of_the_issue():
    paper, quick = (
        sample_complexity_experiment.EXPERIMENT.presets["paper"],
        sample_complexity_experiment.EXPERIMENT.presets["quick"],
    )
    assert set(paper.learners) == set(sample_complexity_experiment.LEARNERS)
    assert (min(quick.xor), max(quick.xor)) == (min(paper.xor), max(paper.xor)) == (16, 96)

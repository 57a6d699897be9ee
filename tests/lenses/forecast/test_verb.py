"""`forecast` on data: against fits on digits, for classes, beyond the rows, and what it refuses."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.limits.spectral.equivalent import Spectrum, risks

RELU = ls.RandomFeatures("relu")


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order] / np.linalg.norm(X[order], axis=1)[:, None], digit[order]


def arc_cosine(X, Z):
    r = np.clip(X @ Z.T, -1.0, 1.0)
    return (np.sqrt(1.0 - r * r) + r * (np.pi - np.arccos(r))) / (2.0 * np.pi)


def test_the_whole_curve_of_the_kernel_on_digits(digits):
    X, digit = digits
    y = np.where(digit % 2 == 0, 1.0, -1.0)
    n, ridge = [50, 150, 400], [1e-3, 0.1]
    found = ls.forecast(X[:600], y[:600], RELU, samples=n, ridge=ridge)
    assert found.risk.dims == ("samples", "ridge") and not found.extrapolated.any()
    rng = np.random.default_rng(1)
    for i, size in enumerate(n):
        measured = []
        for _ in range(6):
            seen = rng.choice(np.arange(600, 1797), size + 500, replace=False)
            train, test = seen[:size], seen[size:]
            K, k = arc_cosine(X[train], X[train]), arc_cosine(X[test], X[train])
            fits = [k @ np.linalg.solve(K + λ * np.eye(size), y[train]) for λ in ridge]
            measured.append([np.mean((f - y[test]) ** 2) for f in fits])
        mean, stderr = np.mean(measured, axis=0), np.std(measured, axis=0) / np.sqrt(6)
        # the jackknife of 600 rows is 7 % at n = 400, three of its standard errors together with those of the fits
        band = np.log(found.high.values[i] / found.risk.values[i]) / 1.7
        assert np.all(np.abs(np.log(found.risk.values[i] / mean)) < 3.0 * np.hypot(band, stderr / mean) + 0.03)


def test_the_peak_of_random_features_on_digits(digits):
    X, digit = digits
    y = np.where(digit % 2 == 0, 1.0, -1.0)
    n, N, ridge = 200, [50, 200, 1000], 1e-3
    found = ls.forecast(X[:700], y[:700], RELU, samples=n, width=N, ridge=ridge).risk.values
    rng = np.random.default_rng(2)
    for width, expected in zip(N, found, strict=True):
        measured = []
        for _ in range(12):
            seen = rng.choice(np.arange(700, 1797), n + 600, replace=False)
            W = rng.standard_normal((width, 64))
            U, V = (np.maximum(X[part] @ W.T, 0.0) / np.sqrt(width) for part in (seen[:n], seen[n:]))
            a = np.linalg.solve(U.T @ U + ridge * np.eye(width), U.T @ y[seen[:n]])
            measured.append(np.mean((V @ a - y[seen[n:]]) ** 2))
        assert abs(np.log(expected / np.mean(measured))) < 0.2  # pool and twelve draws: 7 % and 6 % at the peak
    assert found[1] > 1.3 * max(found[0], found[2])


def test_classes_share_the_decomposition_and_are_those_of_their_own_columns(digits):
    X, digit = digits
    names = np.array(list("abcdefghij"))[digit[:150]]
    whole = ls.forecast(X[:150], names, RELU, samples=[50, 100], ridge=0.1)
    assert whole.risk.dims == ("samples", "target") and whole.target.values.tolist() == list("abcdefghij")
    one = ls.forecast(X[:150], np.where(names == "c", 1.0, -1.0), RELU, samples=[50, 100], ridge=0.1)
    assert np.allclose(whole.risk.sel(target="c"), one.risk, rtol=1e-12)
    again = ls.forecast(X[:150], digit[:150], RELU, samples=[50, 100], ridge=0.1, task="classification")
    assert np.allclose(again.risk, whole.risk, rtol=1e-12)
    two = ls.forecast(X[:150], digit[:150] > 4, RELU, samples=50, ridge=0.1)
    assert two.risk.dims == () and float(two.baseline) == pytest.approx(np.var(np.where(digit[:150] > 4, 1.0, -1.0)))


def test_a_kernel_matrix_gives_what_its_rows_give(digits):
    X, digit = digits
    y = digit[:120] * 1.0
    rows = ls.forecast(X[:120], y, RELU, samples=[20, 100], width=[30, np.inf], ridge=[0.01, 1.0])
    K = arc_cosine(X[:120], X[:120])
    kept = K.copy()
    given = ls.forecast(gram=K, y=y, samples=[20, 100], width=[30, np.inf], ridge=[0.01, 1.0])
    assert np.allclose(rows.risk, given.risk, rtol=1e-8) and np.array_equal(K, kept)
    both = ls.forecast(gram=K, y=np.column_stack([y, 2.0 * y]), samples=20, ridge=0.01)
    assert np.allclose(both.risk, float(given.risk.sel(samples=20, width=np.inf, ridge=0.01)) * np.array([1.0, 4.0]))


def test_the_best_ridge_is_better_than_any(digits):
    X, digit = digits
    y = np.where(digit % 2 == 0, 1.0, -1.0)[:200] + np.random.default_rng(0).standard_normal(200)
    best = ls.forecast(X[:200], y, RELU, samples=[50, 150], width=[60, np.inf])
    assert best.best_ridge.dims == best.risk.dims == ("samples", "width")
    grid = ls.forecast(X[:200], y, RELU, samples=[50, 150], width=[60, np.inf], ridge=np.geomspace(1e-6, 1e3, 400))
    assert np.allclose(best.risk, grid.risk.min("ridge"), rtol=2e-3)
    again = ls.forecast(X[:200], y, RELU, samples=50, width=60, ridge=float(best.best_ridge[0, 0]))
    assert float(again.risk) == pytest.approx(float(best.risk[0, 0]), rel=1e-9)


def test_pure_noise_is_flat_and_beyond_the_rows_too():
    rng = np.random.default_rng(3)
    found = ls.forecast(rng.standard_normal((300, 5)), rng.standard_normal(300), RELU, samples=[50, 300, 3000])
    assert np.all(np.abs(found.share - 1.0) < 0.05)
    assert found.extrapolated.values.tolist() == [False, False, True]
    assert np.all((found.low < found.risk) & (found.risk < found.high))


def test_an_extrapolation_continues_the_power_law_of_a_population():
    """Gaussian features, ξ = i^−1.2, energies i^−1.5, their tails beyond 3,000 as a multiple of I and as noise."""
    rng = np.random.default_rng(4)
    i, rest = np.arange(1.0, 3001.0), np.arange(3001.0, 3e6)
    tail, noise = np.sum(rest**-1.2) + 3e6**-0.2 / 0.2, np.sqrt(np.sum(rest**-1.5) + 2.0 * 3e6**-0.5)
    phi = rng.standard_normal((240, 3000))
    y = phi @ (rng.choice([-1.0, 1.0], (3000, 8)) * i[:, None] ** -0.75) + noise * rng.standard_normal((240, 8))
    K = (phi * i**-1.2) @ phi.T + tail * np.eye(240)
    found = ls.forecast(gram=K, y=y, samples=[60, 240, 960], ridge=1e-2)
    spectrum = Spectrum(i**-1.2, np.ones(3000), i**-1.5, tail)  # the pool has the tail as a multiple of I, so may we
    truth = risks(spectrum, noise, np.array(np.inf), np.array([960.0]), np.array(1e-2))["risk"] + noise**2
    assert found.extrapolated.values.tolist() == [False, False, True]
    assert np.mean((found.low[2] < truth) & (truth < found.high[2])) >= 0.75
    assert np.exp(np.mean(np.log(found.risk[2] / truth))) == pytest.approx(1.0, abs=0.15)
    near = ls.forecast(gram=K, y=y, samples=[240, 241], ridge=1e-2)
    assert np.allclose(near.risk[1] / near.risk[0], 1.0, atol=0.01)  # no step where the rows end


def test_an_intercept_takes_the_mean_out(digits):
    X, digit = digits
    y = digit[:200] * 1.0
    here, there = (ls.forecast(X[:200], y + c, RELU, samples=100, intercept=True).risk for c in (0.0, 1e4))
    assert float(here) == pytest.approx(float(there), rel=1e-6)


def test_copies_of_rows_teach_nothing(digits):
    X, digit = digits
    y = digit[:150] + np.random.default_rng(0).standard_normal(150)
    once = ls.forecast(X[:150], y, RELU, samples=100, ridge=0.1)
    twice = ls.forecast(np.vstack([X[:150]] * 2), np.tile(y, 2), RELU, samples=100, ridge=0.1)
    assert float(once.risk) == pytest.approx(float(twice.risk), rel=1e-6) and "copies" in twice.notes
    K = arc_cosine(X[:150], X[:150])
    doubled = ls.forecast(gram=np.tile(K, (2, 2)), y=np.tile(y, 2), samples=100, ridge=0.1)
    assert float(once.risk) == pytest.approx(float(doubled.risk), rel=1e-6)


def test_a_category_that_fixes_the_target_repeats_by_nature_and_is_learnt():
    """Twelve categories, a number for each: 12 rows differ, and a new row is known as soon as its category is."""
    kind = np.random.default_rng(8).integers(12, size=200)
    X, y = np.eye(12)[kind], np.random.default_rng(9).standard_normal(12)[kind]
    found = ls.forecast(X, y, RELU, samples=[12, 150], ridge=1e-6, intercept=True)
    assert found.notes == "" and float(found.share[1]) < 1e-3 < float(found.share[0])
    doubled = ls.forecast(np.tile(X, (2, 1)), np.tile(y + GOOD[0, 0] * np.arange(200), 2), RELU, samples=50, ridge=1.0)
    assert "200 rows that are copies" in doubled.notes  # a target that its column does not fix tells copies


def test_a_constant_column_and_low_rank_are_no_trouble():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.standard_normal((100, 2)), np.ones(100)])
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    linear = ls.forecast(X, y, lambda X, Z: X @ Z.T, samples=[10, 100, 400], ridge=[0.0, 1e-3])
    n = linear.samples.values[:, None]
    truth = 0.01 * (1.0 + 3.0 / (n - 4.0))  # ordinary least squares with three columns, one of them constant
    assert np.allclose(linear.risk, truth, rtol=0.25)
    assert np.all(np.isfinite(linear.high)) and np.all(np.isfinite(linear.degrees_of_freedom))


def test_a_ridge_below_all_that_rows_can_tell_is_none():
    """Four columns: beside a ridge of 1e-12 or 1e-300 the error is that of none, and what n − 4 rows leave decides."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    found = ls.forecast(X, y, lambda X, Z: X @ Z.T, samples=[20, 400], width=[50, np.inf], ridge=[0.0, 1e-300, 1e-12])
    assert np.allclose(found.risk, found.risk[..., :1], rtol=1e-6) and np.all(found.share < 3.0)


def test_at_the_peak_the_error_grows_like_the_root_of_a_vanishing_ridge():
    ridges = 10.0 ** -np.arange(12.0, 60.0, 8.0)
    found = ls.forecast(GOOD, LABELS, RELU, samples=20, width=20, ridge=ridges).risk.values
    assert np.allclose(np.diff(np.log10(found)), 4.0, atol=0.01)  # (n − df₁)(N − df₁) = λN/κ, n = N


def test_a_target_that_is_zero_in_most_parts_of_the_rows_is_continued():
    X = np.random.default_rng(7).standard_normal((120, 4))
    found = ls.forecast(X, np.eye(120)[0], RELU, samples=[100, 400])
    assert np.all(np.abs(found.share - 1.0) < 0.1) and np.all(found.high > found.low)
    many = ls.forecast(X, np.eye(120)[:, :40], RELU, samples=[100, 400])  # a quarter has thirty rows, and not all forty
    assert many.attrs["band_widened"] == 4.0 and np.all(np.isfinite(many.high))


def test_a_huge_width_is_an_infinite_one():
    found = ls.forecast(GOOD, LABELS, RELU, samples=[10, 30], width=[1e30, 1e300, np.inf], ridge=0.1).risk.values
    assert np.array_equal(found[:, 0], found[:, 2]) and np.array_equal(found[:, 1], found[:, 2])


def test_a_mean_without_a_constant_to_fit_it_is_noted():
    assert "intercept=True" in ls.forecast(GOOD, LABELS + 5.0, RELU, samples=10).notes
    assert ls.forecast(GOOD, LABELS + 5.0, RELU, samples=10, intercept=True).notes == ""


def test_the_result_says_where_it_is_from(digits):
    X, digit = digits
    found = ls.forecast(X[:60], digit[:60], RELU, samples=30, ridge=1.0)
    assert "Deterministic" in found.theorem and "defilippis" in ls.cite(found)
    assert found.attrs["regime"] == "RF, σ = relu" and found.attrs["lazyscope_version"] == ls.__version__


GOOD = np.random.default_rng(6).standard_normal((30, 3))
LABELS = GOOD[:, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ls.forecast(GOOD, LABELS, samples=10), "given with its rows"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, gram=np.eye(30), samples=10), "given with its rows"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=0), "positive whole"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, width=0), "width"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, ridge=-1.0), "ridge"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, ridge="good"), "best"),
        (lambda: ls.forecast(GOOD[:10], LABELS[:10], RELU, samples=5), "at least 20 rows"),
        (lambda: ls.forecast(np.repeat(GOOD[:10], 3, 0), np.repeat(LABELS[:10], 3), RELU, samples=5), "that differ"),
        (lambda: ls.forecast(np.where(GOOD > 2.0, np.nan, GOOD), LABELS, RELU, samples=10), "NaN"),
        (lambda: ls.forecast(GOOD, np.full(30, np.nan), RELU, samples=10), "NaN"),
        (lambda: ls.forecast(GOOD, np.ones(30), RELU, samples=10), "vary"),
        (lambda: ls.forecast(GOOD, 1.0 + 1e-17 * np.arange(30), RELU, samples=10), "vary"),
        (lambda: ls.forecast(GOOD, ["a", None] * 15, RELU, samples=10), "class for each row"),
        (lambda: ls.forecast(GOOD, [f"row {k}" for k in range(30)], RELU, samples=10), "classes that repeat"),
        (lambda: ls.forecast(GOOD, LABELS[:29], RELU, samples=10), "entry for each"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, task="both"), "task"),
        (lambda: ls.forecast(GOOD, ["a"] * 30, RELU, samples=10, task="regression"), "numbers for a regression"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=31), "at most the number of rows"),
        (lambda: ls.forecast(GOOD, LABELS, ls.NeuralTangent("relu"), samples=10, width=50), "width = inf"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, bias=-1.0), "bias"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, scale="small"), "scale"),
        (lambda: ls.forecast(GOOD, LABELS, RELU, samples=10, intercept=2), "intercept"),
        (lambda: ls.forecast(gram=GOOD, y=LABELS, samples=10), "matrix"),
        (lambda: ls.forecast(gram=GOOD @ GOOD.T - np.eye(30), y=LABELS, samples=10), "positive"),
        (lambda: ls.forecast(gram=np.full((30, 30), np.inf), y=LABELS, samples=10), "infinite"),
    ],
)
def test_what_cannot_be_forecast_is_refused_in_a_line(call, words):
    with pytest.raises(ls.LazyscopeError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_more_sizes_than_memory_has_room_for_are_refused_before_any_work():
    sizes = np.arange(1, 20_001)
    with pytest.raises(ls.LazyscopeError, match=r"A forecast at 400,000,000 sizes needs about .* GB"):
        ls.forecast(gram=np.eye(90), y=np.ones(90), samples=sizes, width=sizes, ridge=1.0)

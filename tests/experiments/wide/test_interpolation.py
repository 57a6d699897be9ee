"""Interpolation: thresholds as counts of parameters, ranks and fits against independent linear algebra."""

import numpy as np
import pytest
from scipy.stats import beta

import lazyscope as ls
from lazyscope.experiments.wide import interpolation as experiment
from lazyscope.experiments.wide.interpolation import InterpolationDraw, interpolation, threshold
from lazyscope.training.linear.interpolate import features, fitted, trained


@pytest.fixture(scope="module")
def smooth():
    return interpolation(40, 8, activation="tanh", draws=4)


def test_linear_models_fit_from_their_count_of_parameters_on(smooth):
    for kind, N in (("RF", 40), ("NT", 5)):  # 5·8 + 1 ≥ 40
        one = smooth.sel(kind=kind)
        assert float(one.threshold) == float(one.smallest) == N and float(one.transition) == 0.0
        fits, widths = one.fits.values, one.width.values
        assert np.all(fits[widths < N] == 0.0) and np.all(fits[widths >= N] == 1.0)
        parameters = widths if kind == "RF" else 8 * widths + 1
        assert np.array_equal(one["rank"].values, np.minimum(parameters, 40))


def test_trained_networks_fit_about_where_they_have_enough_parameters(smooth):
    one = smooth.sel(kind="NN")
    assert float(one.threshold) == 5.0  # 5·9 + 1 ≥ 40
    assert 5.0 <= float(one.smallest) <= 6.5
    assert np.all(one.fits.values[one.width.values < 5] == 0.0)  # no network has more parameters than it has


def test_square_activation_has_fewer_independent_parameters():
    """Nd − N(N−1)/2 by the rank of the linear map A ↦ WAᵀ + AWᵀ itself."""
    rng = np.random.default_rng(0)
    d = 6
    for N in (1, 3, 6, 9):
        W = rng.standard_normal((d, N))
        images = []
        for index in np.ndindex(d, N):
            A = np.zeros((d, N))
            A[index] = 1.0
            images.append((W @ A.T + A @ W.T).ravel())
        dimension = np.linalg.matrix_rank(np.array(images))
        assert dimension == min(N, d) * d - min(N, d) * (min(N, d) - 1) // 2
        phi = features("NT", ls.Activation("square"), rng.standard_normal((60, d)), W)
        assert fitted(phi, rng.standard_normal(60))[1] == dimension + 1  # and the offset
    found = interpolation(19, d, activation="square", kinds=("RF", "NT"), draws=3)
    assert found.smallest.values.tolist() == found.threshold.values.tolist() == [19.0, 4.0]


def test_beyond_all_quadratic_forms_nothing_fits():
    square = ls.Activation("square")
    assert threshold("RF", 23, 6, square) == np.inf and threshold("RF", 22, 6, square) == 22.0
    assert threshold("NT", 23, 6, square) == np.inf and threshold("NT", 22, 6, square) == 6.0
    row = InterpolationDraw("RF", 23, 6, 200, "square").compute()
    assert int(row["rank"]) == 22 and float(row["residual"]) > 1e-3


def test_fits_against_least_squares():
    rng = np.random.default_rng(1)
    for shape in ((20, 12), (20, 20), (20, 35)):
        phi, y = rng.standard_normal(shape), rng.standard_normal(20)
        residual, rank = fitted(phi, y)
        beta = np.linalg.lstsq(phi, y, rcond=None)[0]
        assert rank == min(shape)
        assert residual == pytest.approx(np.linalg.norm(y - phi @ beta) / np.linalg.norm(y), abs=1e-9)


def test_tangent_features_are_derivatives():
    rng = np.random.default_rng(0)
    sigma, X, W, A = ls.Activation("tanh"), *(rng.standard_normal(s) for s in ((5, 3), (3, 4), (3, 4)))
    step = 1e-6
    slope = (sigma(X @ (W + step * A)).sum(axis=1) - sigma(X @ (W - step * A)).sum(axis=1)) / (2 * step)
    assert np.allclose(features("NT", sigma, X, W)[:, :-1] @ A.T.ravel(), slope, atol=1e-8)


def test_descent_reaches_zero_where_there_is_room():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((25, 5)), rng.standard_normal(25)
    assert trained(ls.Activation("relu"), X, y, rng, 15, 1e-7) < 1e-6
    assert trained(ls.Activation("relu"), X, y, rng, 2, 1e-7) > 1e-2


def test_one_seed_one_number():
    rows = [InterpolationDraw("NN", 20, 4, 5, number=2, seed=3).compute() for _ in range(2)]
    assert rows[0]["residual"] == rows[1]["residual"]


BAD = {
    "n": lambda: interpolation(0, 5),
    "d": lambda: interpolation(10, 0),
    "kinds": lambda: interpolation(10, 5, kinds=("NTK",)),
    "no kinds": lambda: interpolation(10, 5, kinds=()),
    "sign": lambda: interpolation(10, 5, activation="sign"),
    "unknown": lambda: interpolation(10, 5, activation="nothing"),
    "widths": lambda: interpolation(10, 5, widths=[0]),
    "draws": lambda: interpolation(10, 5, draws=0),
    "too many for quadratic forms": lambda: interpolation(100, 5, activation="square", kinds=("RF",)),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_line(case):
    with pytest.raises(ls.LazyscopeError) as caught:
        case()
    assert "\n" not in str(caught.value) and 20 < len(str(caught.value)) < 600


def moved(panels, panel, **changes):
    """The same findings with some variables of one panel replaced."""
    return {**panels, panel: panels[panel].assign(**changes)}


def test_the_experiment_and_its_verdict(tiny):
    panels = tiny("interpolation").panels
    one = panels["n = 24"]
    for kind, least in (("RF", 24.0), ("NT", 6.0)):  # 6·4 + 1 ≥ 24
        assert float(one.smallest.sel(kind=kind)) == float(one.threshold.sel(kind=kind)) == least
    far = moved(panels, "n = 24", smallest=one.smallest + 1.0)
    assert experiment.verdict(far)[-1] == "Not as counted: RF at n = 24, NT at n = 24."
    assert "RF at n = 24" in experiment.verdict(moved(panels, "n = 24", z=one.z + 4.0))[-1]


def test_what_random_labels_leave_is_a_beta_variable(tiny):
    """Mean and standard error of ‖P⊥y‖²/‖y‖² against those of Beta((n − p)/2, p/2)."""
    one = tiny("interpolation").panels["n = 24"].sel(kind="RF").isel(point=0)
    law = beta((24 - float(one.width)) / 2, float(one.width) / 2)
    assert float(one.expected) == pytest.approx(law.mean())
    assert float(one.expected_stderr) == pytest.approx(law.std() / 2.0)  # four draws

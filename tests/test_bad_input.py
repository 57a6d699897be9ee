"""Bad input gets one clear line: over a thousand random ones, and each kind by name."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import lazyscope as ls

SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
TARGET = ls.QuadraticTarget([2.0, 1.0, 0.5])
MIXTURE = ls.GaussianMixture([0.3, 0.2, -0.1])
REGIMES = [ls.RandomFeatures(), ls.RandomFeatures("relu"), ls.NeuralTangent(), ls.Trained()]


def assert_one_clear_line(action):
    """The action raises a LazyscopeError whose message is one full line."""
    with pytest.raises(ls.LazyscopeError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    assert 20 < len(message) < 600
    assert message[0].isupper() and message.rstrip()[-1] in ".?"


finite = st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-3)
not_finite = st.sampled_from([np.nan, np.inf, -np.inf])
not_numbers = st.one_of(st.text(max_size=3), st.none(), st.complex_numbers(min_magnitude=1), st.binary(max_size=2))


@st.composite
def not_a_symmetric_matrix(draw):
    """Non-square, asymmetric, of a wrong rank or type, empty, or with NaN or infinity in it."""
    kind = draw(st.sampled_from(["shape", "asymmetric", "rank", "type", "empty", "value"]))
    if kind == "shape":
        shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda s: s[0] != s[1]))
        return draw(arrays(float, shape, elements=finite))
    if kind == "asymmetric":
        d = draw(st.integers(2, 6))
        M = draw(arrays(float, (d, d), elements=finite))
        M = M + M.T
        M[0, 1] += draw(st.floats(1e-3, 1.0)) * (1 + np.max(np.abs(M)))
        return M
    if kind == "rank":
        return draw(st.sampled_from([3.0, np.ones((2, 2, 2))]))
    if kind == "type":
        return draw(st.lists(not_numbers, min_size=1, max_size=4))
    if kind == "empty":
        return draw(st.sampled_from([[], np.zeros((0, 0)), [[]]]))
    vector = draw(arrays(float, draw(st.integers(1, 6)), elements=finite))
    vector[draw(st.integers(0, vector.size - 1))] = draw(not_finite)
    return np.diag(vector) if draw(st.booleans()) else vector


@given(not_a_symmetric_matrix())
@SETTINGS
def test_matrices_that_are_none(M):
    for build in (
        ls.QuadraticTarget,
        ls.GaussianMixture,
        lambda M: ls.GaussianMixture([0.1, 0.1], M),
        lambda M: ls.RandomFeatures(weights=M),
    ):
        assert_one_clear_line(lambda build=build: build(M))


@st.composite
def not_a_ratio(draw):
    """ρ that is zero, negative, NaN, no number, empty, or of two dimensions."""
    bad = draw(st.one_of(st.floats(max_value=0.0, allow_nan=False), st.just(np.nan)))
    return draw(
        st.one_of(
            st.just(bad),
            st.lists(st.floats(0.1, 10), max_size=4).map(lambda good: [*good, bad]),
            st.sampled_from([[], None, "x", "0.5", [[0.5, 1.0]], {}, 1j, np.array([1j]), [None], [[1], [2, 3]]]),
        )
    )


@given(not_a_ratio(), st.sampled_from(REGIMES), st.sampled_from([TARGET, MIXTURE]))
@SETTINGS
def test_ratios_that_are_none(rho, regime, problem):
    assert_one_clear_line(lambda: ls.limit(problem, regime, rho=rho))


@st.composite
def not_a_width(draw):
    """N that is zero, negative, fractional, NaN, infinite, no number, or too large for any memory."""
    bad = draw(
        st.one_of(
            st.integers(-1000, 0),
            st.floats(0.01, 100).filter(lambda v: v != int(v)),
            not_finite,
            st.integers(10**8, 10**15),
            st.integers(10**30, 10**40),
        )
    )
    others = st.sampled_from([[], None, "450", [[1, 2]], {}, 1j, 10**400])
    return draw(st.one_of(st.just(bad), st.just([5, bad]), others))


@given(not_a_width(), st.sampled_from([REGIMES[0], REGIMES[1], ls.NeuralTangent("relu"), ls.Trained("relu")]))
@SETTINGS
def test_widths_that_are_none(width, regime):
    assert_one_clear_line(lambda: ls.exact(TARGET, regime, width=width))


@given(
    st.sampled_from(["draws", "seed"]),
    st.one_of(st.integers(max_value=-1), st.floats(0.1, 0.9), not_finite, not_numbers, st.just([1, 2]), st.just(True)),
)
@SETTINGS
def test_draws_and_seeds_that_are_none(name, value):
    assert_one_clear_line(lambda: ls.exact(TARGET, REGIMES[0], width=3, **{name: value}))


@given(st.text(max_size=8).filter(lambda t: t not in ls.activation_names()))
@SETTINGS
def test_unknown_activations(name):
    for regime in (ls.RandomFeatures, ls.NeuralTangent, ls.Trained):
        assert_one_clear_line(lambda regime=regime: regime(name))


@given(arrays(float, st.integers(2, 6), elements=st.floats(-3, 3)), st.integers(0, 10_000))
@SETTINGS
def test_what_must_be_positive_definite(values, seed):
    values[0] = -abs(values[0]) - 0.1
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((values.size, values.size)))[0]
    full = (Q * values) @ Q.T
    d = values.size
    target, with_optimal = ls.QuadraticTarget(np.ones(d)), ls.RandomFeatures(weights="optimal")
    for M in (values, (full + full.T) / 2):
        assert_one_clear_line(lambda M=M: ls.GaussianMixture(np.full(d, 0.01), M))  # Σ
        assert_one_clear_line(lambda M=M: ls.GaussianMixture(M * (2 / abs(values[0]))))  # I ± Δ
        # Γ: a diagonal one is refused at once, a full one when it meets a problem
        assert_one_clear_line(lambda M=M: ls.limit(target, ls.RandomFeatures(weights=M), rho=1.0))
        assert_one_clear_line(lambda M=M: ls.exact(target, ls.RandomFeatures(weights=M), width=2))
        assert_one_clear_line(lambda M=M: ls.limit(ls.QuadraticTarget(M), ls.Trained(), rho=1.0))
        assert_one_clear_line(lambda M=M: ls.limit(ls.QuadraticTarget(M), with_optimal, rho=1.0))


CASES = {
    "zero target": lambda: ls.QuadraticTarget(np.zeros(3)),
    "huge target": lambda: ls.QuadraticTarget([1e200, 1.0]),
    "b0": lambda: ls.QuadraticTarget([1.0], b0=np.nan),
    "b0 text": lambda: ls.QuadraticTarget([1.0], b0="1"),
    "zero difference": lambda: ls.GaussianMixture(np.zeros(3)),
    "sizes": lambda: ls.GaussianMixture([0.1, 0.1], [1.0, 1.0, 1.0]),
    "d too small": lambda: ls.GaussianMixture.three_level(4),
    "d too large": lambda: ls.QuadraticTarget.exponential(10**14),
    "weights' size": lambda: ls.limit(TARGET, ls.RandomFeatures(weights=[1.0, 1.0]), rho=1.0),
    "weights' name": lambda: ls.RandomFeatures(weights="best"),
    "zero weights": lambda: ls.RandomFeatures(weights=np.zeros(3)),
    "zero column": lambda: ls.FixedWeights(np.array([[1.0, 0.0], [1.0, 0.0]])),
    "transposed weights": lambda: ls.exact(TARGET, ls.RandomFeatures(weights=ls.FixedWeights(np.ones((2, 3))))),
    "draws of fixed weights": lambda: ls.exact(TARGET, ls.RandomFeatures(weights=ls.FixedWeights(np.eye(3))), draws=2),
    "width of fixed weights": lambda: ls.exact(TARGET, ls.RandomFeatures(weights=ls.FixedWeights(np.eye(3))), width=2),
    "limit of fixed weights": lambda: ls.limit(TARGET, ls.RandomFeatures(weights=ls.FixedWeights(np.eye(3)))),
    "tangent of sign": lambda: ls.NeuralTangent("sign"),
    "training of sign": lambda: ls.exact(TARGET, ls.Trained("sign"), width=2),
    "no problem": lambda: ls.limit("quadratic", ls.Trained(), rho=1.0),
    "no regime": lambda: ls.limit(TARGET, "NN", rho=1.0),
    "regime for problem": lambda: ls.exact(ls.Trained(), TARGET, width=1),
    "bayes as a network": lambda: ls.limit(TARGET, ls.Bayes(), rho=1.0),
    "bayes of nothing": lambda: ls.bayes(3.0),
    "bayes by simulation": lambda: ls.bayes(MIXTURE, fidelity="simulate"),
    "less than one neuron": lambda: ls.limit(TARGET, ls.Trained(), rho=0.1),
    "cite": lambda: ls.cite({"a": 1}),
    "kinks": lambda: ls.Activation(np.tanh, kinks=(np.nan,)),
    "kinks of a name": lambda: ls.Activation("tanh", kinks=(1.0,)),
    "weight norm": lambda: ls.Activation("tanh").second_moment(0.0),
    "degree": lambda: ls.Activation("tanh").hermite(500),
    "huge mixture": lambda: ls.GaussianMixture([1e150], [1e151]),
    "tiny weights": lambda: ls.RandomFeatures(weights=[1e-300, 1e-300]),
    "huge fixed weights": lambda: ls.FixedWeights(np.full((2, 2), 1e200)),
    "callable that fails": lambda: ls.Activation(lambda u: u[10**6]),
    "complex callable": lambda: ls.Activation(lambda u: u + 1j),
    "no derivative": lambda: ls.Activation("step").derivative(0.0),
    "far too steep": lambda: ls.Activation("sin").hermite(1, 1e6),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_kind_by_name(case):
    assert_one_clear_line(case)


def test_the_estimate_is_in_the_message():
    with pytest.raises(ls.TooLarge, match=r"N = 1000000 needs about .* GB, and .* GB are available\. Use"):
        ls.exact(TARGET, ls.RandomFeatures("relu"), width=1_000_000)

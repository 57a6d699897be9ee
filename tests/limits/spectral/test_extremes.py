"""Every size, ridge, degree and dimension gives a number with a small residual, or a refusal that names what fails."""

import numpy as np
import pytest

import lazyscope as ls

INF = float("inf")
SIZES = np.array([1.0, 2.0, 10.0, 1000.0, 1e5, INF])
RIDGES = np.concatenate([[0.0], 10.0 ** np.arange(-12, 7, 3)])
ENERGIES = ([1.0], [0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.2, 0.3, 0.4], [0.0])


def sound(found):
    """No NaN, nothing negative, and the equation solved."""
    assert float(found.residual.max()) < 1e-12
    assert not any(np.any(np.isnan(values)) for values in found.data_vars.values())
    assert float(found.risk.min()) >= 0.0 and float(found.train.min()) >= 0.0
    assert float(found.learnt.min()) >= 0.0 and float(found.learnt.max()) <= 1.0


@pytest.mark.parametrize("d", [2, 5, 1000, 10**6])
@pytest.mark.parametrize("name", ["relu", "tanh", "square"])
@pytest.mark.parametrize("kind", [ls.RandomFeatures, ls.NeuralTangent])
def test_limits_at_every_size(d, name, kind):
    widths = SIZES if kind is ls.RandomFeatures else np.concatenate([2 * d * np.array([1, 2, 10, 100]), [INF]])
    refused = 0
    for energies in ENERGIES:
        try:
            found = ls.limit(
                ls.HarmonicTarget(d, energies, noise=0.1), kind(name), width=widths, samples=SIZES, ridge=RIDGES
            )
        except ls.NotConverged as error:
            assert "known to degree" in str(error) and d <= 5 and name == "relu"  # a long spectrum, in few dimensions
            refused += 1
            continue
        sound(found)
        if not sum(energies):
            assert np.all(found.bias == 0.0)
    assert refused in (0, len(ENERGIES))


def test_few_dimensions_and_a_kink_are_served_while_the_spectrum_lasts():
    for d in (2, 3):
        target = ls.HarmonicTarget(d, [0.1, 0.5, 0.4], noise=0.1)
        for kind, samples in ((ls.RandomFeatures, [1, 5, 20]), (ls.NeuralTangent, [1, 3, 5])):
            sound(ls.limit(target, kind("relu"), width=[2 * d, INF], samples=samples, ridge=[1e-3, 1.0, 1e6]))


@pytest.mark.parametrize("n", [1.0, 7.0, 400.0, 1e5])
def test_the_threshold_at_every_ridge(n):
    """n = N (RF) and n = Nd (NT): the peak grows as the ridge falls, and is infinite without one."""
    target = ls.HarmonicTarget(10, [0.0, 0.5, 0.5], noise=0.3)
    for regime, N in ((ls.RandomFeatures("relu"), n), (ls.NeuralTangent("relu"), n / 10)):
        if isinstance(regime, ls.NeuralTangent) and N < 20:
            continue
        found = ls.limit(target, regime, width=N, samples=n, ridge=[0.0, 1e-12, 1e-9, 1e-6, 1e-3])
        assert float(found.residual.max()) < 1e-12
        assert np.isinf(found.risk[0]) and np.all(np.diff(found.risk.values[1:]) < 0.0)


def test_an_odd_activation_keeps_the_risk_of_an_even_target():
    target = ls.HarmonicTarget(20, [0.0, 0.0, 1.0])
    for kind, widths in ((ls.RandomFeatures, [10, 1e4, INF]), (ls.NeuralTangent, [40, 1e4, INF])):
        found = ls.limit(target, kind("erf"), width=widths, samples=INF, ridge=1e-3)
        assert np.allclose(found.risk, 1.0, rtol=1e-14) and np.all(found.learnt.values[:, 2] == 0.0)
        few = ls.limit(target, kind("erf"), width=widths, samples=[1, 30, 1e6], ridge=[1e-3, 1.0])
        assert np.all(few.risk >= 1.0) and np.all(few.learnt.values[..., 2] == 0.0)  # what is unseen acts as noise
        assert float(ls.exact(target, kind("erf"), width=30).risk) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", [ls.RandomFeatures, ls.NeuralTangent])
def test_one_neuron_one_sample_two_dimensions_are_simulated(kind):
    for d in (2, 16):
        for energies in ([1.0], [0.0, 1.0], [0.0]):
            target = ls.HarmonicTarget(d, energies)
            found = ls.simulate(target, kind("relu"), width=[1, 5], samples=1, ridge=[0.0, 1e-12, 1.0, 1e6], draws=2)
            assert not any(np.any(np.isnan(values)) for values in found.data_vars.values())
            assert np.allclose(found.risk[:, -1], sum(energies), atol=0.05)  # 8000 test samples; a ridge of 10⁶


def test_given_spectra_at_every_size():
    for target in (
        ls.SpectralTarget([1.0], [1.0]),
        ls.SpectralTarget([1.0, 0.0], [0.5, 0.5], [1, 5], noise=0.1),
        ls.SpectralTarget([0.0], [1.0]),
        ls.SpectralTarget([1e-30, 1e30], [1.0, 1.0]),
        ls.SpectralTarget.power_law(1.5, 0.5, terms=1000, noise=0.1),
    ):
        found = ls.limit(target, ls.RandomFeatures(), width=SIZES, samples=SIZES, ridge=RIDGES)
        assert float(found.residual.max()) < 1e-12
        assert not any(np.any(np.isnan(values)) for values in found.data_vars.values())

"""The spectrum of the kernel matrix: the verdict believes the theory, and no other."""

import numpy as np

from lazyscope.experiments.ridge import kernel_spectrum
from lazyscope.limits.spectral import feature_matrix


def test_drawn_spectra_meet_the_theory(tiny):
    lines = kernel_spectrum.verdict(tiny("kernel-spectrum").panels)
    assert "is that of large matrices" in lines[-1] and "NOT" not in lines[-1]


def test_a_spectrum_without_its_linear_part_is_found_out(tiny, sizes, monkeypatch):
    """Planted fault: Marchenko and Pastur with the whole variance, for features that are partly linear."""
    right, preset = feature_matrix.density, sizes["kernel-spectrum"]
    rows = [draw.compute() for draw in kernel_spectrum.work(preset)]
    monkeypatch.setattr(
        feature_matrix, "density", lambda x, b1, b_star, psi1, psi2: right(x, 0.0, np.hypot(b1, b_star), psi1, psi2)
    )
    assert "is NOT that of large matrices" in kernel_spectrum.verdict(kernel_spectrum.data(preset, rows))[-1]


def test_a_spike_in_the_wrong_place_is_found_out(tiny):
    panels = dict(tiny("kernel-spectrum").panels)
    panels["distance"] = panels["distance"].assign(spike=1.1 * panels["distance"].spike)
    assert "NOT at their places" in kernel_spectrum.verdict(panels)[-1]

"""The figure giant-step: a dot needs two halves of n samples, and a verdict that finds a kernel that is better."""

import numpy as np

from lazyscope.experiments.dynamics import giant_step


def test_each_dot_has_all_of_its_samples_counted(sizes):
    preset = sizes["giant-step"]
    runs = [run for run in giant_step.work(preset) if run.fidelity == "simulate"]
    used = {run.regime.samples + run.sizes["samples"][0] for run in runs}
    assert used == {ratio * preset.d for ratio in preset.ratios}


def test_the_verdict_says_where_a_kernel_is_better(tiny):
    panels = tiny("giant-step").panels
    panel = panels["samples"]
    assert np.all(panel.exact < panel.simulate)  # n = ∞ for the second layer
    assert np.all(np.diff(panel.kernel_line) < 0.0) and float(panel.kernel_line[0]) > panel.attrs["floor"]
    better = panel.assign(simulate=0.1 + 0.0 * panel.simulate, simulate_stderr=0.01 + 0.0 * panel.simulate)
    assert giant_step.verdict(panels | {"samples": better})[-1].startswith("One step beats the best kernel")
    worse = better.assign(simulate=panel.kernel + 0.01)
    assert "is not below the best kernel at n = 16d" in giant_step.verdict(panels | {"samples": worse})[-1]

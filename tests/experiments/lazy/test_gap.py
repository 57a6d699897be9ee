"""The verdict on the gap can say no."""

import numpy as np

from lazyscope.experiments import load


def changed(panels, panel, name, values):
    other = panels[panel].copy(deep=True)
    other[name] = (panels[panel][name].dims, values)
    return {**panels, panel: other}


def test_the_verdict_says_no_to_other_numbers(tiny):
    experiment, panels = load("gap"), tiny("gap").panels
    assert experiment.verdict(panels)[-1] == "Gap, parameters and activations are as stated."
    wrong = {
        "gaps of drawn weights": ("gap", "gap", panels["gap"].gap.values + 0.5),
        "the largest gap": ("gap", "largest", 0.5 * panels["gap"].largest.values),
        "ratios": ("ratio", "line", panels["ratio"].line.values[::-1]),
        "independence": ("activations", "wide", panels["activations"].wide.values + np.eye(6)[1] * 1e-3),
        "risk against parameters": ("parameters", "risk", panels["parameters"].risk.values + 0.5),
    }
    for words, change in wrong.items():
        assert words in experiment.verdict(changed(panels, *change))[-1]

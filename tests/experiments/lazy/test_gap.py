"""The verdict on the gap can say no."""

import numpy as np

from lazyscope.experiments import load


def changed(panels, panel, name, values):
    other = panels[panel].copy(deep=True)
    other[name] = (panels[panel][name].dims, values)
    return {**panels, panel: other}


def test_the_verdict_says_no_to_other_numbers(tiny):
    experiment, panels = load("gap"), tiny("gap").panels
    right = experiment.verdict(panels)[-1]
    assert right.holds and "bounds and limits are as stated" in right
    wrong = {
        "too far: gap, 0, N = 3": ("dots", "predicted", panels["dots"].predicted.values + np.eye(1, 85)[0] * 1e-3),
        "not as chance would have it": ("dots", "predicted", 0.97 * panels["dots"].predicted.values),
        "the largest gap": ("gap", "largest", 0.5 * panels["gap"].largest.values),
        "ratios": ("ratio", "line", panels["ratio"].line.values[::-1]),
        "independence": ("activations", "wide", panels["activations"].wide.values + np.eye(6)[1] * 1e-3),
    }
    for words, change in wrong.items():
        answer = experiment.verdict(changed(panels, *change))[-1]
        assert words in answer and not answer.holds

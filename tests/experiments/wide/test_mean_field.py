"""Mean field: convex in the measure, and a verdict that says what is not as predicted."""

import numpy as np

from lazyscope.experiments.wide import mean_field


def moved(panels, panel, **changes):
    """The same findings with some variables of one panel replaced."""
    return {**panels, panel: panels[panel].assign(**changes)}


def test_mean_field(tiny):
    panels = tiny("mean-field").panels
    minima, between = panels["minima"], panels["between"]
    assert minima.certified.values.tolist() == [False, True]
    assert float(minima.gap.sel(activation="square")[-1]) < 1e-5
    assert np.all(np.diff(between.mixtures, 2) > -1e-9)  # convex, where the straight line is not
    assert np.any(np.diff(between.straight, 2) < -1e-4)
    flat = moved(panels, "particles", exponent=-0.3, exponent_stderr=0.01)
    assert "the rate" in mean_field.verdict(flat)[-1]
    assert "the gap of relu" in mean_field.verdict(moved(panels, "minima", gap=minima.gap + 1.0))[-1]
    bent = moved(panels, "between", mixtures=between.mixtures + between.share * (1.0 - between.share))
    assert "convexity" in mean_field.verdict(bent)[-1]
    beaten = moved(panels, "particles", excess=panels["particles"].excess - 0.5)
    assert "a measure that was beaten" in mean_field.verdict(beaten)[-1]

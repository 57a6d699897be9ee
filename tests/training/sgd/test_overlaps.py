"""Overlaps in the Dataset of simulate: named as limit names them, and the network's own."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.evidence.run import Run
from lazyscope.limits.sgd.order_parameters.machine import Machine
from lazyscope.runs.assembly import assemble

D, STEP = 60, 0.5
PROBLEM, REGIME = ls.MultiIndex(D, "committee-erf2", indices=2), ls.Trained("erf2", init=0.5)


def plain(*step_sizes, test=10_000):
    """The algorithm of the equations."""
    sizes = tuple(step / (2 * D) for step in step_sizes or (STEP,))
    return ls.SGD(batch=1, step_sizes=sizes, decay=(), test=test, second_layer="sum")


def test_they_begin_where_the_equations_do_and_stay_near_them():
    run = ls.simulate(PROBLEM, REGIME, width=3, samples=5 * D, protocol=plain())
    line = ls.limit(PROBLEM, REGIME, width=3, times=np.append(0.0, run.samples / D), step_size=STEP)
    for name in ("Q", "R"):
        assert run[name].dims == ("samples", *line[name].dims[1:])
        assert run[name].attrs["long_name"] == line[name].attrs["long_name"]
        first, theirs = run[name].values[0], line[name].values[0]
        # one step moves w_i by η|ρσ′|‖x‖/d, ‖x‖ ≈ √d and |ρσ′| < 4
        assert 0.0 < np.abs(first - theirs).max() < 4.0 * STEP / np.sqrt(D)
        assert np.abs(run[name].values - line[name].values[1:]).max() < 4.0 / np.sqrt(D)  # it fluctuates by d^−½


def test_they_say_what_the_risk_is():
    """Risk is a function of Q, R and c: here c stays small, and 250,000 fresh samples measure the rest to 0.4 %."""
    run = ls.simulate(PROBLEM, REGIME, width=2, samples=2 * D, protocol=plain(test=250_000))
    machine = Machine.of(PROBLEM, REGIME, 2)
    state = machine.start(run.Q.values[-1], run.R.values[-1])
    without_offset = float(machine.squared_error(state[None])[0]) / PROBLEM.energy
    assert float(run.tested) == pytest.approx(without_offset, rel=0.01, abs=0.01)


def test_those_of_the_best_step_size_and_of_each_draw():
    both = ls.simulate(PROBLEM, REGIME, width=2, samples=D, protocol=plain(1e-9, 0.5), draws=2)
    alone = ls.simulate(PROBLEM, REGIME, width=2, samples=D, protocol=plain(0.5), draws=2)
    assert both.R.dims == ("samples", "neuron", "index", "draw") and both.R.sizes["draw"] == 2
    assert float(both.step_size_best) == pytest.approx(0.5 / (2 * D))
    np.testing.assert_allclose(both.R, alone.R, atol=1e-6)
    np.testing.assert_allclose(both.Q, both.Q.transpose("samples", "neuron_too", "neuron", "draw"), atol=1e-12)


def test_directions_of_ones_own():
    """Weights have the same law in every basis; R is with the directions as given."""
    u = np.linalg.qr(np.random.default_rng(0).standard_normal((D, 2)))[0].T
    turned = ls.MultiIndex(D, "committee-erf2", direction=u, indices=2)
    ask = {"width": 2, "samples": D, "protocol": plain()}
    np.testing.assert_array_equal(ls.simulate(turned, REGIME, **ask).R, ls.simulate(PROBLEM, REGIME, **ask).R)


@pytest.mark.parametrize(
    ("problem", "regime", "width", "there"),
    [
        (PROBLEM, REGIME, 65, False),  # Q would have more numbers than anybody reads
        (PROBLEM, REGIME, [2, 3], False),
        (PROBLEM, ls.NeuralTangent("erf"), 2, False),
        (ls.MultiIndex(9, "he3"), ls.Trained("tanh"), 2, True),
        (ls.MultiIndex(9, "square"), ls.Trained(), 20, True),
        (ls.QuadraticTarget(np.ones(9)), ls.Trained(), 2, False),  # no directions
    ],
)
def test_where_they_are(problem, regime, width, there):
    short = ls.SGD(batch=5, step_sizes=(1e-3,), test=10)
    found = ls.simulate(problem, regime, width=width, samples=20, protocol=short)
    assert ("Q" in found) == ("R" in found) == there


def test_a_step_size_that_diverges_leaves_the_others():
    found = ls.simulate(PROBLEM, ls.Trained("cube"), width=2, samples=D, protocol=plain(1e12, 1e-3))
    assert bool(found.diverged[0]) and np.all(np.isfinite(found.R))


def test_overlaps_of_several_widths_have_no_common_array():
    """A sweep computes each width by itself; what is left out of a verb's answer is left out of the sweep's."""
    sizes = {"width": (2.0, 3.0), "samples": (20.0,)}
    run = Run("simulate", PROBLEM, REGIME, sizes, protocol=ls.SGD(batch=5, step_sizes=(1e-3,), test=10))
    pieces = run.pieces()
    whole = assemble(pieces, [piece.compute() for piece in pieces])
    assert "Q" not in whole and whole.risk.sizes["width"] == 2


def test_the_command_line_has_them():
    words = "simulate multi-index --d 20 --link committee-erf --indices 2 --regime nn --width 2 --samples 40 --batch 1"
    done = CliRunner().invoke(main, [*words.split(), "--step-sizes", "0.01", "--second-layer", "sum", "--json"])
    assert done.exit_code == 0, done.output
    (result,) = json.loads(done.output)["results"]
    assert np.shape(result["data"]["R"])[-2:] == (2, 2) and "Q" in result["data"]
    refused = CliRunner().invoke(main, [*words.split(), "--second-layer", "loose"])
    assert refused.exit_code == 2 and "second_layer" in refused.output

"""SGD against its prediction long after everything is learned, where only noise is left. Minutes: `make validate`."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import lazyscope as ls

pytestmark = pytest.mark.slow


def test_the_prediction_holds_to_the_end_of_training(keep):
    """d = 60, to t = 100: the floor is reached at 30. Four draws; predictions are for the same weights."""
    target, d, N, size, batch, total, draws = ls.QuadraticTarget.exponential(60), 60, 30, 0.008, 100, 100.0, 4
    plan = ls.SGD(steps=round(total / size), batch=batch, step_sizes=(size,), decay=(), test=1)
    simulated, predicted, lines = [], [], []
    for seed in range(draws):
        run = ls.simulate(target, ls.Trained(), width=N, protocol=plan, seed=seed)
        late = run.samples.values * size / batch > 2.0
        samples = run.samples.values[late].astype(int)
        how = {"step_size": size, "batch": batch, "samples": samples, "seed": seed, "paths": 1}
        found = ls.finite_step(target, ls.Trained(), width=N, **how)
        simulated.append(run.trace.values[late])
        predicted.append(found.risk.values)
        lines.append(found.flow.values)
    simulated, predicted, lines = map(np.array, (simulated, predicted, lines))
    gap, noise = simulated - predicted, (predicted - lines).mean(axis=0)
    paired = gap.std(axis=0, ddof=1) / np.sqrt(draws)
    three = float(student.isf(norm.sf(3.0), draws - 1))  # three standard errors, as four draws know them
    keep(
        time=(samples * size / batch).tolist(),
        simulated=simulated.mean(axis=0).tolist(),
        predicted=predicted.mean(axis=0).tolist(),
        flow=lines.mean(axis=0).tolist(),
        difference=gap.mean(axis=0).tolist(),
        difference_stderr=paired.tolist(),
    )
    # the prediction leaves out what is smaller than the noise by 1/d, with a constant of a few
    assert np.all(np.abs(gap.mean(axis=0)) < three * paired + 4.0 / d * noise)
    # and means something: without the noise they would not agree in the end
    assert noise[-1] > three * paired[-1] + abs(gap[:, -1].mean())

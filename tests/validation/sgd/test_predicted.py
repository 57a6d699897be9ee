"""SGD against its prediction at finite step size, d = 100 and 200, to the end of training. Minutes: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.limits.sgd.finite_step import finite_step

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("d", [100, 200])
@pytest.mark.parametrize("size", [0.001, 0.002])
def test_traces_lie_within_three_standard_errors(d, size, keep):
    """Mean over six draws of weights and data; the prediction is for the same weights."""
    target, N, batch, total, draws = ls.QuadraticTarget.exponential(d), d // 2, 100, 20.0, 6
    plan = ls.SGD(steps=round(total / size), batch=batch, step_sizes=(size,), decay=(), test=1)
    simulated, predicted, lines = [], [], []
    for k in range(draws):
        run = ls.simulate(target, ls.Trained(), width=N, protocol=plan, seed=k)
        late = run.samples.values * size / batch > 0.1
        samples = run.samples.values[late].astype(int)
        found = finite_step(
            target, ls.Trained(), width=N, step_size=size, batch=batch, samples=samples, seed=k, paths=2
        )
        simulated.append(run.trace.values[late])
        predicted.append(found.risk.values)
        lines.append(found.flow.values)
    simulated, predicted, lines = map(np.array, (simulated, predicted, lines))
    stderr = simulated.std(axis=0, ddof=1) / np.sqrt(draws)
    z = (simulated.mean(axis=0) - predicted.mean(axis=0)) / stderr
    gap = simulated - predicted
    paired = gap.mean(axis=0) / (gap.std(axis=0, ddof=1) / np.sqrt(draws))
    keep(
        time=(samples * size / batch).tolist(),
        simulated=simulated.mean(axis=0).tolist(),
        stderr=stderr.tolist(),
        predicted=predicted.mean(axis=0).tolist(),
        flow=lines.mean(axis=0).tolist(),
        largest_z=float(np.max(np.abs(z))),
        largest_z_for_the_same_weights=float(np.max(np.abs(paired))),
        largest_relative_difference=float(np.max(np.abs(gap.mean(axis=0) / simulated.mean(axis=0)))),
    )
    assert np.max(np.abs(z)) < 3.0
    assert simulated[:, -1].mean() - lines[:, -1].mean() > 3.0 * stderr[-1]

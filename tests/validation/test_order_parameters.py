"""SGD against the order-parameter equations as d grows. Minutes: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics.plateau import PlateauDraw

pytestmark = pytest.mark.slow


def test_sgd_approaches_the_equations_like_the_root_of_d(keep):
    """Forty runs in d = 250, 500, 1000 from the same overlaps, before the plateau ends."""
    first, step, until, runs, dimensions = (0.15, 0.05), 0.5, 50.0, 40, (250, 500, 1000)
    z, distance = {}, []
    for d in dimensions:
        problem = ls.MultiIndex(d, "committee-erf2", indices=2)
        rows = [PlateauDraw(problem, "erf2", 0.25, first, step, until, k, seed=1).compute() for k in range(runs)]
        times = rows[0]["time"]
        path = ls.order_parameters(
            problem, ls.Trained("erf2"), times=times, step_size=step, overlaps=(0.25 * np.eye(2), np.diag(first))
        )
        risks = np.array([row["risk"] for row in rows])
        score = (risks.mean(axis=0) - path.risk.values) / (risks.std(axis=0, ddof=1) / np.sqrt(runs))
        z[d] = score.tolist()
        distance.append(float(np.sqrt(np.mean((risks / path.risk.values - 1.0) ** 2))))
    slope = float(np.polyfit(np.log(dimensions), np.log(distance), 1)[0])
    largest = max(abs(value) for scores in z.values() for value in scores)
    keep(z=z, distance=distance, slope=slope, largest_z=largest)
    assert largest < 3.0
    # the log of a root mean square over 40 runs has a standard error of at most 1/√80, the slope of three 0.11
    assert abs(slope + 0.5) < 3 * 0.11

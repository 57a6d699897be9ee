"""SGD against the order-parameter equations as d grows. Some ten minutes: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics.plateau import PlateauDraw, parted
from lazyscope.runs.side_by_side import as_normal

pytestmark = pytest.mark.slow

FIRST, STEP, UNTIL, RUNS, POINTS, DIMENSIONS = (0.15, 0.05), 0.5, 150.0, 20, 24, (250, 500, 1000, 2000)


def test_sgd_approaches_the_equations_like_the_root_of_d(keep):
    """Twenty runs in each dimension from the same overlaps: the risk before the plateau ends, and when neurons part.

    As in `compare`, z is the normal quantile as unlikely as the ratio is under Student's law. The distance of a run is
    the mean over the times before the end of (risk/solution − 1)², and the standard error of the slope of its root in d
    comes from the scatter of the runs. Times of parting are those at which R₁₁ − R₁₂ is ½.
    """
    z, distance, error, ends = {}, [], [], {}
    for d in DIMENSIONS:
        problem = ls.MultiIndex(d, "committee-erf2", indices=2)
        draws = (PlateauDraw(problem, "erf2", 0.25, FIRST, STEP, UNTIL, k, seed=2, points=POINTS) for k in range(RUNS))
        rows = [draw.compute() for draw in draws]
        times = rows[0]["time"]
        fine = np.union1d(times, np.geomspace(times[0], UNTIL, 300))
        start = (0.25 * np.eye(2), np.diag(FIRST))
        path = ls.order_parameters(problem, ls.Trained("erf2"), times=fine, step_size=STEP, overlaps=start)
        solution, before = path.sel(time=times), times < float(path.plateau_end)
        risks, theory = np.array([row["risk"] for row in rows])[:, before], solution.risk.values[before]
        away = risks.mean(axis=0) - theory
        z[d] = (np.sign(away) * as_normal(np.abs(away), risks.std(axis=0, ddof=1) / np.sqrt(RUNS), RUNS)).tolist()
        squares = np.mean((risks / theory - 1.0) ** 2, axis=1)
        distance.append(float(np.sqrt(squares.mean())))
        error.append(float(0.5 * squares.std(ddof=1) / np.sqrt(RUNS) / squares.mean()))  # of log distance
        parting = np.array([parted(times, row["R"]) for row in rows])
        ends[d] = {
            "solution": parted(times, solution.R.values),
            "sgd": float(parting.mean()),
            "stderr": float(parting.std(ddof=1) / np.sqrt(RUNS)),
            "plateau": [float(path.plateau_begin), float(path.plateau_end)],
            "recorded_before": int(before.sum()),
        }
    (slope, _), covariance = _line(np.log(DIMENSIONS), np.log(distance), np.array(error))
    slope_error = float(np.sqrt(covariance[0, 0]))
    largest = max(abs(value) for scores in z.values() for value in scores)
    keep(z=z, distance=distance, slope=float(slope), slope_stderr=slope_error, largest_z=largest, ends=ends, runs=RUNS)
    assert largest < 3.0
    assert abs(slope + 0.5) < 2.0 * slope_error
    for end in ends.values():
        assert abs(end["sgd"] / end["solution"] - 1.0) < 0.1


def _line(x, y, error):
    """Return the weighted line through points with these standard errors, and the covariance of its coefficients."""
    A = np.stack([x, np.ones_like(x)], axis=1) / error[:, None]
    covariance = np.linalg.inv(A.T @ A)
    return covariance @ A.T @ (y / error), covariance

"""The noise of SGD that predictions of trained networks measure: at other batches, against runs at the dot's own."""

from dataclasses import replace

import numpy as np

from lazyscope.evidence.run import Run
from lazyscope.experiments.frame.predicted import PredictedDraw
from lazyscope.problems import GaussianMixture
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained

MIXTURE = GaussianMixture.three_level(24, seed=0)
PROTOCOL = SGD(steps=3000, batch=16, step_sizes=(0.01,), test=1)


def test_noise_between_half_and_twice_the_batch_is_that_of_runs_within_its_allowance():
    """Six draws: their mean lies within three standard errors of what is predicted and allowed, far from no noise."""
    away, allowed, noise = [], [], []
    for number in range(6):
        draw = PredictedDraw(MIXTURE, Trained(), 24, PROTOCOL, number)
        row = draw.compute()
        run = Run("simulate", MIXTURE, Trained(), {"width": (24,)}, protocol=PROTOCOL, number=number)
        away.append(float(run.compute()["trace"][0, 0, -1] - row["risk"][0]))
        allowed.append(float(row["allowance"][0]))
        noise.append(float(row["noise"][0]))
    error = np.std(away, ddof=1) / np.sqrt(len(away))
    assert abs(np.mean(away)) < np.mean(allowed) + 3.0 * error
    assert np.mean(allowed) < 0.3 * np.mean(noise) and 10.0 * error < np.mean(noise)


def test_a_batch_of_one_has_no_half_and_no_prediction():
    trained = PredictedDraw(MIXTURE, Trained(), 24, replace(PROTOCOL, batch=1, step_sizes=(1e-4,)))
    assert trained.compute()["known"].tolist() == [0]
    tangent = replace(trained, regime=NeuralTangent())  # whose noise follows from the spectrum
    assert tangent.compute()["known"].tolist() == [1]


def test_a_step_size_at_which_a_run_diverges_is_not_predicted():
    row = PredictedDraw(MIXTURE, Trained(), 24, replace(PROTOCOL, step_sizes=(0.01, 3.0))).compute()
    assert row["known"].tolist() == [1, 0] and all(np.isfinite(values).all() for values in row.values())

"""Verdicts of the data lens on twelve tables whose law is known, at three budgets, against a full measurement.

The lens is run as a user runs it, `lazyscope lens table.csv --budget 20s --report …`, and timed from outside. The full
measurement has no budget: RF, NT, NN and boosted trees at the same width on as many rows as the lens may use, four
tables drawn afresh, each tested on 20,000 further rows. A verdict is contradicted where the full measurement shows the
opposite at two standard errors, or where the lens saw no difference and the two differ by two standard errors of both.

All of it is 52 minutes of lens and ten of full measurements; `-k "20-linear"` runs one.
"""

import json
import os
import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lazyscope.lenses.data import regimes, verdict
from lazyscope.lenses.data.measuring import COMPARED, Cell, Measured

pytestmark = pytest.mark.slow

WIDTH, TESTED, DRAWS = 128, 20_000, 4
LATE = 1.05  # of the budget


def _unit(rng, d):
    u = rng.standard_normal(d)
    return u / np.linalg.norm(u)


def _with_noise(f, rng, size=0.3):
    return f + size * np.std(f) * rng.standard_normal(len(f))


def linear(X, law, rng):
    return _with_noise(X @ _unit(law, X.shape[1]), rng, 1.0)


def noise(X, law, rng):
    return rng.standard_normal(len(X))


def product(X, law, rng):
    return _with_noise(X[:, 0] + X[:, 1] * X[:, 2], rng)


def one_square(X, law, rng):
    return _with_noise((X @ _unit(law, X.shape[1])) ** 2, rng)


def quadratic(X, law, rng):
    return _with_noise((X**2) @ law.exponential(1.0, X.shape[1]), rng)


def cubic(X, law, rng):
    z = X @ _unit(law, X.shape[1])
    return _with_noise(z**3 - 3.0 * z, rng)


def steps(X, law, rng):
    return _with_noise(np.where(X[:, 0] > 0.3, 1.0, 0.0) + np.where((X[:, 1] > -0.5) & (X[:, 2] > 0), 1.5, 0.0), rng)


def waves(X, law, rng):
    return _with_noise(np.sum(np.sin(1.5 * X[:, :4]), axis=1), rng)


def radius(X, law, rng):
    return _with_noise(np.sum(X**2, axis=1), rng)


def two_clouds(X, law, rng):
    return np.where(X @ _unit(law, X.shape[1]) + 0.5 * rng.standard_normal(len(X)) > 0, "yes", "no")


def parity(X, law, rng):
    flip = rng.random(len(X)) < 0.05
    return np.where((X[:, 0] * X[:, 1] > 0) ^ flip, "even", "odd")


TABLES = {
    "linear": (linear, 600, 10),
    "noise": (noise, 500, 8),
    "product": (product, 2000, 20),
    "one-square": (one_square, 1500, 10),
    "quadratic": (quadratic, 1500, 12),
    "cubic": (cubic, 2000, 10),
    "steps": (steps, 1500, 8),
    "waves": (waves, 1500, 8),
    "radius": (radius, 1500, 10),
    "two-clouds": (two_clouds, 800, 10),
    "parity": (parity, 1500, 15),
    "large": (product, 20_000, 50),
}


def drawn(name, number, rows):
    """Return rows of a table; the law, such as a direction, is the same for every number."""
    make, _, d = TABLES[name]
    place = list(TABLES).index(name)
    rng = np.random.default_rng([place, number])
    X = rng.standard_normal((rows, d))
    return X, make(X, np.random.default_rng([place, 10**6]), rng)


@cache
def full(name):
    """Measure RF, NT, NN and boosted trees on as many rows as the lens may train on, without a budget."""
    n = int(0.8 * min(TABLES[name][1], 10_000))
    task = "classification" if name in ("two-clouds", "parity") else "regression"
    draws = DRAWS if n < 5000 else 2
    cells = [*(Cell(regime, WIDTH, n) for regime in COMPARED), Cell(regimes.BOOSTED, 0, n)]
    result = Measured([], {cell: [] for cell in cells}, samples=n, rows=n)
    for number in range(draws):
        X, y = drawn(name, number, n)
        X_test, y_test = drawn(name, 100 + number, TESTED)
        unit = np.var(y_test) if task == "regression" else 1.0
        names, counts = np.unique(y, return_counts=True)
        constant = y.mean() if task == "regression" else names[np.argmax(counts)]
        result.constant.append(_losses(constant, y_test, task) / unit)
        for cell in cells:
            model = regimes.fit(cell.regime, task, cell.width, X, y, number)
            result.losses[cell].append(_losses(model.predict(X_test), y_test, task) / unit)
    return result


def _losses(predicted, wanted, task):
    return (predicted - wanted) ** 2 if task == "regression" else (predicted != wanted).astype(float)


def looked(name, budget, folder):
    """Run the command on a table in a file; return what it said and how long it took."""
    X, y = drawn(name, 0, TABLES[name][1])
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame["y"] = y
    path = folder / f"{name}.csv"
    frame.to_csv(path, index=False)
    command = [
        str(Path(sys.executable).with_name("lazyscope")),
        "lens",
        str(path),
        "--target",
        "y",
        "--budget",
        f"{budget}s",
    ]
    begun = time.monotonic()
    done = subprocess.run(
        [*command, "--report", str(folder / f"{name}.html"), "--json"], capture_output=True, text=True
    )
    seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), seconds


def claimed(told):
    """Return the gain that a verdict states, its standard error, and whether it calls it clear; None without one."""
    text = told["verdict"]
    for words, sign in (("lowers the error by", 1.0), ("raises the error by", -1.0)):
        if found := re.search(rf"{words} (\d+)% ± ([\d.]+)", text):
            return sign * float(found[1]) / 100, float(found[2]) / 100, True
    if found := re.search(r"a difference of (\d+)% ± ([\d.]+)", text.split("Boosted")[0]):
        errors = {
            r["regime"]: r["error"] for r in told["rows"] if r["width"] == WIDTH and r["samples"] == told["samples"]
        }
        sign = 1.0 if errors["NN"] < min(errors["RF"], errors["NT"]) else -1.0
        return sign * float(found[1]) / 100, float(found[2]) / 100, False
    return None


def contradicted(told, truth):
    """Say what the full measurement contradicts in a verdict; nothing where all of it stands."""
    text, said = told["verdict"], []
    if text.startswith("No comparison"):
        return said
    learns = verdict.learns(truth)
    if learns is text.startswith("No regime learns") and told["samples"] == told["training_rows"]:
        said.append(f"learns: {learns}")
    gain, claim = verdict.gain(truth, truth.samples, WIDTH), claimed(told)
    if claim is not None:
        share, stderr, clear = claim
        opposite = share * gain.share < 0 and abs(gain.share) > 2 * gain.stderr
        apart = abs(share - gain.share) > 2 * np.hypot(stderr, gain.stderr)
        if (clear and opposite) or (not clear and gain.clear and apart):
            said.append(f"gain {share:+.0%} ± {stderr:.1%} against {gain.share:+.1%} ± {gain.stderr:.1%}")
    trees = verdict.boosting(truth, WIDTH)
    for word, other in (("better", "worse"), ("worse", "better")):
        if f"trees would do {word}" in text and f"trees would do {other}" in trees:
            said.append(f"trees: {trees}")
    return said


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("budget", [20, 60, 180])
def test_no_verdict_is_contradicted_and_the_budget_is_kept(budget, name, tmp_path, keep):
    told, seconds = looked(name, budget, tmp_path)
    truth = full(name)
    gain, wrong = verdict.gain(truth, truth.samples, WIDTH), contradicted(told, truth)
    keep(
        seconds=round(seconds, 2),
        load=round(os.getloadavg()[0], 1),
        verdict=told["verdict"],
        training_rows=[told["samples"], told["training_rows"]],
        full_gain=[round(gain.share, 4), round(gain.stderr, 4)],
        full_errors={cell.regime: [round(x, 4) for x in truth.mean(cell)] for cell in truth.losses},
        contradicted=wrong,
    )
    assert not wrong
    assert told["samples"] > 0  # a comparison there must be
    assert seconds <= LATE * budget

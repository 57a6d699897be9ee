"""One giant step against a fit of its second layer on 10⁶ samples. A minute: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.population.directions import giant_step

pytestmark = pytest.mark.slow


def test_exact_is_what_a_fit_on_a_million_samples_gives(keep):
    """Least squares at the same weights: its mean square is below the optimum by N/n to first order."""
    problem, N, n, block = ls.MultiIndex(50, "he1+he3"), 150, 1_000_000, 10_000
    regime = ls.GiantStep("erf", 2.0, 400)
    exact = float(ls.exact(problem, regime, width=N, seed=2).risk)
    W = giant_step.stepped(problem, regime, N, weights.generator(2, 0, N))
    rng = np.random.default_rng(5)
    S, b, energy, some = np.zeros((N + 1, N + 1)), np.zeros(N + 1), 0.0, []
    for _ in range(n // block):
        X = rng.standard_normal((block, problem.d))
        Phi = np.column_stack([regime.activation(X @ W.T), np.ones(block)])
        y = problem.h(X @ problem.u)
        S, b, energy = S + Phi.T @ Phi, b + Phi.T @ y, energy + float(y @ y)
        some.append((Phi[:500], y[:500]))
    a = np.linalg.solve(S, b)
    squares = np.concatenate([(y - Phi @ a) ** 2 for Phi, y in some]) / problem.energy
    fitted, error = (
        (energy - float(a @ b)) / n / problem.energy / (1.0 - (N + 1) / n),
        float(squares.std()) / np.sqrt(n),
    )
    keep(exact=exact, fitted=fitted, error=error, z=(fitted - exact) / error)
    assert abs(fitted - exact) < 3.0 * error

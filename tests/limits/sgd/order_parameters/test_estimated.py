"""SGD as a differential equation for any σ and h: expectations by rules, against closed forms and against SGD."""

from math import sqrt

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics.plateau import PlateauDraw
from lazyscope.limits.sgd.order_parameters.equations import rates
from lazyscope.limits.sgd.order_parameters.estimated import Estimated, integrated, rules
from lazyscope.limits.sgd.order_parameters.machine import Machine

ALONE = (np.array([[0.6]]), np.array([[0.2]]))
PAIR = (0.25 * np.eye(2), np.diag([0.1, 0.05]))


@pytest.mark.parametrize(("name", "N", "r"), [("erf2", 1, 1), ("square", 1, 2), ("erf", 2, 2), ("relu", 2, 1)])
@pytest.mark.parametrize("step", [0.0, 0.4])
def test_rules_have_the_rates_of_the_closed_forms(name, N, r, step):
    """Quadrature to the distance of its two rules, sampling to six standard errors of its four scrambles."""
    problem, regime = ls.MultiIndex(9, f"committee-{name}", indices=r, noise=0.3), ls.Trained(name)
    rng = np.random.default_rng(2)
    W = rng.standard_normal((N, 5)) / 2.0
    closed, other = Machine.of(problem, regime, N, True), Estimated.of(problem, regime, N, True)
    state = closed.start(W @ W.T, W[:, :r])
    wanted = rates(closed.kind, state, closed.b, N, closed.scale, closed.noise, step, 1, 1)
    # private: the right-hand side itself, before an integration hides what is wrong with it
    found = np.array([other._rates(rule, state, step) for rule in rules(N + r, other._smooth)])
    if other.how == "quadrature":
        assert np.all(np.abs(found[0] - wanted) <= np.abs(found[0] - found[1]) + 1e-8)
    else:
        error = found.std(axis=0, ddof=1) / sqrt(len(found))
        assert np.all(np.abs(found.mean(axis=0) - wanted) <= 6.0 * error + 1e-9)


def test_a_path_by_quadrature_is_the_closed_one():
    problem, regime = ls.MultiIndex(100, "erf2", noise=0.1), ls.Trained("erf2")
    closed, other = Machine.of(problem, regime, 1), Estimated.of(problem, regime, 1)
    times = np.array([0.0, 1.0, 5.0, 20.0])
    states, squares, none = closed.solved(closed.start(*ALONE), times, 0.5)
    again, found, error = other.solved(other.shape.start(*ALONE), times, 0.5)
    assert none is None and np.all(error < 1e-6)
    np.testing.assert_allclose(found, squares, atol=3e-6)  # the integration, to 10⁻⁶ a step
    np.testing.assert_allclose(again, states, atol=3e-5)


def test_a_path_by_sampling_is_the_closed_one_within_its_error():
    problem, regime = ls.MultiIndex(100, "committee-erf2", indices=2), ls.Trained("erf2")
    closed, other = Machine.of(problem, regime, 2), Estimated.of(problem, regime, 2)
    times = np.array([1.0, 4.0, 10.0])
    squares = closed.solved(closed.start(*PAIR), times, 0.5)[1]
    _, found, error = other.solved(other.shape.start(*PAIR), times, 0.5)
    assert other.how == "sampling" and np.all(error < 0.02 * squares)
    assert np.all(np.abs(found - squares) < 6.0 * error)  # four scrambles: Student's t of three degrees of freedom


@pytest.mark.parametrize(("link", "sigma", "step"), [("committee-tanh", "tanh", 0.2), ("staircase", "softplus", 0.05)])
def test_sgd_lies_on_the_estimated_equation(link, sigma, step):
    """Twelve runs from the same overlaps in d = 200, early on: four standard errors of their mean, and of the rules."""
    problem = ls.MultiIndex(200, link, indices=2, noise=0.1)
    runs = [PlateauDraw(problem, sigma, 0.25, (0.15, 0.05), step, 2.0, k).compute() for k in range(12)]
    start = (0.25 * np.eye(2), np.diag([0.15, 0.05]))
    times = runs[0]["time"]
    path = ls.order_parameters(problem, ls.Trained(sigma), times=times, step_size=step, overlaps=start)
    risks = np.array([run["risk"] for run in runs])
    error = np.hypot(risks.std(axis=0, ddof=1) / sqrt(12), path.risk_error.values)
    assert np.max(np.abs(risks.mean(axis=0) - path.risk.values) / error) < 4.0
    assert path.expectations == "sampling"


def test_the_verb_says_how_well_it_knows():
    """A network that is unlike its target: `limit` has the error beside the risk."""
    problem = ls.MultiIndex(30, "he2")
    found = ls.limit(problem, ls.Trained("softplus"), width=2, times=[0.0, 1.0, 3.0], step_size=0.1)
    assert found.risk.dims == ("times",) and np.all(found.risk_error < 0.01)
    assert "risk_error" not in ls.limit(problem, ls.Trained(), width=2, times=[1.0], step_size=0.1)
    one = ls.limit(problem, ls.Trained("softplus"), width=1, times=1.0, step_size=0.0)
    assert 0.0 < float(one.risk) < 2.0


def test_equations_that_would_take_hours_are_refused():
    """ẏ = 10⁸(cos t − y): explicit steps are 3·10⁻⁸ long, and 10⁸ evaluations would come to t = 1."""

    def fast(t, y):
        return 1e8 * (np.cos(t) - y)

    with pytest.raises(ls.NotConverged, match=r"too fast: 5,000 evaluations came to t = .* of 1\. Scale the target"):
        integrated(fast, np.zeros(1), np.array([0.5, 1.0]), 0.1)

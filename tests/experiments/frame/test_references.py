"""The shipped runs of the paper's protocol, d = 450: where they end, and where theory says they must."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.experiments.frame import references
from lazyscope.experiments.lazy import fig1, fig2, fig3, fig_nondiagonal
from lazyscope.runs.assembly import assemble
from lazyscope.runs.side_by_side import agreement
from lazyscope.sweep import Plan

CLOSE = 0.015  # of normalised risk: what the paper's protocol is to reach


@pytest.fixture(scope="module")
def runs():
    """(label, N) → what simulate would return, of Figure 1."""
    return stored_runs(fig1)


@pytest.fixture(scope="module")
def mixture_runs():
    """The same of Figure 2."""
    return stored_runs(fig2)


@pytest.fixture(scope="module")
def toeplitz_runs():
    """The same of the mixture with a non-diagonal Δ."""
    return stored_runs(fig_nondiagonal)


@pytest.fixture(scope="module")
def relu_runs():
    """The same of Figure 3."""
    return stored_runs(fig3)


def stored_runs(figure):
    rows = {key: row for one in references.shipped() for key, row in one.rows.items()}
    (panel,) = figure.panels(figure.EXPERIMENT.presets["paper"])
    found = {}
    for series in panel.series:
        for N in series.dots.widths:
            tasks = Plan.of("one", panel.draws(series, "simulate", N)).tasks
            there = [task for task in tasks if task.key in rows]
            if there:
                found[series.label, N] = assemble(
                    [t.work for t in there], [rows[t.key] for t in there], ("width", "samples")
                )
    return found


def stored_prediction(figure, label, N, run):
    """The shipped prediction of a dot at its best step size."""
    rows = {key: row for one in references.shipped() for key, row in one.rows.items()}
    (panel,) = figure.panels(figure.EXPERIMENT.presets["paper"])
    (series,) = [one for one in panel.series if one.label == label]
    (task,) = Plan.of("one", panel.predictions(series, N)).tasks
    return rows[task.key]["risk"][task.work.protocol.step_sizes.index(float(run.step_size_best))]


def target():
    return ls.QuadraticTarget.exponential(450, seed=100)


def test_the_promised_runs_are_there(runs):
    assert {(label, N) for label in ("NN", "NT") for N in (45, 225, 450, 4500)} <= set(runs)
    assert {("RF, isotropic weights", N) for N in (45, 450, 4500)} <= set(runs)
    for (label, _), run in runs.items():
        if label in ("NN", "NT"):
            assert run.step_size.values.tolist() == [0.001, 0.002, 0.005, 0.01, 0.02, 0.03]
            assert float(run.samples[-1]) == 2e7


def test_every_row_belongs_to_a_figure_of_today():
    """A change of the numerics, of the problem or of the protocol asks for new runs."""
    wanted = {
        task.key
        for figure in (fig1, fig2, fig3, fig_nondiagonal)
        for panel in figure.panels(figure.EXPERIMENT.presets["paper"])
        for _, draws in panel.places()
        if draws
        for task in Plan.of("one", draws).tasks
    }
    assert {key for one in references.shipped() for key in one.rows} <= wanted


ON_MIXTURES = [
    *(("mixture_runs", fig2, "NT", N) for N in (45, 225, 450, 4500)),
    *(("mixture_runs", fig2, "NN", N) for N in (45, 450)),
    *(("toeplitz_runs", fig_nondiagonal, "NT", N) for N in (45, 225, 450, 4500)),
    *(("toeplitz_runs", fig_nondiagonal, "NN", N) for N in (45, 225)),
]
"""NN at N = 225 of Figure 2 is 0.0015 below: there noise·batch is least between half and twice the batch."""


@pytest.mark.parametrize(("name", "figure", "label", "N"), ON_MIXTURES)
def test_runs_on_a_mixture_end_where_theory_says(request, name, figure, label, N):
    """Risks of whole populations: the noise of the steps, in 45·450 directions and more, is as good as certain.

    It scatters by some 1e-4. That of NN was measured at half and at twice the batch: it scatters by 0.8e-4 to 1.4e-4 to
    leading order, which is right within a factor of two, and four standard errors of that are allowed, as in verdicts.
    """
    run = request.getfixturevalue(name)[label, N]
    assert float(run.risk) == pytest.approx(
        stored_prediction(figure, label, N, run), abs=3e-4 if label == "NT" else 1e-3
    )


@pytest.mark.parametrize("N", [45, 225, 450, 4500])
def test_tangent_models_with_relu_end_where_theory_says(relu_runs, N):
    """Within three standard errors of 10⁴ test samples, whose squares vary by 2 + 12 Tr B⁴/(Tr B²)²."""
    run, squares = relu_runs["NT", N], target().eigenvalues ** 2
    vary = 2.0 + 12.0 * np.sum(squares**2) / np.sum(squares) ** 2
    assert float(run.risk) == pytest.approx(stored_prediction(fig3, "NT", N, run), rel=3.0 * np.sqrt(vary / 1e4))


@pytest.mark.parametrize("N", [45, 225])
def test_networks_on_the_mixture_end_above_the_floor_of_theorem_6_and_below_the_tangent_model(mixture_runs, N):
    mixture, risk = ls.GaussianMixture.three_level(450, seed=0), float(mixture_runs["NN", N].risk)
    floor, lazy = (float(ls.limit(mixture, kind(), rho=N / 450).risk) for kind in (ls.Trained, ls.NeuralTangent))
    assert floor < risk < (floor + lazy) / 2


@pytest.mark.parametrize("N", [45, 225, 450, 4500])
def test_tangent_models_on_the_mixture_end_between_their_exact_risk_and_random_features(mixture_runs, N):
    mixture, risk = ls.GaussianMixture.three_level(450, seed=0), float(mixture_runs["NT", N].risk)
    least = float(ls.exact(mixture, ls.NeuralTangent(), width=N).risk)
    fitted = float(ls.limit(mixture, ls.RandomFeatures(), rho=N / 450).risk)
    assert least < risk < fitted
    if N < 450:  # so many neurons that the directions which matter are a choice
        assert float(mixture_runs["NN", N].risk) < least


@pytest.mark.parametrize("N", [45, 225, 450])
def test_the_order_of_the_regimes_with_relu(relu_runs, N):
    """NN below NT, which no fit undercuts: risks are means over 10⁴ squares, whose scatter is √(14/10⁴) at most."""
    least = float(ls.exact(target(), ls.NeuralTangent("relu"), width=N).risk)
    trained, tangent = (float(relu_runs[label, N].risk) for label in ("NN", "NT"))
    fitted = float(ls.limit(target(), ls.RandomFeatures("relu"), rho=N / 450).risk)
    assert trained < least * (1 - 3 * np.sqrt(14e-4)) < tangent < fitted


@pytest.mark.parametrize("N", [45, 225])
def test_trained_networks_end_near_the_floor_of_theorem_3(runs, N):
    floor, risk = float(ls.limit(target(), ls.Trained(), rho=N / 450).risk), float(runs["NN", N].risk)
    assert floor < risk < floor + CLOSE


def gradient_flow(W, time):
    """Risk of the tangent model with weights W, rows, after that much time of gradient flow on the population risk.

    In the basis where K = WᵀW = diag(k), and E = G − B: E_ij decays like exp(−8(k_i + k_j)t/N) for i ≠ j; the diagonal
    u and s = Tr E + Tr B + c descend together on 2‖u‖² + s², with mobilities 4k_i/N for u_i and 1 for c.
    """
    N, d = W.shape
    B = target().B / np.sqrt(d)
    k, U = np.linalg.eigh(W.T @ W)
    E = -U.T @ (B[:, None] * U)
    free = np.arange(d) >= d - min(N, d)  # the others have k = 0 and do not move
    k = np.where(free, k, 0.0)
    apart = E * np.exp(-8.0 * (k[:, None] + k) * time / N)
    still = np.diagonal(E)[~free]
    start = np.append(np.diagonal(E)[free], B.sum() + still.sum())
    root = np.sqrt(np.append(4.0 * k[free] / N, 1.0))
    H = np.full((start.size, start.size), 2.0)
    H[:-1, :-1] += 4.0 * np.eye(start.size - 1)
    rates, modes = np.linalg.eigh(root[:, None] * H * root)
    end = root * (modes @ (np.exp(-rates * time) * (modes.T @ (start / root))))
    off = np.sum(apart**2) - np.sum(np.diagonal(apart) ** 2)
    return (2.0 * (off + np.sum(still**2) + np.sum(end[:-1] ** 2)) + end.sum() ** 2) / (2.0 * np.sum(B**2))


@pytest.mark.parametrize("N", [45, 225, 450, 4500])
def test_tangent_runs_end_where_gradient_flow_does(runs, N):
    """A second route to the same numbers: flow for Σε of time. SGD adds its noise, and never goes below."""
    regime, run = ls.NeuralTangent(), runs["NT", N]
    plan = ls.SGD.paper(target(), regime)
    total = sum(plan.rate(1.0, step) for step in range(plan.steps))
    W = weights.draw(target(), regime, N, weights.generator(0, 0, N))
    flow = np.array([gradient_flow(W, size * total) for size in run.step_size.values])
    assert np.all(run.risk_by_step.values > flow - 1e-6)
    chosen = int(np.argmin(run.risk_by_step.values))
    assert float(run.risk) < flow[chosen] + CLOSE
    exact = float(ls.exact(target(), regime, width=N).risk)
    if N == 450:
        # d weights in d dimensions hardly see some directions, k ~ 1/d²: at the largest step of the paper's grid and
        # after all its steps, flow without any noise is still above the mark
        assert flow.min() > exact + CLOSE
    else:
        assert float(run.risk) < exact + CLOSE


@pytest.mark.parametrize("N", [45, 450, 4500])
def test_fits_agree_with_exact(runs, N):
    run = runs["RF, isotropic weights", N]
    exact = ls.exact(target(), ls.RandomFeatures(), width=N, draws=run.sizes["draw"] if N < 4500 else 1)
    if N < 4500:
        assert float(agreement(exact, run).z) < 3
    else:
        # seconds a draw: one of them; 10⁴ test samples leave each fit √(14/10⁴) of the risk uncertain, at most
        assert abs(float(run.risk_draws[0] - exact.risk)) < 3 * np.sqrt(14e-4) * float(exact.risk)

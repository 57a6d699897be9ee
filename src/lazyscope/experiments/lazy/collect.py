"""From the rows of a sweep to what a panel shows: one Dataset over series, widths and samples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.experiments.frame import Row, dataset
from lazyscope.experiments.frame.judgement import Dot
from lazyscope.experiments.frame.predicted import PredictedDraw
from lazyscope.experiments.lazy.design import Panel, Place, Series, line_at
from lazyscope.population.random_features import added, uncertain
from lazyscope.problems import Problem, QuadraticTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs import verbs
from lazyscope.runs.assembly import assemble

if TYPE_CHECKING:
    from lazyscope.experiments.frame.types import Dataset

Rows = Mapping[Place, Sequence[Row]]
"""The rows of each cross and of each dot, draw by draw."""

AT_A_WIDTH = {
    "limit_at_width": "limit at ρ = N/d",
    "exact": "exact risk",
    "exact_stderr": "standard error of the mean over draws, exact",
    "exact_draws": "draws, exact",
    "simulated": "simulated risk",
    "simulated_stderr": "standard error of the mean over draws, simulated",
    "simulated_draws": "draws, simulated",
    "step_size": "step size with the lowest risk at the end",
    "predicted": "risk that theory predicts for these weights, samples and step sizes",
    "difference": "simulated − predicted, draw by draw",
    "stderr": "standard error of the difference",
    "allowance": "what the prediction leaves out, by its own estimate",
    "z": "difference in standard errors, as a normal variable with its sign",
    "order": "standard deviation of a draw's difference, to leading order",
    "floor": "what the arithmetic of the simulation leaves of a risk of zero",
}
OF_EACH_DRAW = {"measured": "simulated risk of each draw", "foretold": "risk predicted for each draw"}
_EPSILON = float(np.finfo(np.float32).eps)
_TESTED = 10_000  # samples on which a fit of random features is tested (§4 of the paper)


def panel_data(panel: Panel, rows: Rows) -> Dataset:
    """Put the series of a panel side by side; NaN where a series has no line, cross, dot or trace."""
    import xarray as xr

    parts = [_series(panel, series, rows) for series in panel.series]
    whole = xr.concat(
        parts, "series", data_vars="all", coords="minimal", compat="override", join="outer", combine_attrs="drop"
    ).assign_coords(series=[series.label for series in panel.series])
    if panel.floor:
        whole = whole.assign(bayes=verbs.bayes(panel.problem).risk)
    for name, text in (AT_A_WIDTH | OF_EACH_DRAW).items():
        whole[name].attrs["long_name"] = text
    theorems = [f"{series.label}: {part.attrs['rests']}" for series, part in zip(panel.series, parts, strict=True)]
    return whole.assign_attrs(
        title=panel.title,
        problem=str(panel.problem),
        d=panel.problem.d,
        seed=panel.seed,
        theorems="\n".join(theorems),
        citations=",".join(dict.fromkeys(key for part in parts for key in part.attrs["citations"].split(","))),
    )


def _series(panel: Panel, series: Series, rows: Rows) -> Dataset:
    """Return the line, the crosses, the dots and the traces of one series, and what each rests on."""
    widths, rho = panel.widths, line_at(panel.problem.d)
    values = {name: np.full(len(widths), np.nan) for name in AT_A_WIDTH}
    most = max((other.dots.draws for other in panel.series), default=0)
    of_draws = {name: np.full((len(widths), most), np.nan) for name in OF_EACH_DRAW}
    line, sources, traces = np.full(len(rho), np.nan), {}, {}
    with suppress(NoTheorem):
        sources["line"] = verbs.limit(panel.problem, series.regime, rho=rho)
        line = sources["line"].risk.values
        ratios = np.divide(widths, panel.problem.d)
        values["limit_at_width"] = verbs.limit(panel.problem, series.regime, rho=ratios).risk.values
    for i, N in enumerate(widths):
        crosses, dots = panel.draws(series, "exact", N), panel.draws(series, "simulate", N)
        if crosses:
            exact = sources["crosses"] = assemble(crosses, rows[panel.name, series.label, "exact", N])
            _note(values, i, "exact", exact, len(crosses))
        if dots:
            dot = sources["dots"] = assemble(dots, rows[panel.name, series.label, "simulate", N])
            _note(values, i, "simulated", dot, len(dots))
            values["step_size"][i] = _value(dot, "step_size_best")
            if "trace" in dot:
                traces[i] = dot
            drawn = np.atleast_1d(dot.risk_draws.values[0] if "risk_draws" in dot else dot.risk.values)
            of_draws["measured"][i, : drawn.size] = drawn
            predicted = _predicted(panel, series, N, rows, float(values["step_size"][i]))
            if predicted is not None:
                of_draws["foretold"][i, : drawn.size] = predicted.risk
                for name, value in _agreement(drawn, predicted).items():
                    values[name][i] = value
    at_width: dict[str, Any] = {name: ("width", value) for name, value in values.items()}
    at_width |= {name: (("width", "draw"), value) for name, value in of_draws.items()}
    cited = (key for source in sources.values() for key in source.attrs["citations"].split(","))
    return dataset(
        {"limit": ("rho", line), **at_width, **_traces(traces, widths)},
        {"rho": rho, "width": widths},
        {
            "rests": "; ".join(f"{what}: {source.attrs['theorem']}" for what, source in sources.items()),
            "citations": ",".join(dict.fromkeys(cited)),
        },
    )


def _note(values: dict[str, Any], i: int, name: str, result: Dataset, draws: int) -> None:
    """Write a cross or a dot into the table."""
    values[name][i], values[f"{name}_stderr"][i] = _value(result, "risk"), _value(result, "stderr")
    values[f"{name}_draws"][i] = draws


def _value(result: Dataset, name: str) -> float:
    return float(result[name][0]) if name in result else np.nan


@dataclass(frozen=True, eq=False)
class _Predicted:
    """The risk predicted for each draw of a dot, what that leaves out, the scatter of a draw, and rounding."""

    risk: FloatArray
    allowance: float
    order: float
    floor: float


def _predicted(panel: Panel, series: Series, N: int, rows: Rows, step_size: float) -> _Predicted | None:
    """Return what is predicted of a dot; None without a prediction.

    A fit of random features: the exact risk at its own weights, and what n samples add. SGD: at its best step size.
    """
    exact = [float(row["risk"]) for row in rows[panel.name, series.label, "exact", N]]
    if isinstance(series.regime, RandomFeatures):
        fits = panel.draws(series, "simulate", N)
        n = fits[0].settled().whole("samples")
        if len(exact) < len(fits) or n <= N + 1:
            return None
        risk = np.array([R + added(R, N, n) for R in exact[: len(fits)]])
        left_out = float(np.mean([uncertain(R, N, n) for R in exact[: len(fits)]]))
        order = float(np.mean(risk)) * np.sqrt(_of_squares(panel.problem) / _TESTED)
        return _Predicted(risk, left_out, order, _EPSILON**2)
    draws = panel.predictions(series, N)
    if not draws or step_size not in draws[0].protocol.step_sizes:
        return None
    k = draws[0].protocol.step_sizes.index(step_size)
    own = rows[panel.name, series.label, "predict", N]
    if not all(row["known"][k] for row in own):
        return None
    risk, noise, allowance = (np.array([float(row[name][k]) for row in own]) for name in ("risk", "noise", "allowance"))
    order = _scatter(draws[0], float(risk.mean()), float(noise.mean()), float(np.mean(exact)) if exact else 0.0)
    # each step rounds a product and a sum, of relative size ε/2 each, in single precision
    return _Predicted(risk, float(allowance.mean()), order, draws[0].protocol.steps * _EPSILON**2)


def _scatter(draw: PredictedDraw, risk: float, noise: float, least: float) -> float:
    """Return the standard deviation of the risk that SGD ends with, for given weights, to leading order.

    The noise of the steps moves D = min(N, d)·d directions, each by about noise/D in squares: the sum of the squares
    has the variance 2·noise²/D, and what is still to be learnt, learnable = risk − noise − least, adds the cross term
    4·learnable·noise/D. Where the noise was measured by runs with a half and twice the batch, a quarter of the first
    and all of the second add (noise² + 2.5·learnable·noise)/D. Where the risk is that of test samples, the mean of
    their squares scatters too.
    """
    directions = min(draw.width, draw.problem.d) * draw.problem.d
    learnable = max(0.0, risk - noise - least)
    squares, cross = (2.0, 4.0) if draw.by_formula or draw.by_spectrum else (3.0, 6.5)
    variance = (squares * noise**2 + cross * learnable * noise) / directions
    tested = 0.0 if draw.regime.activation.is_square else _of_squares(draw.problem) * risk**2 / draw.protocol.test
    return float(np.sqrt(variance + tested))


def _of_squares(problem: Problem) -> float:
    """Return the relative variance of a squared residual: that of the target's own square, 2 if it were Gaussian.

    For ⟨x, Bx⟩ − Tr B it is 2 + 12 Tr B⁴/(Tr B²)².
    """
    if not isinstance(problem, QuadraticTarget):
        return 2.0
    squares = problem.eigenvalues**2
    return 2.0 + 12.0 * float(np.sum(squares**2)) / float(np.sum(squares)) ** 2


def _agreement(drawn: FloatArray, predicted: _Predicted) -> dict[str, float]:
    """Return how far a dot lies from its prediction; a dot with one draw has no standard error and no z."""
    dot = Dot("", drawn, predicted.risk, predicted.allowance, order=predicted.order, floor=predicted.floor)
    values = {"predicted": float(predicted.risk.mean()), "difference": dot.difference, "allowance": dot.allowance}
    return values | {"order": predicted.order, "floor": predicted.floor, "stderr": dot.stderr, "z": dot.z}


def _traces(traces: dict[int, Dataset], widths: Sequence[int]) -> dict[str, Any]:
    """Return risk against samples seen; a series without SGD has an empty one."""
    samples = next((dot.samples.values for dot in traces.values()), np.empty(0))
    table = np.full((len(widths), len(samples)), np.nan)
    for i, dot in traces.items():
        table[i] = dot.trace.values[0]
    return {
        "samples": ("point", samples),
        "trace": (("width", "point"), table),
        "point": np.arange(len(samples)),  # labels, as one series may have more points than another
    }

"""What the gap between the regimes depends on: the spectrum of B, the count of parameters, the activation.

Remarks of Ghorbani et al. (2019) on the quadratic target. Eq. 6: R_NN ≤ R_NT − GAP(ρ), "potentially unbounded". §2.2:
NT has its smaller risk "at the price of a larger number of parameters", Nd instead of N. Eq. 11: with many neurons the
risk of random features does not depend on σ. Lines are limits, dots `exact` at drawn weights. Each dot is held to its
mean over weights at the same N and d: exact for NT (`directions.projected`) and NN, to relative order 1/N for RF
(`spectral.gaussian`), which is allowed what one neuron more changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.judgement import Dot, judged
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits.directions import projected
from lazyscope.limits.gap import largest_gap, widest_apart
from lazyscope.limits.spectral.gaussian import at_finite_d
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained
from lazyscope.runs.pictures import LOOKS, scale_colour
from lazyscope.runs.verbs import limit

_DECAYS = (0.0, 0.25, 0.5, 1.0, 2.0)
_STEEP = np.linspace(0.0, 3.0, 31)
_RATIOS = (0.25, 0.5, 0.75)
_ACTIVATIONS = ("square", "relu", "abs", "softplus", "cos", "tanh")
_REGIMES: dict[str, Callable[[], Regime]] = {"RF": RandomFeatures, "NT": NeuralTangent, "NN": Trained}
_DOT: dict[str, Any] = {"marker": "o", "markersize": 4.5}
_CITED = "ghorbani2019limitations"


def power_law(d: int, decay: float) -> QuadraticTarget:
    """Return B with eigenvalues i^(−decay).

    >>> power_law(3, 1.0).B.round(3)
    array([1.   , 0.5  , 0.333])
    """
    return QuadraticTarget(np.arange(1.0, d + 1.0) ** -decay)


@dataclass(frozen=True)
class GapPreset(Preset):
    """Dimensions: of the gap and the activations, and of the count of parameters, where N goes up to d(d+1)/2."""

    d: int
    small: int
    draws: int

    @property
    def widths(self) -> tuple[int, ...]:
        """N of the dots of the gap and of the activations."""
        return tuple(round(ratio * self.d) for ratio in (0.1, 0.25, 0.5, 0.75, 1.0))

    @property
    def counted(self) -> dict[str, tuple[int, ...]]:
        """N of each regime on the panel of parameters."""
        d, forms = self.small, self.small * (self.small + 1) // 2
        wide = np.unique(np.rint(np.geomspace(2, 1.3 * forms, 14)).astype(int)).tolist()
        narrow = np.unique(np.rint(np.geomspace(1, 1.3 * d, 10)).astype(int)).tolist()
        return {"RF": tuple(sorted({*wide, forms})), "NT": tuple(narrow), "NN": tuple(narrow)}


PRESETS = {"quick": GapPreset("half a minute", 120, 30, 8), "paper": GapPreset("three minutes", 450, 60, 10)}


def _parts(preset: GapPreset) -> list[tuple[str, str, int, QuadraticTarget, Regime]]:
    """What is drawn: panel, series, N, problem and regime."""
    spectra = [
        ("gap", f"{decay:g}", N, power_law(preset.d, decay), NeuralTangent())
        for decay in _DECAYS
        for N in preset.widths
    ]
    activations = [
        ("activations", name, N, QuadraticTarget.exponential(preset.d), RandomFeatures(name))
        for name in _ACTIVATIONS
        for N in preset.widths
    ]
    counts = [
        ("parameters", name, N, QuadraticTarget.exponential(preset.small), _REGIMES[name]())
        for name, widths in preset.counted.items()
        for N in widths
    ]
    return [*spectra, *activations, *counts]


def work(preset: GapPreset) -> list[Run]:
    """Return the exact risks of every panel, draw by draw."""
    return [
        Run("exact", problem, regime, {"width": (N,)}, number=number)
        for _, _, N, problem, regime in _parts(preset)
        for number in range(preset.draws)
    ]


def data(preset: GapPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return four panels: gaps, ratios, counts of parameters, activations; lines of theory and dots."""
    risks = np.array([float(np.ravel(row["risk"])[0]) for row in rows]).reshape(-1, preset.draws)
    drawn = dict(zip([part[:3] for part in _parts(preset)], zip(*over_draws(risks), strict=True), strict=True))
    return {
        "gap": _gaps(preset, drawn),
        "ratio": _ratios(preset),
        "parameters": _parameters(preset, drawn),
        "activations": _activations(preset, drawn),
        "dots": _dots(preset, risks),
    }


def _dots(preset: GapPreset, risks: FloatArray) -> Dataset:
    """Return all dots, draw by draw, with what is predicted of them."""
    parts = _parts(preset)
    known = np.array([predicted(problem, regime, N) for *_, N, problem, regime in parts])
    columns: dict[str, Any] = {
        "risk_draws": (("point", "draw"), risks),
        "predicted": ("point", known[:, 0]),
        "allowance": ("point", known[:, 1]),
        "where": ("point", [f"{panel}, {series}, N = {N}" for panel, series, N, _, _ in parts]),
        "d": ("point", [problem.d for *_, problem, _ in parts]),
        "width": ("point", [N for _, _, N, _, _ in parts]),
    }
    return dataset(columns, attrs={"citations": f"{_CITED},defilippis2024dimension"})


def predicted(problem: QuadraticTarget, regime: Regime, N: int) -> tuple[float, float]:
    """Return the mean risk over weights at this N and d, and what it leaves out.

    >>> predicted(QuadraticTarget([1.0, 1.0, 1.0]), NeuralTangent(), 2)[0]  # ‖P⊥‖²/‖I‖²
    0.3333333333333333
    """
    b = problem.eigenvalues
    if isinstance(regime, NeuralTangent):
        return float(np.sum(projected(b, max(problem.d - N, 0))[1]) / np.sum(b**2)), 0.0
    if isinstance(regime, Trained):
        return float(limit(problem, regime, rho=N / problem.d).risk), 0.0
    assert isinstance(regime, RandomFeatures)
    seen = at_finite_d(problem, regime.activation)
    here, more = limit(seen, regime, width=np.array([N, N + 1]), samples=np.inf, ridge=0.0).risk.values.tolist()
    return here, abs(more - here)


_Drawn = Mapping[tuple[str, str, int], tuple[float, float]]


def _gaps(preset: GapPreset, drawn: _Drawn) -> Dataset:
    d, widths = preset.d, preset.widths
    rho = np.arange(1, d + 1) / d
    lines, crosses = [], []
    for decay in _DECAYS:
        problem = power_law(d, decay)
        tangent, trained = (limit(problem, regime, rho=rho).risk.values for regime in (NeuralTangent(), Trained()))
        lines.append(tangent - trained)
        below = limit(problem, Trained(), rho=np.array(widths) / d).risk.values
        cells = [drawn["gap", f"{decay:g}", N] for N in widths]
        crosses.append([(risk - floor, error) for (risk, error), floor in zip(cells, below, strict=True)])
    gaps = np.array(crosses)
    wide = [QuadraticTarget(widest_apart(d, N)) for N in widths]
    attained = [
        float(limit(b, NeuralTangent(), rho=N / d).risk - limit(b, Trained(), rho=N / d).risk)
        for b, N in zip(wide, widths, strict=True)
    ]
    return dataset(
        {
            "line": (("decay", "rho"), np.array(lines)),
            "gap": (("decay", "width"), gaps[..., 0]),
            "stderr": (("decay", "width"), gaps[..., 1]),
            "largest": ("rho", largest_gap(rho)),
            "attained": ("width", attained),
        },
        {"decay": list(_DECAYS), "rho": rho, "width": list(widths)},
        {"d": d, "citations": _CITED},
    )


def _ratios(preset: GapPreset) -> Dataset:
    """R_NT/R_NN against the decay of the spectrum, by Theorems 2 and 3."""
    rho = np.array(_RATIOS)
    some = [power_law(preset.d, decay) for decay in _STEEP]
    lines = [limit(b, NeuralTangent(), rho=rho).risk.values / limit(b, Trained(), rho=rho).risk.values for b in some]
    about = {"d": preset.d, "citations": _CITED}
    return dataset({"line": (("decay", "rho"), np.array(lines))}, {"decay": _STEEP, "rho": rho}, about)


def _parameters(preset: GapPreset, drawn: _Drawn) -> Dataset:
    """Risk against the number of parameters, N for RF and Nd for the others."""
    d = preset.small
    problem = QuadraticTarget.exponential(d)
    seen = at_finite_d(problem)
    points = []
    for name, widths in preset.counted.items():
        for N in widths:
            theory = finite = float(limit(problem, _REGIMES[name](), rho=N / d).risk)
            if name == "RF":
                finite = float(limit(seen, RandomFeatures("square"), width=N, samples=np.inf, ridge=0.0).risk)
            points.append((name, N if name == "RF" else N * d, *drawn["parameters", name, N], theory, finite))
    names = ("regime", "parameters", "risk", "stderr", "limit", "finite")
    columns = {name: ("point", list(values)) for name, values in zip(names, zip(*points, strict=True), strict=True)}
    return dataset(columns, attrs={"d": d, "citations": f"{_CITED},defilippis2024dimension"})


def _activations(preset: GapPreset, drawn: _Drawn) -> Dataset:
    d, widths = preset.d, preset.widths
    rho = np.geomspace(0.05, 300.0, 120)
    problem = QuadraticTarget.exponential(d)
    lines = [limit(problem, RandomFeatures(name), rho=np.append(rho, np.inf)).risk.values for name in _ACTIVATIONS]
    cells = np.array([[drawn["activations", name, N] for N in widths] for name in _ACTIVATIONS])
    return dataset(
        {
            "line": (("activation", "rho"), np.array(lines)[:, :-1]),
            "wide": ("activation", np.array(lines)[:, -1]),
            "risk": (("activation", "width"), cells[..., 0]),
            "stderr": (("activation", "width"), cells[..., 1]),
        },
        {"activation": list(_ACTIVATIONS), "rho": rho, "width": list(widths)},
        {"d": d, "citations": _CITED, "independent": 1.0 - problem.alignment},
    )


def _draw_gaps(axes: Axes, panel: Dataset) -> None:
    d = panel.attrs["d"]
    axes.plot(panel.rho, panel.largest, color="#222222", linestyle="--", label="the largest of all spectra")
    for k, decay in enumerate(panel.decay.values.tolist()):
        at, colour = panel.sel(decay=decay), scale_colour(k / (panel.decay.size - 1))
        label = "bᵢ equal: no gap" if decay == 0.0 else f"bᵢ = i$^{{−{decay:g}}}$"
        axes.plot(panel.rho, at.line, color=colour, label=label)
        axes.errorbar(panel.width / d, at.gap, at.stderr, color=colour, linestyle="", **_DOT)
    axes.set(xlabel="N/d", ylabel="GAP(ρ) = risk of NT − risk of NN", title=f"Eq. 6: the gap, d = {d}")
    axes.legend()


def _draw_ratios(axes: Axes, panel: Dataset) -> None:
    for k, rho in enumerate(panel.rho.values.tolist()):
        axes.plot(panel.decay, panel.line.sel(rho=rho), color=scale_colour(k / 2), label=f"N/d = {rho:g}")
    axes.set(xlabel="s of the spectrum bᵢ = i$^{−s}$", ylabel="risk of NT / risk of NN", yscale="log")
    axes.set_title(f"The ratio has no bound, d = {panel.attrs['d']}")
    axes.legend()


def _draw_parameters(axes: Axes, panel: Dataset) -> None:
    d = panel.attrs["d"]
    for name in _REGIMES:
        at = panel.isel(point=panel.regime.values == name)
        look = LOOKS[name]
        parameters = "N" if name == "RF" else "Nd"
        axes.plot(at.parameters, at.finite, color=look["color"], linewidth=1.5)
        axes.errorbar(at.parameters, at.risk, at.stderr, linestyle="", label=f"{name}, {parameters} parameters", **look)
    random = panel.isel(point=panel.regime.values == "RF")
    colour = LOOKS["RF"]["color"]
    axes.plot(random.parameters, random.limit, color=colour, linestyle=":", label="RF, d → ∞ at N/d")
    axes.axvline(d * (d + 1) / 2, color="#888888", linewidth=0.8)
    axes.text(d * (d + 1) / 2 * 0.93, 0.97, "d(d+1)/2", color="#666666", ha="right", va="top", fontsize=9)
    axes.set(xscale="log", xlabel="number of parameters", ylabel="risk / risk of the best constant", ylim=(-0.03, 1.03))
    axes.set_title(f"§2.2: risk against the number of parameters, d = {d}")
    axes.legend(loc="lower left")


def _draw_activations(axes: Axes, panel: Dataset) -> None:
    d = panel.attrs["d"]
    axes.axhline(panel.attrs["independent"], color="#222222", linestyle="--")
    axes.text(0.052, panel.attrs["independent"] + 0.01, "N/d = ∞, every σ with λ₂ ≠ 0", fontsize=9.5)
    for k, name in enumerate(panel.activation.values.tolist()):
        at, colour = panel.sel(activation=name), scale_colour(k / (panel.activation.size - 1))
        axes.plot(panel.rho, at.line, color=colour, label=name)
        axes.errorbar(panel.width / d, at.risk, at.stderr, color=colour, linestyle="", **_DOT)
    axes.set(xscale="log", xlabel="N/d", ylabel="risk of RF", title=f"Eq. 11: many features forget σ, d = {d}")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.1))


def dots_of(panel: Dataset) -> list[Dot]:
    """Return the dots of all panels; those of one N and d were made from the same weights."""
    return [
        Dot(str(at["where"].item()), at.risk_draws.values, float(at.predicted), float(at.allowance),
            stream=(int(at.d), int(at.width)))
        for at in (panel.isel(point=i) for i in range(panel.sizes["point"]))
    ]  # fmt: skip


plot = frames(
    (11.0, 8.6),
    (_draw_gaps, "gap"),
    (_draw_ratios, "ratio"),
    (_draw_parameters, "parameters"),
    (_draw_activations, "activations"),
    rows=2,
)
"""The four panels."""


def verdict(data: Panels) -> list[str]:
    """Return gaps and ratios, and whether all remarks stand: as dots, as bounds and as limits."""
    gap, ratio, sigma = (data[name] for name in ("gap", "ratio", "activations"))
    rows = [int(np.argmin(np.abs(gap.rho.values - N / gap.attrs["d"]))) for N in gap.width.values]
    lines = [f"{'GAP at N/d':<12}" + "".join(f"{N / gap.attrs['d']:>11.2g}" for N in gap.width.values)]
    for decay in gap.decay.values.tolist():
        cells = "".join(f"{float(gap.line.sel(decay=decay)[i]):>11.4f}" for i in rows)
        lines.append(f"{f'i^−{decay:g}' if decay else 'equal':<12}{cells}")
    lines.append(f"{'largest':<12}" + "".join(f"{float(gap.largest[i]):>11.4f}" for i in rows))
    wrong = []
    if np.any(gap.line.values > gap.largest.values + 1e-12) or np.any(np.abs(gap.line.values[0]) > 1e-12):
        wrong.append("the largest gap, or none for equal eigenvalues")
    if np.max(np.abs(gap.attained.values - gap.largest.values[rows])) > 1e-9:
        wrong.append("the spectrum that attains the largest gap")
    if not np.all(np.diff(ratio.line.values, axis=0) > 0):
        wrong.append("ratios that grow with the decay")
    every = np.abs(sigma.wide.values[:-1] - sigma.attrs["independent"]).max()
    if every > 1e-12 or abs(float(sigma.wide[-1]) - 1.0) > 1e-12:
        wrong.append("independence of σ")
    top = ratio.line.isel(decay=-1).values
    told = ", ".join(f"{value:.3g} at N/d = {rho:g}" for value, rho in zip(top, ratio.rho.values, strict=True))
    lines.append(f"R_NT/R_NN for b_i = i^−{ratio.decay.values[-1]:g}: {told}")
    judgement = judged(dots_of(data["dots"])).answer()
    stated = f"not as stated: {', '.join(wrong)}" if wrong else "bounds and limits are as stated"
    words = f"{judgement}; {stated}."
    return [*lines, answer(judgement.holds and not wrong, words, words)]


_TITLE = "What the gap depends on: spectrum, parameters, activation (Limitations, Eqs. 6 and 11, §2.2)"
_FAULTS = (wrong_rows("risks 5 % too high", data, "risk", lambda k, risk: 1.05 * risk),)
EXPERIMENT = Experiment("gap", _TITLE, PRESETS, work, data, plot, verdict, place=18, faults=_FAULTS)

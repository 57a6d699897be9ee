"""What the figures of Limitations of Lazy Training share: panels of series, and an experiment made of them.

A series has its line (`limit`), crosses (`exact`) and dots (`simulate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lazyscope.checks import whole_numbers
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Work
from lazyscope.experiments.frame import Experiment, Preset, Row, drawing
from lazyscope.experiments.frame.experiment import Early
from lazyscope.experiments.frame.predicted import PredictedDraw, is_predicted
from lazyscope.experiments.frame.verdict import Fault
from lazyscope.problems import GaussianProblem, SizedProblem
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained

if TYPE_CHECKING:
    from lazyscope.experiments.frame.types import Dataset, Figure, Panels

Place = tuple[str, str, Literal["exact", "simulate", "predict"], int]
"""Panel, series, fidelity and width: where a cross, a dot or its prediction belongs."""

RATIOS = (0.1, 0.15, 0.25, 0.4, 0.65, 1.0, 2.0, 4.5, 10.0)


@dataclass(frozen=True)
class Dots:
    """How the dots of a regime are made: widths, draws, and the samples of a fit or the protocol of SGD.

    The paper's samples and protocol where they are None. Some widths may have `fewer` draws or `chosen` step sizes in
    place of the grid; `halving` gives step sizes up on the way, as that of `SGD`. `best` has the step size that was
    found best at a width: a trained network is predicted there for that one alone, as that takes two runs more.
    """

    widths: tuple[int, ...]
    draws: int
    samples: int | None = None
    protocol: SGD | None = None
    fewer: Mapping[int, int] = field(default_factory=dict)
    chosen: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    halving: tuple[float, ...] = ()
    best: Mapping[int, float] = field(default_factory=dict)

    def draws_at(self, N: int) -> int:
        """Return how many draws the dot at this width has; none where there is no dot."""
        return self.fewer.get(N, self.draws) if N in self.widths else 0

    def protocol_at(self, N: int, problem: SizedProblem, regime: Regime) -> SGD:
        """Return how networks of this width are trained."""
        protocol = self.protocol or SGD.paper(problem, regime)
        if N in self.chosen:
            return replace(protocol, step_sizes=self.chosen[N])
        return replace(protocol, halving=self.halving) if self.halving else protocol


@dataclass(frozen=True)
class PanelsPreset(Preset):
    """The size of a figure: dimension, and the dots of each regime.

    Crosses have `draws` draws at N/d in `ratios`, and at the widths of the dots; `wide` draws beyond N/d = 3.
    `widest` is N/d up to which `exact` descends on networks other than σ = u², at N²d a step, from `restarts` starts.
    """

    d: int
    fitted: Dots
    tangent: Dots
    trained: Dots
    ratios: tuple[float, ...] = RATIOS
    draws: int = 10
    wide: int = 3
    widest: float = 4.5
    restarts: int = 1

    @classmethod
    def paper(cls, cost: str, widths: tuple[int, ...] = (45, 225, 450, 4500)) -> PanelsPreset:
        """Return the paper's protocol (§4): d = 450, fits of 5·10⁵ samples over ten draws, SGD in a single run.

        >>> PanelsPreset.paper("hours").fitted.widths
        (45, 450, 4500)
        """
        fits = tuple(N for N in (45, 450, 4500) if N in widths)
        return cls(d=450, fitted=Dots(fits, 10), tangent=Dots(widths, 1), trained=Dots(widths, 1), cost=cost)

    @classmethod
    def thrifty(
        cls,
        cost: str,
        widths: tuple[int, ...] = (45, 225, 450, 4500),
        trained: tuple[float, ...] = (),
        tangent: tuple[float, ...] = (),
        best: Mapping[int, float] | None = None,
    ) -> PanelsPreset:
        """Return the paper's protocol with less work at the same dots.

        Of the six step sizes three are given up after a tenth of the steps and one more after three tenths. That keeps
        the best in all eight runs of Figure 1, which tried all six to the end. At N = 4500 networks and tangent models
        may have the step sizes `trained` and `tangent`, found best at smaller N, and two fits are drawn, as their risks
        hardly differ. `best` has the step sizes that trained networks were found to do best with, to be predicted.
        Crosses beyond N = 3d, which hardly vary, are of one draw, and descent on trained networks ends at N = 2d.

        >>> PanelsPreset.thrifty("hours", trained=(0.01,)).trained.chosen
        {4500: (0.01,)}
        """
        plain, halving = cls.paper(cost, widths), (0.1, 0.3)
        at_trained, at_tangent = ({4500: sizes} if sizes else {} for sizes in (trained, tangent))
        return replace(
            plain,
            wide=1,
            widest=2.0,
            fitted=replace(plain.fitted, fewer={4500: 2}),
            tangent=replace(plain.tangent, halving=halving, chosen=at_tangent),
            trained=replace(plain.trained, halving=halving, chosen=at_trained, best=best or {}),
        )

    def at(self, widths: Any) -> PanelsPreset:
        """Return the same with dots at other widths.

        >>> PanelsPreset.paper("hours").at([90]).tangent.widths
        (90,)
        """
        chosen = tuple(sorted(set(whole_numbers(widths, "lazyscope figure", "--width").ravel().tolist())))
        dots = {name: replace(getattr(self, name), widths=chosen) for name in ("fitted", "tangent", "trained")}
        return replace(self, **dots)


@dataclass(frozen=True, eq=False)
class Series:
    """A regime on a panel: `crosses` says with how many draws `exact` is computed at which widths."""

    label: str
    regime: Regime
    crosses: Mapping[int, int]
    dots: Dots


@dataclass(frozen=True, eq=False)
class Panel:
    """A problem and its series; `name` tells the panels of a figure apart, `floor` asks for the Bayes risk."""

    name: str
    title: str
    problem: SizedProblem
    series: tuple[Series, ...]
    floor: bool = False
    seed: int = 0

    def draws(self, series: Series, fidelity: Literal["exact", "simulate"], N: int) -> list[Run]:
        """Return the draws of one cross or of one dot; an empty list where there is none at this width."""
        dots, sizes = series.dots, {"width": (N,)}
        if fidelity == "exact":
            crosses = range(series.crosses.get(N, 0))
            return [Run("exact", self.problem, series.regime, sizes, number=k, seed=self.seed) for k in crosses]
        if dots.samples is not None:
            sizes["samples"] = (dots.samples,)
        trained = isinstance(series.regime, (Trained, NeuralTangent))
        protocol = dots.protocol_at(N, self.problem, series.regime) if trained else None
        first = Run("simulate", self.problem, series.regime, sizes, protocol=protocol, seed=self.seed)
        return [first.at(number=k) for k in range(dots.draws_at(N))]

    def predictions(self, series: Series, N: int) -> list[PredictedDraw]:
        """Return what is predicted of a dot that SGD makes; random features follow from their crosses.

        Where work is saved, trained networks are predicted for their best step size alone, at the widths for which it
        is given: all would ask for as much again as the dots.
        """
        regime, dots = series.regime, series.dots
        if not isinstance(regime, (Trained, NeuralTangent)) or not is_predicted(regime):
            return []
        assert isinstance(self.problem, GaussianProblem)  # all problems of the paper are Gaussian
        protocol = dots.protocol_at(N, self.problem, regime)
        if isinstance(regime, Trained) and dots.halving:
            if N not in dots.best:
                return []
            protocol = replace(protocol, step_sizes=(dots.best[N],), halving=None)
        return [PredictedDraw(self.problem, regime, N, protocol, k, self.seed) for k in range(dots.draws_at(N))]

    def at_a_width(self, series: Series, N: int) -> Panel:
        """Return the panel with only this series and this width."""
        crosses = {N: series.crosses[N]} if N in series.crosses else {}
        return replace(self, series=(replace(series, crosses=crosses, dots=replace(series.dots, widths=(N,))),))

    @property
    def widths(self) -> list[int]:
        """All widths of the panel, ascending."""
        return sorted({N for series in self.series for N in (*series.crosses, *series.dots.widths)})

    def places(self) -> Iterator[tuple[Place, Sequence[Work]]]:
        """Yield every cross, dot and prediction, with its draws."""
        fidelities: tuple[Literal["exact", "simulate"], ...] = ("exact", "simulate")
        for series in self.series:
            for fidelity in fidelities:
                for N in self.widths:
                    yield (self.name, series.label, fidelity, N), self.draws(series, fidelity, N)
            for N in self.widths:
                yield (self.name, series.label, "predict", N), self.predictions(series, N)


def crosses_at(preset: PanelsPreset, dots: Dots) -> list[int]:
    """Return the widths of the crosses of a regime, from d/10 to 10d.

    >>> paper = PanelsPreset.paper("hours")
    >>> crosses_at(paper, paper.fitted)
    [45, 68, 112, 180, 292, 450, 900, 2025, 4500]
    """
    return sorted({*np.rint(np.multiply(preset.d, preset.ratios)).astype(int).tolist(), *dots.widths})


def line_at(d: int) -> list[float]:
    """Return N/d for the lines, with N whole: the limit of a trained network is a function of N = round(ρd)."""
    return [float(N) / d for N in np.unique(np.rint(d * np.geomspace(0.09, 11.0, 400)).clip(1))]


def regimes(
    problem: SizedProblem, preset: PanelsPreset, activation: str = "square", optimal: bool = True
) -> tuple[Series, ...]:
    """Return the series of a panel: RF with isotropic (and with optimal) weights, NT and NN.

    A cross has ten draws, as the paper's dots, or few where a draw costs seconds and hardly varies; at the width of a
    dot it has at least the draws of that dot, to be compared one by one.
    Nothing is drawn for NN with σ = u², nor for NT with N ≥ d: d weights span the space.
    """
    square = activation == "square"
    laws = [("RF, isotropic weights", RandomFeatures(activation))] if optimal else [("RF", RandomFeatures(activation))]
    if optimal:
        laws.append(("RF, optimal weights", RandomFeatures(activation, "optimal")))

    def drawn(dots: Dots, certain_from: float) -> dict[int, int]:
        many = {
            N: min(preset.wide, preset.draws) if N / preset.d > 3 else preset.draws for N in crosses_at(preset, dots)
        }
        some = {N: max(many[N], dots.draws_at(N)) for N in many}
        return {N: 1 if certain_from <= N else k for N, k in some.items()}

    def descended(dots: Dots) -> dict[int, int]:
        widths = [N for N in crosses_at(preset, dots) if square or preset.widest * preset.d >= N]
        return dict.fromkeys(widths, 1 if square else preset.restarts)

    return (
        *(Series(label, law, drawn(preset.fitted, np.inf), preset.fitted) for label, law in laws),
        Series("NT", NeuralTangent(activation), drawn(preset.tangent, problem.d if square else np.inf), preset.tangent),
        Series("NN", Trained(activation), descended(preset.trained), preset.trained),
    )


def _with_longer_steps(draw: Work) -> Run | None:
    """Return a run of SGD with steps half as long again; None for other work."""
    if not isinstance(draw, Run) or not isinstance(draw.protocol, SGD):
        return None
    sizes = tuple(1.5 * size for size in draw.protocol.step_sizes)
    return draw.at(protocol=replace(draw.protocol, step_sizes=sizes))


def experiment_of(
    name: str,
    title: str,
    place: int,
    presets: Mapping[str, PanelsPreset],
    panels: Callable[[PanelsPreset], tuple[Panel, ...]],
    lowest: float,
) -> Experiment[PanelsPreset]:
    """Return the experiment that computes some panels; its dots can be moved, and taken from reference runs.

    One panel is drawn with its traces beside it, several are small multiples; axes begin at the `lowest` risk.
    """
    from lazyscope.experiments.lazy import collect, tables

    def plot(data: Panels) -> Figure:
        if len(data) > 1:
            return drawing.small_multiples(data, columns=3, lowest=lowest)
        return drawing.two_frames(next(iter(data.values())), lowest=lowest)

    def places(preset: PanelsPreset) -> list[tuple[Place, Sequence[Work]]]:
        return [at for panel in panels(preset) for at in panel.places()]

    def by_place(preset: PanelsPreset, rows: Sequence[Row]) -> dict[Place, list[Row]]:
        left = iter(rows)
        return {at: [next(left) for _ in draws] for at, draws in places(preset)}

    def data(preset: PanelsPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
        own = by_place(preset, rows)
        return {panel.name: collect.panel_data(panel, own) for panel in panels(preset)}

    def fault(words: str, change: Callable[[Sequence[Row], Sequence[Work]], list[Row]]) -> Fault:
        """Return the fault that the dots have other rows."""

        def planted(preset: PanelsPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
            own = by_place(preset, rows)
            for at, draws in places(preset):
                if at[2] == "simulate":
                    own[at] = change(own[at], draws)
            return {panel.name: collect.panel_data(panel, own) for panel in panels(preset)}

        return Fault(words, planted)

    def too_high(rows: Sequence[Row], draws: Sequence[Work]) -> list[Row]:
        return [row | {name: 1.05 * row[name] for name in ("risk", "trace") if name in row} for row in rows]

    def with_longer_steps(rows: Sequence[Row], draws: Sequence[Work]) -> list[Row]:
        longer = (_with_longer_steps(draw) for draw in draws)
        return [row if run is None else run.compute() for row, run in zip(rows, longer, strict=True)]

    def with_swapped_weights(rows: Sequence[Row], draws: Sequence[Work]) -> list[Row]:
        return [rows[min(2, len(rows) - 1)], *rows[1:]] if rows else []

    def exchanged(rows: Sequence[Row], draws: Sequence[Work]) -> list[Row]:
        return [*rows[1::-1], *rows[2:]]

    faults = (
        fault("risks 5 % too high", too_high),
        fault("steps half as long again as they are said to be", with_longer_steps),
        fault("a first draw that was made with the weights of the third", with_swapped_weights),
        fault("two draws with each other's weights", exchanged),
    )

    def tasks(preset: PanelsPreset) -> list[dict[str, Any]]:
        names = ("panel", "series", "fidelity", "width")
        numbered = ((at, number) for at, draws in places(preset) for number in range(len(draws)))
        return [{**dict(zip(names, at, strict=True)), "draw": number} for at, number in numbered]

    def early(preset: PanelsPreset) -> list[Early]:
        """A line for each dot, with its cross: both at the same width."""
        count, at_dots = 0, dict[tuple[str, str, int], list[int]]()
        for (panel, label, _, N), draws in places(preset):
            at_dots.setdefault((panel, label, N), []).extend(range(count, count + len(draws)))
            count += len(draws)
        dots = [
            (panel.at_a_width(series, N), at_dots[panel.name, series.label, N])
            for panel in panels(preset) for series in panel.series for N in series.dots.widths
        ]  # fmt: skip
        return [Early(own, partial(tables.line, one)) for one, own in dots]

    return Experiment(
        name,
        title,
        presets,
        work=lambda preset: [draw for _, draws in places(preset) for draw in draws],
        data=data,
        plot=plot,
        verdict=tables.verdict,
        place=place,
        at_widths=PanelsPreset.at,
        borrows=True,
        tasks=tasks,
        rows=tables.long_rows,
        faults=faults,
        early=early,
    )

"""Your data: the forecast of a table that the user brings, against n and against N, from one kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.explorer.tables.reading import FARTHER, Source, table_of
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.brought import AGAINST, BEYOND, WIDEST, DataState, Setting, again, grids_of, header
from lazyscope.explorer.views.calls import Call, Plan, Task, listing
from lazyscope.explorer.views.picture import Picture, axis
from lazyscope.lenses.forecast.verb import ASSUMPTIONS, CITATIONS, THEOREM
from lazyscope.problems import Problem

_DOTS = (10, 20, 50, 100, 200, 500, 1000, 2000)
_TRAINED = 0.8  # of the rows at most; the others are tested on

CLAIM = {
    "key": "report/forecast", "title": "Forecast from one kernel matrix", "theorem": THEOREM,
    "citations": list(CITATIONS), "assumptions": list(ASSUMPTIONS), "erratum": "",
}  # fmt: skip
MEASURED = {
    **CLAIM, "key": "report/held-out", "title": "Fits on rows of the table, tested on the others",
    "theorem": "None: mean squared errors on rows that a fit has not seen, over the variance of the target",
    "citations": [], "assumptions": ["rows are drawn at random for each fit, and so are features"],
}  # fmt: skip


def lines(state: DataState) -> dict[str, Any]:
    """The forecast against n, the part beyond the rows dashed, and against N, each with its band."""
    setting = Setting.of(state)
    known, P = setting.known, setting.pool
    grids = grids_of(setting)
    axes = axis("n or N", log=True, range_=(1.0, float(max(WIDEST, setting.far))))
    top = axis("error / best constant's", log=state.log, range_=_range(setting))
    picture = Picture(f"{known.about}; {setting.regime}", axes, [top])
    n, N = grids["samples"][0], grids["width"][0]
    shares = setting.shares(n, setting.N)
    name, role = AGAINST["samples"]
    for label, part, dash in ((name, n <= P, "solid"), (BEYOND, n >= P, "dash")):
        if np.count_nonzero(part) > 1:
            low, high = shares.band
            picture.line(label, role, n[part], shares.value[part], CLAIM, dash=dash, band=(low[part], high[part]))
    if state.regime == "rf":
        shares = setting.shares(setting.n, N)
        name, role = AGAINST["width"]
        dash = "solid" if setting.n <= P else "dash"
        picture.line(name, role, N, shares.value, CLAIM, dash=dash, band=shares.band)
    _tell(picture, setting)
    command, python = again(setting, grids)
    table = {
        "data": state.data,
        "name": setting.source.name,
        "rows": known.rows,
        "columns": list(known.columns.columns),
    }
    table["target"] = known.target
    return {**picture.answer("data", state, command, python), "reading": _reading(setting), "table": table}


def _range(setting: Setting) -> tuple[float, float]:
    """Return the axis of a table, which stands still while sizes move: down to what it can come to, with all rows."""
    if not setting.state.log:
        return 0.0, 1.5
    return _below(0.7 * float(setting.at_best(setting.pool, np.inf).value[0])), 5.0


def _below(value: float) -> float:
    """Return the next of 1, 2, 5, 10, … below."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-6)))
    return float(max(step for step in (1.0, 2.0, 5.0) if step * power <= max(value, 1e-6)) * power)


def _tell(picture: Picture, setting: Setting) -> None:
    """Add marks, the advice, and what was done to the table."""
    state, known, P = setting.state, setting.known, setting.pool
    picture.mark(float(setting.n), "your n")
    if np.isfinite(setting.N):
        picture.mark(setting.N, "your N")
    picture.mark(float(P), "rows at hand" if known.rows == P else "rows of the kernel")
    picture.note("Advice", " ".join(known.advice))
    if known.notes:
        said = "; ".join(known.notes)
        picture.note("The table", f"{said[0].upper()}{said[1:]}.")
    if state.samples > setting.far:
        why = f"{FARTHER:g} times the rows" if setting.far > P else "all rows: too few to look beyond them"
        picture.note("Rows n", f"Shown at {setting.far:,}, {why}.")


def _reading(setting: Setting) -> str:
    """The current point in words."""
    n, N = setting.n, setting.N
    here, best = setting.shares(n, N), setting.at_best(n, N)
    share, factor, ridge, freedom = (
        float(part[0]) for part in (here.value, here.factor, here.ridge, here.degrees_of_freedom)
    )
    letter = "best λ" if setting.state.best else "λ"
    where = f"n = {n:,}, N = {'∞' if np.isinf(N) else f'{N:,.0f}'}, {letter} = {ridge:.2g}"
    if not np.isfinite(share):
        return f"At {where} the error is infinite: N = n without a ridge."
    text = f"At {where}: {_percent(share)} % of the best constant's error"
    text += f" ({_percent(share / factor)}–{_percent(share * factor)} %), {freedom:.0f} degrees of freedom"
    text += ", by extrapolation." if n > setting.pool else "."
    if setting.state.best:
        return text
    return f"{text} Best λ: {best.ridge[0]:.2g} ({_percent(best.value[0])} %)."


def _percent(share: Any) -> str:
    """Return a share in percent, in few digits.

    >>> _percent(0.0123), _percent(0.523), _percent(12.0)
    ('1.2', '52', '1200')
    """
    value = 100.0 * float(share)
    return f"{value:.1f}" if value < 10.0 else f"{value:.0f}" if value < 1000.0 else f"{float(f'{value:.3g}'):.0f}"


# -- dots ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BroughtTable(Problem):
    """A table that a user brought: what nature does is in its rows."""

    source: Source
    target: str

    def __str__(self) -> str:
        return f"{self.source.name}, target {self.target}"


@dataclass(frozen=True, eq=False)
class Fit(Call):
    """Fits on rows of a table, in the place of a verb."""

    def run(self) -> FloatArray:
        """Return the errors of all draws."""
        from lazyscope.lenses.forecast.held_out import held_out

        assert isinstance(self.problem, BroughtTable)
        table, _ = table_of(self.problem.source, self.problem.target)
        return held_out(table, self.regime, **self.arguments)

    def claim(self) -> dict[str, Any]:
        """Return what its result rests on."""
        return MEASURED

    def values(self, result: FloatArray, variable: str) -> tuple[Any, Any]:
        """Return the mean over draws, and its standard error: None if there is one draw."""
        return result.mean(), result.std(ddof=1) / np.sqrt(len(result)) if len(result) > 1 else None

    def source(self) -> str:
        """Write the call; table and regime are variables."""
        given = {name: "np.inf" if value == np.inf else repr(value) for name, value in self.arguments.items()}
        return f"held_out(table, regime, {', '.join(f'{name}={value}' for name, value in given.items())})"


def plan(state: DataState, fidelity: Drawn) -> Plan:
    """Fits on rows of the table, tested on the others, along both curves."""
    setting = Setting.of(state)
    most = int(min(_TRAINED * setting.known.rows, _DOTS[-1]))
    notes, tasks = [], []
    for name, (label, role) in AGAINST.items():
        along_n = name == "samples"
        if not along_n and state.regime == "nt":
            continue
        if not along_n and setting.n > most:
            notes.append((label, f"No dots: n = {setting.n:,} leaves too few rows to test on. At most {most:,}."))
            continue
        for size in (size for size in _DOTS if not along_n or size <= most):
            n, N = (size, setting.N) if along_n else (setting.n, float(size))
            ridge = float(setting.shares(n, N).ridge[0])
            given: dict[str, Any] = {"samples": n, "width": N if np.isinf(N) else int(N), "ridge": ridge}
            given |= {"draws": state.draws, "seed": state.seed}
            fit = Fit("simulate", BroughtTable(setting.source, setting.known.target), setting.regime, given)
            where = f"n = {n}, N = {'∞' if np.isinf(N) else int(N)}"
            tasks.append(Task(fit, f"{label}, {where}", [(role, label, 0, "share")], _at(size)))
    python = listing(header(setting, "held_out"), tasks, "errors.mean().round(4)", "errors")
    return Plan(tuple(tasks), tuple(notes), "", python)


def _at(size: int) -> Callable[[Any], int]:
    return lambda result: size


VIEW = View(
    name="data",
    title="Your data",
    text="Drop a CSV or NPZ file: one kernel matrix of its rows tells the test error of ridge regression at every "
    "number of rows n, width N and ridge λ, as a share of the best constant's. At N = n and a small ridge the error "
    "peaks; beyond the rows at hand (dashed) it is extrapolated.",
    theorem="Deterministic equivalents read from leave-one-out errors (Defilippis et al. 2024); bands of 90 %.",
    state=DataState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Peak at N = n": {"regime": "rf", "infinite": False, "best": False, "ridge": 1e-4, "width": 100},
        "Best ridge": {"best": True},
        "Kernel, N = ∞": {"regime": "rf", "infinite": True},
        "Tangent kernel": {"regime": "nt"},
    },
    export={
        "data": ["diabetes", "breast_cancer"],
        "regime": ["rf", "nt"],
        "samples": [50, 200, 1000],
        "width": [20, 100, 400],
        "infinite": [False, True],
        "ridge": [1e-4, 1e-2, 1.0],
    },
    long=True,
)

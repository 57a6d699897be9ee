"""`lazyscope report`: what is measured about wide networks, as tables: interpolation, lazy-to-rich, mean-field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lazyscope.cli import output
from lazyscope.cli.asking import declared, effort, grammar
from lazyscope.errors import InvalidParameter
from lazyscope.problems import QuadraticTarget, SizedProblem
from lazyscope.protocols import ParticleDescent

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

_SEED = click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of the weights and the data.")
Show = Callable[["xr.Dataset"], tuple["Table", list[str]]]


def _draws(usual: int) -> click.Option:
    return click.Option(["--draws"], type=int, default=usual, show_default=True, help="Independent draws.")


def _deliver(name: str, options: dict[str, Any], compute: Callable[[], xr.Dataset], show: Show) -> None:
    """Check where the report is to go, compute it, and send it there; `lazyscope figure` draws its picture."""
    from lazyscope.cli.terminal import console, progress_bar

    wanted = output.Wanted.of(f"lazyscope report {name}", options)
    with progress_bar():
        computed = compute()

    def printed(result: xr.Dataset) -> None:
        grid, lines = show(result)
        out = console()
        out.print(result.attrs["problem"], soft_wrap=True)
        out.print(grid)
        for line in lines:
            out.print(line, soft_wrap=True)

    output.deliver(wanted, computed, None, printed)


# -- interpolation: how many neurons fit n random labels -------------------------------------------------------------


def _interpolation(**options: Any) -> None:
    from lazyscope.experiments.wide.interpolation import interpolation

    owner = "lazyscope report interpolation"
    kinds = [name.strip().upper() for name in options["regime"].split(",")]
    how = {name: options[name] for name in ("activation", "draws", "seed")} | {"kinds": kinds}
    if options["width"] is not None:
        how["widths"] = grammar.parse(options["width"], owner, "--width").whole
    count = options["draws"] * len(how.get("widths", range(10))) * len(kinds)
    work = effort.steps(count, 200.0 * options["n"] ** 3, f"{count:,} fits of {options['n']:,} labels")
    work.check(owner, "--draws, --width or --n")
    _deliver("interpolation", options, lambda: interpolation(options["n"], options["d"], **how), _thresholds)


def _thresholds(result: xr.Dataset) -> tuple[Table, list[str]]:
    from lazyscope.cli.terminal import size, table, with_error

    grid = table("regime", "smallest N that fits", "count of parameters", "transition", left=1)
    for kind in result.kind.values.tolist():
        at = result.sel(kind=kind)
        smallest = float(at.smallest)
        stderr = float(at.smallest_stderr) if "smallest_stderr" in at else None
        fits = with_error(smallest, stderr, 2) if smallest < float("inf") else "not in every draw"
        grid.add_row(kind, fits, size(float(at.threshold)), size(float(at.transition)))
    return grid, ["transition: over how many N the share of draws that are fitted goes from 0.1 to 0.9."]


# -- from lazy to rich: what an output scale does ----------------------------------------------------------------------


def _lazy_to_rich(**options: Any) -> None:
    from lazyscope.experiments.wide.lazy_to_rich import lazy_to_rich

    owner = "lazyscope report lazy-to-rich"
    scales = grammar.parse(options["alpha"], owner, "--alpha").values
    drawn = options["B"] is None and options["d"] is None
    problem: Any = declared.problem_of(owner, QuadraticTarget, {**options, "d": 12 if drawn else options["d"]})
    N = max(1, problem.d // 2) if options["width"] is None else options["width"]
    how = {name: options[name] for name in ("init", "draws", "seed")}
    _training(owner, problem, N, scales, options)
    _deliver("lazy-to-rich", options, lambda: lazy_to_rich(problem, width=N, alpha=scales, **how), _scales)


def _training(owner: str, problem: Any, N: int, scales: list[float], options: dict[str, Any]) -> None:
    """Say how long the training will take, and refuse what would take more than a day."""
    from lazyscope.training.sgd.lazy_to_rich import length

    init = options["init"]
    steps = sum(length(problem, a, init) for a in scales if 0 < a < float("inf") and 0 < init < float("inf"))
    count = steps * options["draws"]
    what = f"{count:,.3g} steps of SGD at scales α from {min(scales):g} to {max(scales):g}, init = {init:g}"
    effort.steps(count, 24.0 * 100 * problem.d * max(N, 1), what).check(owner, "--draws or a smaller --init")


def _scales(result: xr.Dataset) -> tuple[Table, list[str]]:
    from lazyscope.cli.terminal import size, table, with_error

    names = ("movement", "drift", "distance", "alignment")
    grid = table("α", "risk", "closed form", *names)
    for alpha in result.alpha.values.tolist():
        at = result.sel(alpha=alpha)
        stderr = float(at.end_stderr) if "end_stderr" in at else None
        last = (f"{float(at[name][-1]):.3g}" for name in names)
        grid.add_row(size(alpha), with_error(float(at.end), stderr, 4), f"{float(at.exact):.4f}", *last)
    ends = f"NT, same weights: {float(result.tangent):.4f}; Theorem 3: {float(result.floor):.4f}."
    return grid, [ends, *(f"{name}: {result[name].attrs['long_name']}." for name in names)]


# -- the mean field: how N particles approach the best measure -------------------------------------------------------

_PROBLEMS = [word for word, question in declared.questions("simulate").items() if "mf" in question.regimes]
_SPECIAL: dict[str, dict[str, Any]] = {"linear": {"noise": 0.5}, "labels": {"signal": 4.0}}  # the rest are as usual


def _problem(owner: str, word: str, d: int) -> tuple[Any, dict[str, int]]:
    """Return an instance of a problem, and d where it leaves that open."""
    kind = declared.questions("simulate")[word].kind
    sized = issubclass(kind, SizedProblem)
    problem = declared.problem_of(owner, kind, _SPECIAL.get(word, {}) | ({"d": d} if sized else {}))
    return problem, {} if sized else {"d": d}


def _mean_field(**options: Any) -> None:
    from lazyscope.experiments.wide.mean_field import mean_field

    owner = "lazyscope report mean-field"
    if options["problem"] not in _PROBLEMS:
        raise InvalidParameter.of(owner, "PROBLEM", f"be one of {', '.join(_PROBLEMS)}", repr(options["problem"]))
    problem, size = _problem(owner, options["problem"], options["d"])
    how = {name: options[name] for name in ("activation", "samples", "draws", "seed")} | size
    how |= {name: options[name] for name in ("steps", "bound") if options[name] is not None}
    how["particles"] = grammar.parse(options["particles"], owner, "--particles").whole
    rounds = ParticleDescent(**{name: how[name] for name in ("steps", "bound") if name in how})
    work = effort.particles(options["samples"], options["d"], how["particles"], rounds.steps, options["draws"])
    work.check(owner, "--steps, --samples or --draws")
    _deliver("mean-field", options, lambda: mean_field(problem, **how), _particles)


def _particles(result: xr.Dataset) -> tuple[Table, list[str]]:
    from lazyscope.cli.terminal import table, with_error

    grid = table("N", "risk", "above the best measure")
    for N in result.particles.values.tolist():
        at = result.sel(particles=N)
        stderr = float(at.stderr) if "stderr" in at else None
        grid.add_row(str(N), with_error(float(at.risk), stderr, 4), f"{float(at.excess):.5f}")
    word = "certified" if bool(result.certified) else "by the best atoms that were found"
    lines = [f"best measure: {float(result.minimum):.4f}, duality gap {float(result.gap[-1]):.1e}, {word}."]
    if "exponent" in result:
        spread = float(result.exponent_stderr) if "exponent_stderr" in result else None
        slope = with_error(float(result.exponent), spread, 2)
        lines.append(f"the excess falls like N to the power {slope}.")
    below, above = f"{float(result.convexity):.1e}", f"{float(result.bump):.2g}"
    lines.append(f"between two ends the risk is at least {below} below its chord along mixtures,")
    lines.append(f"and up to {above} above it along the line between their weights.")
    return grid, lines


_COMMANDS = [
    click.Command(
        "interpolation",
        callback=_interpolation,
        params=[
            click.Option(["--n"], type=int, default=100, show_default=True, help="Labels."),
            click.Option(["--d"], type=int, default=10, show_default=True, help="Dimension."),
            click.Option(["--regime"], default="rf,nt,nn", show_default=True, help="Which of these, with commas."),
            click.Option(["--activation"], default="tanh", show_default=True, help="Name of σ, with a derivative."),
            click.Option(["--width"], help=f"N: {grammar.GRAMMAR}. By default around each threshold."),
            _draws(4),
            _SEED,
            *output.options(),
        ],
        help="The smallest network that fits n random labels exactly.\n\n"
        "\b\nlazyscope report interpolation --n 60 --d 6 --regime rf,nt",
        short_help="How many neurons fit n random labels.",
    ),
    click.Command(
        "lazy-to-rich",
        callback=_lazy_to_rich,
        params=[
            *declared.click_options(QuadraticTarget.options, d="Dimension; without a file: 12."),
            click.Option(["--alpha"], default="0.01,1,100", show_default=True, help=f"α: {grammar.FINITE}."),
            click.Option(["--init"], type=float, default=1.0, show_default=True, help="Scale of the initial weights."),
            click.Option(["--width"], type=int, help="N; d/2 by default."),
            _draws(1),
            _SEED,
            *output.options(),
        ],
        help="Training with an output scale α, f = α(h − h₀) + c, on a quadratic target: its end, and how far it "
        "leaves its linearisation.\n\n\b\nlazyscope report lazy-to-rich --d 20 --alpha 0.01:1000:6log",
        short_help="What an output scale does to training.",
    ),
    click.Command(
        "mean-field",
        callback=_mean_field,
        params=[
            click.Argument(["problem"], metavar="PROBLEM"),
            click.Option(["--d"], type=int, default=10, show_default=True, help="Dimension."),
            click.Option(["--particles"], default="4,8,16,32,64", show_default=True, help=f"N: {grammar.GRAMMAR}."),
            click.Option(["--activation"], default="relu", show_default=True, help="Name of σ; square is certified."),
            click.Option(["--samples"], type=int, default=500, show_default=True, help="n."),
            *declared.click_options(ParticleDescent.options),
            _draws(2),
            _SEED,
            *output.options(),
        ],
        help="Risk of N particles after descent on n samples, against that of the best measure. PROBLEM is one of "
        f"{', '.join(_PROBLEMS)}, each as it is drawn by default.\n\n\b\nlazyscope report mean-field mixture --bound 3",
        short_help="How N particles approach the best measure.",
    ),
]

report = click.Group(
    "report",
    commands=_COMMANDS,
    help="What is measured about wide networks, as a table; `lazyscope figure` draws the same.",
)

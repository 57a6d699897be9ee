"""`lazyscope flow quadratic`: the risk along training, by gradient flow and at a finite step size, without a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from lazyscope.cli import output
from lazyscope.cli.asking import declared, effort, grammar, unused
from lazyscope.cli.terminal import console, progress_bar, size, table, with_error
from lazyscope.errors import InvalidParameter
from lazyscope.limits.flow import curve
from lazyscope.limits.sgd.finite_step import finite_step
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained
from lazyscope.runs import pictures

if TYPE_CHECKING:
    import xarray as xr

_REGIMES = ("rf", "nt", "nn")
_HELP = """\
Risk against time t = Σε along gradient flow, for a quadratic target and σ = u²: the limit ε → 0 of one-pass SGD. With
--step-size also the risk that SGD has at that step size, its noise included.

\b
lazyscope flow quadratic --d 100 --width 50 --times 0,1,10,100
lazyscope flow quadratic --d 100 --regime nn --step-size 0.002 --times 1:30:8log --plot
lazyscope flow quadratic --regime nt,nn --alpha 10 --out lazy.csv
"""


def _regimes(owner: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return name → regime of those asked for; all arguments are checked here."""
    known = _REGIMES if options["step_size"] is None else _REGIMES[1:]
    names = [name.strip().lower() for name in (options["regime"] or ",".join(known)).split(",")]
    if set(names) - set(known) or len(set(names)) < len(names):
        must = f"name each of {', '.join(known)} at most once, with commas"
        advice = "" if known == _REGIMES else "Random features are fitted, not trained by SGD."
        raise InvalidParameter.of(owner, "--regime", must, repr(options["regime"]), advice)
    scales = {name: options[name] for name in ("alpha", "init") if options[name] is not None}
    if scales and "nn" not in names:
        got = f"regime {','.join(names)}"
        raise InvalidParameter.of(owner, f"--{next(iter(scales))}", "go with the regime nn", got, "Leave it out.")
    makers: dict[str, Any] = {"rf": RandomFeatures, "nt": NeuralTangent, "nn": lambda: Trained(**scales)}
    return {name: makers[name]() for name in names}


def _times(owner: str, options: dict[str, Any]) -> Any:
    """Return the times asked for; with a step size the nearest whole numbers of steps, each once."""
    times = np.array(grammar.parse(options["times"], owner, "--times").values)
    size = options["step_size"]
    if size is None:
        return times
    if not 0.0 < size < float("inf"):
        raise InvalidParameter.of(owner, "--step-size", "be positive", f"{size:g}", "Pass one like 0.002.")
    if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0) or times[0] < 0.0:
        must = "be finite and ascending, from 0 on"
        raise InvalidParameter.of(owner, "--times", must, repr(options["times"]), "Sort them.")
    return np.unique(np.maximum(np.rint(times / size), 1.0)) * size


def _run(options: dict[str, Any]) -> None:
    import xarray as xr

    owner = "lazyscope flow quadratic"
    wanted = output.Wanted.of(owner, options)
    regimes, times = _regimes(owner, options), _times(owner, options)
    plain = "nn" in regimes and options["alpha"] is None
    takes = ["batch"] * (options["step_size"] is not None) + ["second_layer"] * plain
    without = ", or --alpha" if "nn" in regimes else ", or add nn to --regime"
    words = {"batch": ", or add --step-size", "second_layer": without}
    scaled = f" with --alpha {options['alpha']:g}" if options["alpha"] is not None else ""
    got = f"{','.join(regimes)}{scaled}{' without --step-size' * (options['step_size'] is None)}"
    unused.refuse(owner, takes, words, got, words.__getitem__)
    if wanted.plot is not None:
        pictures.check_times(times)
    problem: Any = declared.problem_of(owner, QuadraticTarget, options)
    N = max(1, problem.d // 2) if options["width"] is None else options["width"]
    if options["step_size"] is not None:
        count = float(times[-1]) / options["step_size"]
        flops = 20.0 * problem.d**3 if "nn" in regimes else float(problem.d) ** 2
        work = effort.steps(count, flops, f"{count:,.0f} steps of SGD, predicted one by one")
        work.check(owner, "--times, a larger --step-size")
    lines = []
    with progress_bar():
        for name, regime in regimes.items():
            layer = {"second_layer": options["second_layer"]} if name == "nn" else {}
            line = curve.flow(problem, regime, width=N, times=times, seed=options["seed"], **layer)
            if options["step_size"] is not None:
                line = _with_steps(line, problem, regime, N, options, layer)
            lines.append(line)
    risk = xr.concat(
        [line[[name for name in ("risk", "finite_step", "finite_step_stderr") if name in line]] for line in lines],
        "regime",
        data_vars="all",
        coords="minimal",
        compat="override",
        combine_attrs="override",
        join="outer",
    )
    whole = risk.assign_coords(regime=[line.attrs["label"] for line in lines])
    for line in lines:
        if "learned" in line:
            whole = whole.merge(line[["learned", "reached"]], combine_attrs="override")
    told = {"regime": f"{'; '.join(line.attrs['regime'] for line in lines)}; N = {N}", "label": "flow"}
    told |= {name: "; ".join(dict.fromkeys(line.attrs[name] for line in lines)) for name in ("claim", "theorem")}
    whole = whole.assign_attrs(**told)
    output.deliver(wanted, whole, lambda: pictures.against_time(whole), _show)


def _with_steps(
    line: xr.Dataset, problem: QuadraticTarget, regime: Trained, N: int, options: dict[str, Any], layer: Any
) -> xr.Dataset:
    """Add the risk at the finite step size, at the same times."""
    batch, size = options["batch"], options["step_size"]
    samples = np.rint(line.time.values / size).astype(np.int64) * batch
    how = {"step_size": size, "batch": batch, "samples": samples, "seed": options["seed"]}
    predicted = finite_step(problem, regime, width=N, **how, **layer)
    stderr = predicted.stderr.values if "stderr" in predicted else np.zeros(samples.size)
    told = {name: f"{line.attrs[name]}; {predicted.attrs[name]}" for name in ("claim", "theorem")}
    return line.assign(finite_step=("time", predicted.risk.values), finite_step_stderr=("time", stderr)).assign_attrs(
        **told
    )


def _show(result: xr.Dataset) -> None:
    """Print one line for each time: the risk of each regime, and how many directions the network has learned."""
    out, names, d = console(), result.regime.values.tolist(), result.sizes.get("direction")
    stepped = names if "finite_step" in result else []
    grid = table("time", *names, *(f"{name}, finite steps" for name in stepped), *(["learned"] if d else []))
    for t in range(result.sizes["time"]):
        here = result.isel(time=t)
        cells = [f"{float(here.risk.sel(regime=name)):.5f}" for name in names]
        for name in stepped:
            at = here.sel(regime=name)
            cells.append(with_error(float(at.finite_step), float(at.finite_step_stderr) or None, 5))
        if d:
            missing = (here.learned.values < 0.5).tolist()
            cells.append(f"{[*missing, True].index(True)} of {d}")
        grid.add_row(size(float(here.time)), *cells)
    out.print(f"{result.attrs['problem']}; {result.attrs['regime']}", soft_wrap=True)
    out.print(grid)
    if d:
        out.print("learned: how many of the largest eigendirections of B the network has, each by half at least.")
    out.print(f"{result.attrs['theorem']} [{result.attrs['citations']}]", soft_wrap=True)


_PARAMS: list[click.Parameter] = [
    *declared.click_options(QuadraticTarget.options),
    click.Option(["--regime"], help="Which of rf, nt, nn, with commas; by default all, or nt,nn with --step-size."),
    *declared.click_options(option for option in Trained.options if option.when == "scaled"),
    click.Option(["--width"], type=int, help="N; d/2 by default."),
    click.Option(["--times"], default="0.1:1000:13log", show_default=True, help=f"t, ascending: {grammar.FINITE}."),
    click.Option(
        ["--second-layer"],
        type=click.Choice(["trained", "fixed"]),
        default="trained",
        show_default=True,
        help="Of nn: trained from 0, or fixed to 1 as in Theorem 3.",
    ),
    click.Option(
        ["--step-size"],
        type=float,
        help="ε of SGD: adds its risk at finite steps, for nt and nn (slow for nn: d³ a step).",
    ),
    click.Option(["--batch"], type=int, default=100, show_default=True, help="Samples a step of SGD."),
    click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of the weights."),
    *output.options("lazyscope-flow-quadratic.png"),
]

flow = click.Group(
    "flow",
    commands=[
        click.Command(
            "quadratic",
            callback=lambda **options: _run(options),
            params=_PARAMS,
            help=_HELP,
            short_help=f"Quadratic target: {QuadraticTarget.formula}.",
        )
    ],
    help="Risk along training: gradient flow on the population risk, and SGD at a finite step size, both predicted.",
)

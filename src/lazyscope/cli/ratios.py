"""`lazyscope limit|simulate|compare linear|labels`: problems of open dimension, by N/d, n/d and the ridge."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from lazyscope.cli import effort, grammar, output, particles
from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from lazyscope.problems import LinearLabels, LinearTarget, Problem
    from lazyscope.regimes import IsotropicFeatures, RandomFeatures

Verb = Literal["limit", "simulate", "compare"]
_ACTIVATION = click.Option(["--activation"], default="relu", show_default=True, help="Name of σ, such as relu or tanh.")
_SURROGATE = click.Option(
    ["--surrogate"], is_flag=True, help="Noisy linear features b₁⟨w, x⟩ + b⋆z instead of σ(⟨w, x⟩)."
)
_SIGNAL = click.Option(["--signal"], type=float, default=1.0, show_default=True, help="‖β₀‖.")
_ERRORS = {"risk": "stderr", "simulate": "stderr", "difference": "stderr"}
_REPORTED = ("residual", "iterations")  # what a solver reports: in the files, not in the table


def _linear(options: dict[str, Any]) -> LinearTarget:
    from lazyscope.problems import LinearTarget

    return LinearTarget(**{name: options[name] for name in ("signal", "noise", "nonlinear", "inputs")})


def _labels(options: dict[str, Any]) -> LinearLabels:
    from lazyscope.problems import LinearLabels

    return LinearLabels(options["signal"], options["link"])


Kind = tuple[Callable[[dict[str, Any]], "Problem"], str, str, tuple[click.Option, ...]]
KINDS: dict[str, Kind] = {
    "linear": (
        _linear,
        "a linear target",
        "y = ⟨β₀, x⟩ + f⋆(x) + ε, ridge regression on random features",
        (
            _SIGNAL,
            click.Option(["--noise"], type=float, default=0.0, show_default=True, help="τ, standard deviation of ε."),
            click.Option(["--nonlinear"], type=float, default=0.0, show_default=True, help="F⋆, that of f⋆."),
            click.Option(["--inputs"], default="sphere", show_default=True, help="Where x lives: sphere or gaussian."),
        ),
    ),
    "labels": (
        _labels,
        "linear labels",
        "P(y = 1 | x) = f₀(⟨β₀, x⟩), the largest margin on random features",
        (
            _SIGNAL,
            click.Option(["--link"], default="logistic", show_default=True, help="f₀: logistic, sign or probit."),
            click.Option(["--method"], default="margin", show_default=True, help="What is fitted: margin."),
            click.Option(["--isotropic"], is_flag=True, help="No feature map: N isotropic Gaussian features."),
        ),
    ),
}


def _regime(options: dict[str, Any]) -> RandomFeatures | IsotropicFeatures:
    from lazyscope.regimes import IsotropicFeatures

    return IsotropicFeatures() if options.get("isotropic") else _features(options)


def _features(options: dict[str, Any]) -> RandomFeatures:
    from lazyscope.regimes import RandomFeatures

    return RandomFeatures(options["activation"], surrogate=bool(options.get("surrogate")))


def _sizes(verb: Verb, kind: str) -> tuple[click.Option, ...]:
    ridge = click.Option(["--ridge"], default="0.001", show_default=True, help="λ: as --psi1, or 0, or optimal.")
    if verb == "limit":
        ratios = (
            click.Option(["--psi1"], default="0.1:10:21log", show_default=True, help=f"N/d: {grammar.GRAMMAR}."),
            click.Option(
                ["--psi2"], default="3" if kind == "linear" else "2", show_default=True, help="n/d: likewise."
            ),
        )
        return (*ratios, ridge) if kind == "linear" else ratios
    plain = click.Option(["--ridge"], default="0.001", show_default=True, help="λ: as --width, or 0.")
    sizes: tuple[click.Option, ...] = (
        _SURROGATE,
        click.Option(["--d"], type=int, default=100, show_default=True, help="Dimension."),
        click.Option(["--width"], help=f"N: {grammar.GRAMMAR}. By default d/2, d, 2d, 3d, 4d and 8d."),
        click.Option(["--samples"], type=int, help="n; 3d by default (2d for labels)."),
        click.Option(
            ["--draws"], type=int, default=4, show_default=True, help="Independent draws of weights and data."
        ),
        click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of the weights and the data."),
    )
    if kind == "linear":
        sizes = (*sizes, plain)
    if verb == "compare":
        return sizes
    which = "rf, random features, or mf, the mean field: no ridge and no margin, but descent on squared errors."
    return (
        click.Option(["--regime"], default="rf", show_default=True, help=which),
        *sizes,
        *particles.options(),
    )


def _limit(owner: str, problem: Problem, options: dict[str, Any]) -> xr.Dataset:
    from lazyscope.runs import verbs

    grids = {name: _axis(owner, name, options[name]) for name in ("psi1", "psi2")}
    if "ridge" not in options:
        return verbs.limit(problem, _regime(options), **grids, method=options["method"])
    if options["ridge"].strip() == "optimal":
        from lazyscope.limits.ridge.optimal import optimal_ridge

        return optimal_ridge(_linear(options), _features(options), **grids)
    return verbs.limit(problem, _regime(options), **grids, ridge=_axis(owner, "ridge", options["ridge"]))


def _simulate(owner: str, problem: Problem, options: dict[str, Any]) -> xr.Dataset:
    from lazyscope.runs import verbs

    if options["regime"] not in ("rf", "mf"):
        raise InvalidParameter.of(owner, "--regime", "be rf or mf", repr(options["regime"]))
    descent, sizes = particles.descent_of(owner, options, options["regime"] == "mf"), _drawn(owner, options)
    if descent is None:
        return verbs.simulate(problem, _regime(options), **sizes)
    kept = {name: value for name, value in sizes.items() if name not in ("ridge", "method")}
    return particles.simulate(problem, options["activation"], descent=descent, **kept)


def _compare(owner: str, problem: Problem, options: dict[str, Any]) -> xr.Dataset:
    """Return limit and simulation of the one regime, with the attributes of any other result."""
    from lazyscope.runs import side_by_side

    regime = _regime(options)
    whole = side_by_side.compare(problem, regime, **_drawn(owner, options))
    rests = json.loads(whole.attrs["claims"])[0]
    theorem = f"limit: {rests['limit']}; simulate: {rests['simulate']}"
    told = {"label": regime.label, "regime": str(regime), "fidelity": "compare", "theorem": theorem, "claim": "compare"}
    return whole.isel(regime=0, drop=True).assign_attrs(**told)


def _drawn(owner: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes of a simulation."""
    d = options["d"]
    widths = options["width"] or ",".join(str(max(1, N)) for N in (d // 2, d, 2 * d, 3 * d, 4 * d, 8 * d))
    sizes: dict[str, Any] = {"d": d, "width": grammar.parse(widths, owner, "--width").whole}
    sizes["samples"] = options["samples"] or (3 * d if "ridge" in options else 2 * d)
    if "ridge" in options:
        sizes["ridge"] = _axis(owner, "ridge", options["ridge"])
    else:
        sizes["method"] = options["method"]
    return {**sizes, "draws": options["draws"], "seed": options["seed"]}


def _axes(verb: Verb, owner: str, options: dict[str, Any]) -> dict[str, list[float]]:
    """Return the dimensions that the result will have, with their values."""
    names = [name for name in ("psi1", "psi2", "ridge") if name in options and options[name].strip() != "optimal"]
    axes: dict[str, list[float]] = {name: grammar.parse(options[name], owner, f"--{name}").values for name in names}
    if verb != "limit":
        axes["width"] = _drawn(owner, options)["width"]
    if options.get("regime") == "mf":
        axes.pop("ridge", None)
    return axes


def _axis(owner: str, name: str, text: str) -> Any:
    """Return the values of an option: a number where one was written, else a sequence."""
    values = grammar.parse(text, owner, f"--{name}").values
    return values[0] if len(values) == 1 else values


def _run(verb: Verb, kind: str, options: dict[str, Any]) -> None:
    from lazyscope.cli.terminal import progress_bar

    owner = f"lazyscope {verb} {kind}"
    wanted = output.Wanted.of(owner, options)
    if options.get("isotropic") and options.get("surrogate"):
        raise InvalidParameter.of(owner, "--surrogate", "be left out with --isotropic: nothing is replaced", "both")
    problem = KINDS[kind][0](options)
    if wanted.plot is not None:
        from lazyscope.runs import pictures

        pictures.check_axes(_axes(verb, owner, options))
    if verb != "limit":
        sizes = _drawn(owner, options)
        if options.get("regime") == "mf":
            for name in ("isotropic", "surrogate"):
                if options.get(name):
                    raise InvalidParameter.of(owner, f"--{name}", "go with the regime rf", "regime mf", "Leave it out.")
            rounds = particles.descent_of(owner, options, True)
            assert rounds is not None
            how = (sizes["samples"], options["d"], sizes["width"], rounds.steps, options["draws"])
            effort.particles(*how).check(owner, "--steps or --draws")
        else:
            work = effort.simulate(options["d"], ["rf"], sizes["width"], sizes["samples"], options["draws"])
            work.check(owner, "--samples, --draws or --width")
    with progress_bar():
        result = {"limit": _limit, "simulate": _simulate, "compare": _compare}[verb](owner, problem, options)
    emit(wanted, result)


def emit(wanted: output.Wanted, result: xr.Dataset) -> None:
    """Send a result where it is wanted."""

    def picture() -> Figure:
        from lazyscope.runs import pictures

        first = ("risk", "error", "margin")
        names = ["limit"] if "limit" in result else sorted(_shown(result), key=lambda name: name not in first)
        if "margin" in names:
            names = ["error", "margin"]
        return pictures.grid(result.drop_dims("step", errors="ignore"), names)

    output.deliver(wanted, result, picture, _show)


def _shown(result: xr.Dataset) -> list[str]:
    """Return the variables that people look at, in the order of the result."""
    along = [values.dims for values in result.data_vars.values() if not {"draw", "step"} & {*values.dims}]
    whole = max(along, key=len)
    names = [str(name) for name, values in result.data_vars.items() if values.dims == whole]
    same = ("risk",) if "error" in names else ()  # of labels the risk is the probability of a wrong one
    return [name for name in names if name not in (*_REPORTED, *same) and not name.endswith("stderr")]


def _show(result: xr.Dataset) -> None:
    """Print the problem, a line a point, and the theorem that it rests on."""
    from lazyscope.cli.terminal import console, size, table
    from lazyscope.files import points

    out, names = console(), _shown(result)
    heads = {"regime": "regime", "width": "N", "psi1": "N/d", "psi2": "n/d", "ridge": "ridge"}
    places = [name for name in heads if name in result.coords]
    grid = table(*(heads[name] for name in places), *names, left=int("regime" in places))
    for row in points(result[[*names, *(name for name in result.data_vars if str(name).endswith("stderr"))]]):
        numbers = (_cell(name, row) for name in names)
        where = (row[name] if name == "regime" else size(row[name]) for name in places)
        grid.add_row(*where, *numbers)
    at = result.attrs
    out.print(f"{at['problem']}; {at['regime']}", soft_wrap=True)
    out.print(grid)
    out.print(f"{at['theorem']} [{at['citations'].replace(',', ', ')}]", soft_wrap=True)
    if "erratum" in at:
        out.print(f"erratum: {at['erratum']}", soft_wrap=True)


def _cell(name: str, row: dict[str, Any]) -> str:
    """Return what the table shows of one variable."""
    stderr = row.get(_ERRORS.get(name, f"{name}_stderr"))
    if name == "separable" and stderr is None:
        return "yes" if row[name] else "no"
    return _number(row[name], stderr)


def _number(value: float, stderr: float | None) -> str:
    """Return a number that may be of any size, and its standard error.

    >>> _number(0.4174794, None), _number(2500.123, 3.2), _number(float("inf"), None)
    ('0.41748', '2500.1 ± 3.2', '∞')
    """
    if value == float("inf"):
        return "∞"
    digits = 5 if stderr is None else 4
    if abs(value) >= 100:
        return f"{value:.1f}" if stderr is None else f"{value:.1f} ± {stderr:.1f}"
    return f"{value:.{digits}f}" if stderr is None else f"{value:.{digits}f} ± {stderr:.{digits}f}"


def command(verb: Verb, kind: str) -> click.Command:
    """Return the command of a verb for one of these problems."""
    _, name, formula, its_own = KINDS[kind]
    title = {"limit": "Asymptotic risk", "simulate": "Risk on drawn data", "compare": "Limit and simulation"}[verb]
    params: Sequence[click.Parameter] = [
        *its_own,
        _ACTIVATION,
        *_sizes(verb, kind),
        *output.options(f"lazyscope-{verb}-{kind}.png"),
    ]

    def callback(**options: Any) -> None:
        _run(verb, kind, options)

    words = name.removeprefix("a ")
    short = f"{words[0].upper()}{words[1:]}: {formula}."
    return click.Command(kind, callback=callback, params=list(params), help=f"{title}: {short}", short_help=short)

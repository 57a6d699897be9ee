"""`lazyscope limit`, `exact` and `simulate`: one group a verb, one subcommand a problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from lazyscope.cli import beyond, effort, grammar, output, particles, ratios
from lazyscope.errors import InvalidParameter, LazyscopeError, NoTheorem

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.problems import SizedProblem
    from lazyscope.protocols import SGD, ParticleDescent
    from lazyscope.regimes import Regime

Verb = Literal["limit", "exact", "simulate"]
REGIMES = ("rf", "nt", "nn", "bayes", "mf")
_PATH = click.Path(path_type=Path)
_Kept = TypeVar("_Kept", dict[str, Any], list[Any])


def _quadratic(owner: str, B: Path | None, d: int | None, target_seed: int | None) -> SizedProblem:
    from lazyscope.files import read_array
    from lazyscope.problems import QuadraticTarget

    if B is None:
        return QuadraticTarget.exponential(450 if d is None else d, 100 if target_seed is None else target_seed)
    _not_drawn(owner, "--B", d, target_seed)
    return QuadraticTarget(read_array(B))


def _mixture(
    owner: str, delta: Path | None, sigma: Path | None, d: int | None, target_seed: int | None
) -> SizedProblem:
    from lazyscope.files import read_array
    from lazyscope.problems import GaussianMixture

    Sigma = None if sigma is None else read_array(sigma)
    if delta is not None:
        _not_drawn(owner, "--delta", d, target_seed)
        return GaussianMixture(read_array(delta), Sigma)
    drawn = GaussianMixture.three_level(450 if d is None else d, target_seed or 0)
    return drawn if Sigma is None else GaussianMixture(drawn.Delta, Sigma)


def _not_drawn(owner: str, option: str, d: int | None, target_seed: int | None) -> None:
    if d is not None or target_seed is not None:
        must = "stand alone: the file says what --d and --target-seed would draw"
        raise InvalidParameter.of(owner, option, must, "both", "Leave one out.")


_DRAWN = "without a file: "
PROBLEMS: dict[str, tuple[Callable[..., SizedProblem], str, tuple[click.Option, ...]]] = {
    "quadratic": (
        _quadratic,
        "y = b₀ + ⟨x, Bx⟩ with x ~ N(0, I)",
        (
            click.Option(["--B", "B"], type=_PATH, help="File (.npy, .csv) with B, (d, d) or its (d,) eigenvalues."),
            click.Option(["--d"], type=int, help=f"Dimension; {_DRAWN}450."),
            click.Option(["--target-seed"], type=int, help=f"Seed of B's eigenvalues, Exp(1); {_DRAWN}100."),
        ),
    ),
    "mixture": (
        _mixture,
        "y = ±1, x | y ~ N(0, Σ ∓ Δ)",
        (
            click.Option(["--delta"], type=_PATH, help="File (.npy, .csv) with Δ, (d, d) or its (d,) diagonal."),
            click.Option(["--sigma"], type=_PATH, help="File (.npy, .csv) with Σ; the identity by default."),
            click.Option(["--d"], type=int, help=f"Dimension; {_DRAWN}450."),
            click.Option(["--target-seed"], type=int, help=f"Seed of Δ's diagonal, {{2, 1.5, 1}}/√d; {_DRAWN}0."),
        ),
    ),
}


def problem_of(owner: str, kind: str, options: dict[str, Any]) -> SizedProblem:
    """Build the problem of a subcommand from its own options."""
    build, _, its_own = PROBLEMS[kind]
    return build(owner, **{str(option.name): options[str(option.name)] for option in its_own})


def regime_options(verb: Verb | Literal["compare"] = "compare") -> tuple[click.Option, ...]:
    """Return the options that choose and shape the regimes."""
    known = {"simulate": ("rf, nt, nn, mf", "rf,nt,nn"), "compare": ("rf, nt, nn", "all")}
    names, default = known.get(verb, ("rf, nt, nn, bayes", "all that have a result"))
    usual = (
        click.Option(["--regime"], help=f"Which of {names}, with commas; {default} by default."),
        click.Option(["--activation"], default="square", show_default=True, help="Name of σ, such as relu or tanh."),
        click.Option(
            ["--weights"], help="Law of the random features: isotropic, optimal, or a file with their covariance Γ."
        ),
    )
    return usual if verb == "limit" else (*usual, *scale_options())


def scale_options() -> tuple[click.Option, ...]:
    """Return the options of a trained network between lazy and rich."""
    return (
        click.Option(["--alpha"], type=float, help="Output scale of nn: f = α(h − h₀) + c, lazy for large α."),
        click.Option(["--init"], type=float, help="Scale of the initial weights of nn: 1 by default."),
    )


def size_options(verb: Verb, draws: int = 1) -> tuple[click.Option, ...]:
    """Return the options for sizes, draws and, to simulate, the protocol."""
    if verb == "limit":
        help_ = f"N/d: {grammar.GRAMMAR}."
        return (click.Option(["--rho"], help=f"{help_} By default 0.05:2:40, from one neuron on."),)
    drawn = "of the weights" if verb == "exact" else "of the weights and the data"
    sizes = (
        click.Option(["--width"], help=f"N: {grammar.GRAMMAR}. By default d/10, d/5, d/2, d and 2d."),
        click.Option(["--draws"], type=int, default=draws, show_default=True, help=f"Independent draws {drawn}."),
        click.Option(["--seed"], type=int, default=0, show_default=True, help=f"Seed {drawn}."),
    )
    if verb == "exact":
        return sizes
    return (
        *sizes,
        click.Option(
            ["--samples"], type=int, help="n: by default 500,000 for rf, 1,000 for mf; for nt and nn steps times batch."
        ),
        click.Option(["--batch"], type=int, help="Samples a step of SGD, for nt and nn: 100 by default."),
        click.Option(
            ["--step-sizes"], help="Of SGD, with commas; the best counts. By default 0.001 to 0.03, six of them."
        ),
    )


def protocol_of(owner: str, options: dict[str, Any]) -> Callable[[SizedProblem, Regime], SGD]:
    """Return the paper's protocol of a pair, with what the user changed."""
    from lazyscope.protocols import SGD

    changed = {} if options["batch"] is None else {"batch": options["batch"]}
    if options["step_sizes"] is not None:
        changed["step_sizes"] = tuple(grammar.parse(options["step_sizes"], owner, "--step-sizes").values)
    SGD(**changed)  # refuses now what it would refuse later
    return lambda problem, regime: replace(SGD.paper(problem, regime), **changed)


def regimes_of(owner: str, options: dict[str, Any], asked: str | None, *, floor: bool = False) -> dict[str, Any]:
    """Return name → constructor of the regimes to try; all arguments are checked here."""
    from lazyscope.activations import Activation
    from lazyscope.regimes import Bayes, MeanField, NeuralTangent, RandomFeatures, Trained

    sigma, weights = Activation(options["activation"]), options["weights"]
    names = [name.strip().lower() for name in asked.split(",")] if asked is not None else list(REGIMES[: 3 + floor])
    wrong = [name for name in names if name not in REGIMES]
    if wrong or len(set(names)) < len(names):
        must = f"name each of {', '.join(REGIMES)} at most once, with commas"
        raise InvalidParameter.of(owner, "--regime", must, repr(asked))
    if weights is not None and "rf" not in names:
        raise InvalidParameter.of(owner, "--weights", "go with the regime rf", f"regime {asked}", "Leave it out.")
    Gamma, scales = _weights(owner, weights), scales_of(owner, options, names)
    makers: dict[str, Callable[[], Regime]] = {
        "rf": lambda: RandomFeatures(sigma, Gamma),
        "nt": lambda: NeuralTangent(sigma),
        "nn": lambda: Trained(sigma, **scales),
        "bayes": Bayes,
        "mf": lambda: MeanField(sigma),
    }
    return {name: makers[name] for name in names}


def scales_of(owner: str, options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return what was given of --alpha and --init, which nn alone takes."""
    given = {name: options[name] for name in ("alpha", "init") if options.get(name) is not None}
    if given and "nn" not in names:
        option, got = f"--{next(iter(given))}", f"regime {','.join(names)}"
        raise InvalidParameter.of(owner, option, "go with the regime nn", got, "Leave it out.")
    return given


def _weights(owner: str, weights: str | None) -> Any:
    from lazyscope.files import read_array

    if weights in (None, "isotropic", "optimal"):
        return weights
    path = Path(str(weights))
    if not path.suffix:
        must = "be isotropic, optimal, or a file (.npy, .csv) with a covariance"
        raise InvalidParameter.of(owner, "--weights", must, repr(weights))
    return read_array(path)


def _served(verb: Verb, problem: SizedProblem, makers: dict[str, Any], named: bool) -> dict[str, Regime]:
    """Return the regimes that have a result; refuse, or say which are left out, before anything is computed."""
    from lazyscope.evidence.registry import find

    served, left_out = {}, {}
    for name, maker in makers.items():
        try:
            regime = maker()
            find(verb, problem, regime)
        except LazyscopeError as error:
            # the activation is known to be one: what a regime says against it is that it cannot use it
            if named or not (isinstance(error, NoTheorem) or name == "nt"):
                raise
            left_out[name] = error
        else:
            served[name] = regime
    return _noted(served, left_out)


def _noted(kept: _Kept, left_out: dict[str, LazyscopeError]) -> _Kept:
    """Say which regimes are left out; where none is left, refuse with what the first of them lacks."""
    if not kept:
        raise next(iter(left_out.values()))
    for name, error in left_out.items():
        _note(name, error)
    return kept


def _note(name: str, error: LazyscopeError) -> None:
    click.echo(f"lazyscope: note: {name} is left out. {error}", err=True)


def _compute(
    verb: Verb,
    problem: SizedProblem,
    regimes: dict[str, Regime],
    named: bool,
    sizes: Any,
    protocol: Callable[[SizedProblem, Regime], SGD] | None,
    descent: ParticleDescent | None,
) -> list[xr.Dataset]:
    from lazyscope.regimes import MeanField
    from lazyscope.runs import verbs

    results: list[xr.Dataset] = []
    left_out: dict[str, LazyscopeError] = {}
    for name, regime in regimes.items():
        try:
            if name == "bayes":
                results.append(verbs.bayes(problem, fidelity=verb))
            elif isinstance(regime, MeanField):
                results.append(particles.simulate(problem, regime.activation, descent=descent, **sizes))
            else:
                how = {} if protocol is None or name == "rf" else {"protocol": protocol(problem, regime)}
                results.append(getattr(verbs, verb)(problem, regime, **sizes, **how))
        except NoTheorem as error:
            if named:
                raise
            left_out[name] = error
    return _noted(results, left_out)


def _ratios(owner: str, problem: SizedProblem, options: dict[str, Any]) -> grammar.Grid:
    return grammar.parse(options["rho"] or f"{max(0.05, 1.0 / problem.d)!r}:2:40", owner, "--rho")


def widths_of(owner: str, problem: SizedProblem, options: dict[str, Any]) -> grammar.Grid:
    """Return the widths asked for, or a few around d."""
    if options["width"] is None:
        d = problem.d
        few = dict.fromkeys(max(1, N) for N in (d // 10, d // 5, d // 2, d, 2 * d))
        return grammar.Grid(tuple(grammar.Part((float(N),)) for N in few))
    return grammar.parse(options["width"], owner, "--width")


def _run(verb: Verb, kind: str, options: dict[str, Any]) -> None:
    from lazyscope.cli.terminal import progress_bar

    owner = f"lazyscope {verb} {kind}"
    wanted = output.Wanted.of(owner, options)
    floor = kind == "mixture" and verb != "simulate"
    makers = regimes_of(owner, options, options["regime"], floor=floor)
    problem = problem_of(owner, kind, options)
    grid = (_ratios if verb == "limit" else widths_of)(owner, problem, options)
    named = options["regime"] is not None
    regimes = _served(verb, problem, makers, named)
    if wanted.plot is not None:
        from lazyscope.runs import pictures

        pictures.check_ratios(grid.values if {*regimes} - {"bayes"} else ())
    if verb == "limit":
        sizes: dict[str, Any] = {"rho": grid.values}
    else:
        sizes = {"width": grid.whole, "draws": options["draws"], "seed": options["seed"]}
    protocol, descent = None, None
    if verb == "simulate":
        sizes["samples"] = options["samples"]
        protocol, descent = protocol_of(owner, options), particles.descent_of(owner, options, "mf" in regimes)
    _check_effort(verb, owner, problem, regimes, grid.whole, options, protocol, descent)
    with progress_bar():
        results = _compute(verb, problem, regimes, named, sizes, protocol, descent)
    output.emit(wanted, results, problem, geometric=grid.geometric)


def _check_effort(
    verb: Verb,
    owner: str,
    problem: SizedProblem,
    regimes: dict[str, Regime],
    widths: Sequence[float],
    options: dict[str, Any],
    protocol: Callable[[SizedProblem, Regime], SGD] | None,
    descent: ParticleDescent | None,
) -> None:
    """Say how long it will take, or refuse what nobody can mean."""
    if verb == "exact":
        effort.exact(problem, regimes, widths, options["draws"]).check(owner, "--draws or --width")
    if verb == "simulate":
        sgd_effort(problem, regimes, widths, options, protocol).check(owner, "--samples, --draws or --width")
    if descent is not None:
        n = options["samples"] or particles.SAMPLES
        effort.particles(n, problem.d, widths, descent.steps, options["draws"]).check(owner, "--steps or --draws")


def sgd_effort(
    problem: SizedProblem, regimes: dict[str, Any], widths: Sequence[float], options: dict[str, Any], protocol: Any
) -> effort.Effort:
    """Return the work of fits and of SGD, by the paper's numbers where none are given."""
    trained = {name: regime for name, regime in regimes.items() if name in ("nt", "nn")}
    plans = [protocol(problem, regime) for regime in trained.values()]
    n = options["samples"] or max((plan.steps * plan.batch for plan in plans), default=0)
    lanes = max((len(plan.step_sizes) for plan in plans), default=1)
    work = effort.simulate(problem.d, trained, widths, n, options["draws"], lanes)
    if "rf" not in regimes:
        return work
    fits = effort.simulate(problem.d, ["rf"], widths, options["samples"] or 500_000, options["draws"])
    return effort.Effort(work.seconds + fits.seconds, " and ".join(filter(None, (fits.what, work.what))))


def _command(verb: Verb, kind: str) -> click.Command:
    titles = {
        "limit": "Asymptotic risk",
        "exact": "Population risk at finite N and d",
        "simulate": "Risk of networks trained on drawn data",
    }
    title, formula = titles[verb], PROBLEMS[kind][1]
    params: Sequence[click.Parameter] = [
        *PROBLEMS[kind][2],
        *regime_options(verb),
        *size_options(verb),
        *(particles.options() if verb == "simulate" else ()),
        *output.options(f"lazyscope-{verb}-{kind}.png"),
    ]

    def callback(**options: Any) -> None:
        _run(verb, kind, options)

    name = {"quadratic": "a quadratic target", "mixture": "a mixture of two Gaussians"}[kind]
    return click.Command(
        kind,
        callback=callback,
        params=list(params),
        help=f"{title} for {name}: {formula}.",
        short_help=f"{name[2].upper()}{name[3:]}: {formula}.",
    )


def _group(verb: Verb, short: str, text: str) -> click.Group:
    commands = [_command(verb, kind) for kind in PROBLEMS]
    if verb != "exact":
        commands += [ratios.command(verb, kind) for kind in ratios.KINDS]
    if verb == "simulate":
        commands += [beyond.command(kind) for kind in beyond.KINDS]
    return click.Group(verb, commands=commands, help=text, short_help=short)


limit = _group(
    "limit",
    "Risk as N, d → ∞, by a theorem.",
    "Risk as all sizes → ∞ in proportion, by the theorem that the table names.",
)
exact = _group(
    "exact",
    "Risk at finite N and d, without samples.",
    "Risk at finite N and d with n = ∞: drawn weights, closed forms, no samples.",
)
simulate = _group(
    "simulate",
    "Risk of networks trained on drawn data.",
    "Risk of networks trained on drawn data: random features by the normal equations, the others by one-pass SGD, "
    "by the paper's protocol (minutes to hours at d = 450; shorter with --samples and fewer --step-sizes).",
)

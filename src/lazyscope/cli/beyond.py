"""`lazyscope simulate parity|monomial`: what networks beyond their linearisation learn from n samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lazyscope.cli import effort, grammar, output, particles, ratios
from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    from lazyscope.problems import RidgeMonomial, SizedProblem, SparseParity
    from lazyscope.regimes import Network

REGIMES = ("nt", "quadratic", "randomized", "nn", "mf")


def _parity(options: dict[str, Any]) -> SparseParity:
    from lazyscope.problems import SparseParity

    return SparseParity(options["d"], options["k"], options["flip"], options["inputs"])


def _monomial(options: dict[str, Any]) -> RidgeMonomial:
    from lazyscope.problems import RidgeMonomial

    return RidgeMonomial(options["d"], options["degree"], noise=options["noise"], inputs=options["inputs"])


_D = click.Option(["--d"], type=int, default=16, show_default=True, help="Dimension.")
KINDS: dict[str, tuple[Callable[[dict[str, Any]], SizedProblem], str, tuple[click.Option, ...]]] = {
    "parity": (
        _parity,
        "Sparse parity: y = ±x₁x₂⋯x_k on {±1}^d, 2-XOR by default.",
        (
            _D,
            click.Option(["--k"], type=int, default=2, show_default=True, help="Coordinates that count."),
            click.Option(["--flip"], type=float, default=0.0, show_default=True, help="Share of labels flipped."),
            click.Option(["--inputs"], default="hypercube", show_default=True, help="hypercube or sphere."),
        ),
    ),
    "monomial": (
        _monomial,
        "Ridge monomial: y = (βᵀx)^p + ε on the sphere.",
        (
            _D,
            click.Option(["--degree"], type=int, default=3, show_default=True, help="p."),
            click.Option(["--noise"], type=float, default=0.0, show_default=True, help="Standard deviation of ε."),
            click.Option(["--inputs"], default="sphere", show_default=True, help="sphere or hypercube."),
        ),
    ),
}


def _regimes(owner: str, options: dict[str, Any]) -> list[Network]:
    """Return the regimes asked for; all arguments are checked here."""
    from lazyscope.regimes import MeanField, NeuralTangent, Taylor, Trained

    sigma = options["activation"]
    makers: dict[str, Callable[[], Network]] = {
        "nt": lambda: NeuralTangent(sigma),
        "quadratic": lambda: Taylor(2, sigma, randomized=False),
        "randomized": lambda: Taylor(2, sigma),
        "nn": lambda: Trained(sigma),
        "mf": lambda: MeanField(sigma),
    }
    names = [name.strip().lower() for name in options["regime"].split(",")]
    if set(names) - set(REGIMES) or len(set(names)) < len(names):
        must = f"name each of {', '.join(REGIMES)} at most once, with commas"
        raise InvalidParameter.of(owner, "--regime", must, repr(options["regime"]))
    return [makers[name]() for name in names]


def _run(kind: str, options: dict[str, Any]) -> None:
    import xarray as xr

    from lazyscope.cli.terminal import progress_bar
    from lazyscope.regimes import MeanField
    from lazyscope.runs import verbs

    owner = f"lazyscope simulate {kind}"
    wanted = output.Wanted.of(owner, options)
    problem, regimes = KINDS[kind][0](options), _regimes(owner, options)
    sizes = {name: options[name] for name in ("samples", "draws", "seed")}
    sizes["width"] = grammar.parse(options["width"], owner, "--width").whole
    if wanted.plot is not None:
        from lazyscope.runs import pictures

        pictures.check_axes({"width": sizes["width"]})
    descent = particles.descent_of(owner, options, any(isinstance(regime, MeanField) for regime in regimes))
    if descent is not None:
        how = (options["samples"], options["d"], sizes["width"], descent.steps, options["draws"])
        effort.particles(*how).check(owner, "--steps or --draws")
    trained = [str(regime) for regime in regimes if not isinstance(regime, MeanField)]
    n = 1000 * 256  # steps and batch of their protocol
    effort.simulate(options["d"], trained, sizes["width"], n, options["draws"]).check(owner, "--draws or --width")
    with progress_bar():
        results = [
            particles.simulate(problem, regime.activation, descent=descent, **sizes)
            if isinstance(regime, MeanField)
            else verbs.simulate(problem, regime, **sizes)
            for regime in regimes
        ]
    kept = [result[[name for name in ("risk", "stderr", "train") if name in result]] for result in results]
    names = [result.attrs["regime"] for result in results]
    whole = xr.concat(kept, dim="regime", combine_attrs="drop_conflicts").assign_coords(regime=names)
    told = {"regime": f"n = {options['samples']:,}", "label": "regimes"}
    for name, between in (("claim", ","), ("theorem", "; "), ("citations", ",")):
        told[name] = between.join(dict.fromkeys(result.attrs[name] for result in results))
    ratios.emit(wanted, whole.assign_attrs(**told))


def command(kind: str) -> click.Command:
    """Return the command of one of these problems."""
    _, formula, its_own = KINDS[kind]
    params = [
        *its_own,
        click.Option(
            ["--regime"], default=",".join(REGIMES[:-1]), show_default=True, help="Which of these and mf, with commas."
        ),
        click.Option(["--activation"], default="relu3", show_default=True, help="Name of σ, twice differentiable."),
        click.Option(["--width"], default="256", show_default=True, help=f"m, even: {grammar.GRAMMAR}."),
        click.Option(["--samples"], type=int, default=400, show_default=True, help="n."),
        click.Option(["--draws"], type=int, default=2, show_default=True, help="Independent draws."),
        click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of the weights and the data."),
        *particles.options(),
        *output.options(f"lazyscope-simulate-{kind}.png"),
    ]

    def callback(**options: Any) -> None:
        _run(kind, options)

    return click.Command(kind, callback=callback, params=list(params), help=formula, short_help=formula)

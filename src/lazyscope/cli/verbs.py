"""`lazyscope limit`, `exact` and `simulate`: one group a verb, one command a problem, all made from declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lazyscope.cli import output
from lazyscope.errors import InvalidParameter, LazyscopeError, NoTheorem

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.cli.asking.declared import Question, Verb
    from lazyscope.evidence.run import Run
    from lazyscope.problems import Problem
    from lazyscope.regimes import Regime

_Kept = TypeVar("_Kept", dict[str, Any], list[Any])
_FEWER = {"exact": "--draws or --width", "simulate": "--samples, --draws, --width or steps"}
Asked = dict[str, tuple["Run", tuple[str, ...]]]
"""The run of each regime, and which of its sizes are single numbers."""


class OnDemand(click.Group):
    """A group whose commands are made when they are asked for: only then is it known what there is."""

    def __init__(self, name: str, make: Callable[[], dict[str, Callable[[], click.Command]]], **extra: Any) -> None:
        super().__init__(name, **extra)
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the words of the problems."""
        return sorted(self._make())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a problem."""
        made = self._make().get(cmd_name)
        return None if made is None else made()


def commands(
    verb: Verb, title: str, run: Callable[[Question, dict[str, Any]], None]
) -> Callable[[], dict[str, Callable[[], click.Command]]]:
    """Return what makes the commands of a verb, by the words of their problems."""

    def made(question: Question) -> click.Command:
        from lazyscope.cli.asking import declared

        kind = question.kind
        name = kind.title or kind.word
        short = f"{name[0].upper()}{name[1:]}: {kind.formula}."
        params = declared.parameters(question, picture=verb != "compare" or not question.columns)
        return click.Command(
            kind.word,
            callback=lambda **options: run(question, options),
            params=params,
            help=f"{title}. {short}",
            short_help=short,
        )

    def all_of_them() -> dict[str, Callable[[], click.Command]]:
        from lazyscope.cli.asking import declared

        return {word: (lambda one=one: made(one)) for word, one in declared.questions(verb).items()}  # type: ignore[misc]

    return all_of_them


def _run(question: Question, options: dict[str, Any]) -> None:
    from lazyscope.checks import whole_number
    from lazyscope.cli.asking import declared, effort
    from lazyscope.cli.terminal import progress_bar
    from lazyscope.runs import pictures

    owner, verb = question.owner, question.verb
    wanted = output.Wanted.of(owner, options)
    words, named = declared.words_of(question, options)
    makers = declared.regimes_of(question, words, options)
    problem = declared.problem_of(owner, question.kind, options)
    asked = _asked(question, problem, makers, named, options)
    runs = [run for run, _ in asked.values()]
    several = len(asked) > 1 or len(question.default_regimes) > 1
    if not question.columns and len({tuple(run.sizes) for run in runs}) > 1:
        must = "name regimes that take the same sizes, or a single one"
        raise InvalidParameter.of(owner, "--regime", must, ",".join(asked))
    if wanted.plot is not None and question.columns:
        pictures.check_ratios(next((sizes for run in runs for sizes in run.sizes.values()), ()))
    elif wanted.plot is not None:
        pictures.check_axes(
            {name: list(values) for name, values in runs[0].sizes.items() if name not in ("samples", "d")}
        )
    draws = 1 if verb == "limit" else whole_number(options["draws"], verb, "draws")
    effort.of(((word, run) for word, (run, _) in asked.items()), draws).check(owner, _FEWER.get(verb, ""))
    with progress_bar():
        results = _best_ridge(runs[0]) if _optimal(options) else _compute(asked, draws, named)
    if question.columns:
        name = "rho" if verb == "limit" else "width"
        geometric = declared.axis(owner, question.kind, name, options[name], problem.d).geometric  # type: ignore[attr-defined]
        output.emit(wanted, results, problem, geometric=geometric)  # type: ignore[arg-type]
    else:
        output.emit_points(wanted, _joined(results) if several else results[0])


def _asked(
    question: Question, problem: Problem, makers: dict[str, Callable[[], Regime]], named: bool, options: dict[str, Any]
) -> Asked:
    """Return the runs of the regimes that have a result; refuse, or say which are left out, before any is computed."""
    from lazyscope.cli.asking import declared
    from lazyscope.evidence.registry import find
    from lazyscope.evidence.run import Run
    from lazyscope.runs.verbs import run_of

    verb: Any = question.verb
    served: Asked = {}
    left_out: dict[str, LazyscopeError] = {}
    for word, maker in makers.items():
        try:
            regime = maker()
            method = question.method_of(type(regime), options.get("method"))
            claim = find(verb, problem, regime, method)
        except LazyscopeError as error:
            # the activation is known to be one: what a regime says against it is that it cannot use it
            if named or not (isinstance(error, NoTheorem) or " activation parameter of " in str(error)):
                raise
            left_out[word] = error
            continue
        if not claim.arguments:
            served[word] = Run(verb, problem, regime, known=claim), ()
            continue
        sizes = declared.sizes_of(question, claim, problem, options)
        if _optimal(options):
            sizes["ridge"] = 0.0  # stands for the one that is looked for
        how = {"protocol": declared.protocol_of(question.owner, claim, problem, regime, options)}
        served[word] = run_of(
            verb, problem, regime, sizes, method=method, seed=options.get("seed", 0), claim=claim, **how
        )
    return _noted(served, left_out)


def _noted(kept: _Kept, left_out: dict[str, LazyscopeError]) -> _Kept:
    """Say which regimes are left out; where none is left, refuse with what the first of them lacks."""
    if not kept:
        raise next(iter(left_out.values()))
    for word, error in left_out.items():
        click.echo(f"lazyscope: note: {word} is left out. {error}", err=True)
    return kept


def _compute(asked: Asked, draws: int, named: bool) -> list[xr.Dataset]:
    """Return the result of each regime; one outside the hypotheses is left out, unless it was named."""
    from lazyscope.runs import verbs
    from lazyscope.runs.assembly import answer

    results: list[xr.Dataset] = []
    left_out: dict[str, LazyscopeError] = {}
    for word, (run, scalar) in asked.items():
        try:
            if run.sizes:
                results.append(answer(run, draws, scalar))
            else:
                results.append(verbs.bayes(run.problem, fidelity=run.fidelity))
        except NoTheorem as error:
            if named:
                raise
            left_out[word] = error
        except LazyscopeError:
            if left_out and not results:  # a problem that nobody serves is the first thing to mend
                break
            raise
    return _noted(results, left_out)


def _optimal(options: dict[str, Any]) -> bool:
    return "psi1" in options and str(options.get("ridge")).strip() == "optimal"


def _best_ridge(run: Run) -> list[xr.Dataset]:
    from lazyscope.limits.ridge.optimal import optimal_ridge

    ratios = {name: run.sizes[name] for name in ("psi1", "psi2")}
    sizes = {name: values[0] if len(values) == 1 else list(values) for name, values in ratios.items()}
    return [optimal_ridge(run.problem, run.regime, **sizes)]


def _joined(results: list[xr.Dataset]) -> xr.Dataset:
    """Return the risks of several regimes as one result."""
    import json

    import xarray as xr

    shared = [name for name in ("risk", "stderr", "train") if all(name in result for result in results)]
    kept = [result[shared] for result in results]
    names = [result.attrs["regime"] for result in results]
    whole = xr.concat(kept, dim="regime", combine_attrs="drop_conflicts").assign_coords(regime=names)
    samples = json.loads(results[0].attrs["arguments"]).get("samples")
    told = {"regime": "; ".join(names) if samples is None else f"n = {samples:,}", "label": "regimes"}
    for name, between in (("claim", ","), ("theorem", "; "), ("citations", ",")):
        each = (
            part
            for result in results
            for part in (result.attrs[name].split(",") if between == "," else [result.attrs[name]])
        )
        told[name] = between.join(dict.fromkeys(each))
    return whole.assign_attrs(**told)


limit = OnDemand(
    "limit",
    commands("limit", "Asymptotic risk", _run),
    short_help="Risk as N, d → ∞, by a theorem.",
    help="Risk as all sizes → ∞ in proportion, by the theorem that the table names.",
)
exact = OnDemand(
    "exact",
    commands("exact", "Population risk at finite N and d", _run),
    short_help="Risk at finite N and d, without samples.",
    help="Risk at finite N and d with n = ∞: drawn weights, closed forms, no samples.",
)
simulate = OnDemand(
    "simulate",
    commands("simulate", "Risk of networks trained on drawn data", _run),
    short_help="Risk of networks trained on drawn data.",
    help="Risk of networks trained on drawn data: random features by the normal equations, the others by one-pass SGD, "
    "by the paper's protocol (minutes to hours at d = 450; shorter with --samples and fewer --step-sizes).",
)

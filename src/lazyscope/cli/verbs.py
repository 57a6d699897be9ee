"""`lazyscope limit`, `exact` and `simulate`: a group each, one command for each problem, made from declarations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lazyscope.checks import whole_number
from lazyscope.cli import output
from lazyscope.cli.asking import declared, effort, unused
from lazyscope.cli.asking.declared import Question, Verb
from lazyscope.cli.terminal import progress_bar
from lazyscope.errors import InvalidParameter, LazyscopeError, NoTheorem
from lazyscope.evidence.claim import Fidelity
from lazyscope.evidence.registry import find
from lazyscope.evidence.run import Run
from lazyscope.limits.ridge.optimal import optimal_ridge
from lazyscope.problems import Problem, SizedProblem
from lazyscope.regimes import Regime
from lazyscope.runs import assembly, pictures, verbs

if TYPE_CHECKING:
    import xarray as xr

Asked = dict[str, tuple[Run, tuple[str, ...]]]
"""The run of each regime, and which of its sizes are single numbers."""
LeftOut = dict[str, LazyscopeError]
"""The regimes that nobody named and that have no result, and why."""


class Problems(click.Group):
    """A group with one command for each problem; a command is made when it is asked for."""

    def __init__(self, verb: Verb, title: str, run: Callable[[Question, dict[str, Any]], None], text: str) -> None:
        super().__init__(verb, help=text)
        self._verb: Verb = verb
        self._title, self._run = title, run

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the words of the problems."""
        return sorted(declared.questions(self._verb))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a problem."""
        question = declared.questions(self._verb).get(cmd_name)
        if question is None:
            return None
        name = question.kind.title or cmd_name
        short = f"{name[0].upper()}{name[1:]}: {question.kind.formula}."
        return click.Command(
            cmd_name,
            callback=lambda **options: self._run(question, options),
            params=declared.parameters(question),
            help=f"{self._title}. {short}",
            short_help=short,
        )


def _run(question: Question, options: dict[str, Any]) -> None:
    owner, verb = question.owner, question.verb
    wanted = output.Wanted.of(owner, options)
    words, named = declared.words_of(question, options)
    makers = declared.regimes_of(question, words, options)
    problem = declared.problem_of(owner, question.kind, options)
    draws = 1 if verb == "limit" else whole_number(options["draws"], verb, "draws")
    asked, left_out = runs_of(question, problem, makers, named, options)
    runs = [run for run, _ in asked.values()]
    unused.check(question, runs)
    beside = {"rho", "width"} | ({"samples"} if verb == "simulate" else set())  # all networks see the same samples
    columns = question.columns and all({*run.sizes} - {*run.claim.optional} <= beside for run in runs)
    if not columns and len({tuple(run.sizes) for run in runs}) > 1:
        must = "name regimes that take the same sizes, or a single one"
        raise InvalidParameter.of(owner, "--regime", must, ",".join(asked))
    check_picture(question, wanted, runs, columns)
    fewer = "--draws or --width" if verb == "exact" else "--samples, --steps, --draws or --width"
    effort.of(((word, run) for word, (run, _) in asked.items()), draws).check(owner, fewer)
    with progress_bar():
        results = [_best_ridge(runs[0])] if _optimal(options) else _compute(asked, draws, named, left_out)
    for word, error in left_out.items():  # only after all checks: a refusal prints one line alone
        click.echo(" ".join(f"lazyscope: note: {word} is left out. {error}".split()), err=True)
    if columns and isinstance(problem, SizedProblem):
        name = "rho" if verb == "limit" else "width"
        grid = declared.axis(owner, question.kind, name, options[name], problem.d)
        output.emit(wanted, results, problem, geometric=grid.geometric)
    else:
        several = len(asked) > 1 or (len(question.default_regimes) > 1 and not question.columns)
        output.emit_points(wanted, _joined(results) if several else results[0])


def check_picture(question: Question, wanted: output.Wanted, runs: list[Run], columns: bool) -> None:
    """Refuse, before any work, a picture that could not be drawn."""
    if wanted.plot is not None and columns:
        pictures.check_ratios(next((sizes for run in runs for sizes in run.sizes.values()), ()))
    elif wanted.plot is not None:
        drawn = (name for name in runs[0].sizes if name != "d" and (name != "samples" or question.verb == "limit"))
        pictures.check_axes({name: [*runs[0].sizes[name]] for name in drawn})


def runs_of(
    question: Question, problem: Problem, makers: dict[str, Callable[[], Regime]], named: bool, options: dict[str, Any]
) -> tuple[Asked, LeftOut]:
    """Return the runs of the regimes that have a result, and what is left out; refuse where no regime is left."""
    fidelity: Fidelity = "simulate" if question.verb == "compare" else question.verb
    served: Asked = {}
    left_out: LeftOut = {}
    for word, maker in makers.items():
        try:
            regime = maker()
            method = question.method_of(type(regime), options.get("method"))
            claim = find(fidelity, problem, regime, method)
        except LazyscopeError as error:
            # the activation is known to be one: what a regime says against it is that it cannot use it
            if named or not (isinstance(error, NoTheorem) or " activation parameter of " in str(error)):
                raise
            left_out[word] = error
            continue
        if not claim.arguments:
            served[word] = Run(fidelity, problem, regime, known=claim), ()
            continue
        sizes = declared.sizes_of(question, claim, problem, options)
        if _optimal(options):
            sizes["ridge"] = 0.0  # stands for the one that is looked for
        protocol = declared.protocol_of(question.owner, claim, problem, regime, options)
        how = {"method": method, "protocol": protocol, "seed": options.get("seed", 0), "claim": claim}
        served[word] = verbs.run_of(fidelity, problem, regime, sizes, **how)
    if not served:
        raise next(iter(left_out.values()))
    return served, left_out


def _compute(asked: Asked, draws: int, named: bool, left_out: LeftOut) -> list[xr.Dataset]:
    """Return the result of each regime; one outside the hypotheses joins those left out, unless it was named."""
    results: list[xr.Dataset] = []
    refused: LeftOut = {}
    for word, (run, scalar) in asked.items():
        try:
            of_sizes = assembly.answer(run, draws, scalar) if run.sizes else None
            results.append(verbs.bayes(run.problem, fidelity=run.fidelity) if of_sizes is None else of_sizes)
        except NoTheorem as error:
            if named:
                raise
            refused[word] = error
        except LazyscopeError:
            if refused and not results:  # a problem that nobody serves is the first thing to mend
                break
            raise
    if not results:
        raise next(iter(refused.values()))
    left_out |= refused
    return results


def _optimal(options: dict[str, Any]) -> bool:
    """Whether a limit is asked for at its best ridge; the other verbs fit given ones."""
    return "draws" not in options and str(options.get("ridge")).strip() == "optimal"


def _best_ridge(run: Run) -> xr.Dataset:
    given = {name: values for name, values in run.sizes.items() if name != "ridge"}
    sizes = {name: values[0] if len(values) == 1 else [*values] for name, values in given.items()}
    return optimal_ridge(run.problem, run.regime, **sizes)


def _joined(results: list[xr.Dataset]) -> xr.Dataset:
    """Return the risks of several regimes as one result."""
    import xarray as xr

    shared = [name for name in ("risk", "stderr", "train") if all(name in result for result in results)]
    names = [result.attrs["regime"] for result in results]
    whole = xr.concat([result[shared] for result in results], dim="regime", combine_attrs="drop_conflicts")
    samples = json.loads(results[0].attrs["arguments"]).get("samples")
    one = isinstance(samples, (int, float))  # several are a column of their own
    told = {"regime": f"n = {samples:,}" if one else "; ".join(names), "label": "regimes"}
    for name, between in (("claim", ","), ("theorem", "; "), ("citations", ",")):
        told[name] = between.join(dict.fromkeys(key for result in results for key in result.attrs[name].split(between)))
    return whole.assign_coords(regime=names).assign_attrs(**told)


limit = Problems(
    "limit",
    "Asymptotic risk",
    _run,
    "Risk as all sizes → ∞ in proportion, by the theorem that the table names.",
)
exact = Problems(
    "exact",
    "Population risk at finite N and d",
    _run,
    "Risk at finite N and d with n = ∞: drawn weights, closed forms, no samples.",
)
simulate = Problems(
    "simulate",
    "Risk of networks trained on drawn data",
    _run,
    "Risk of networks trained on drawn data: random features by the normal equations, the others by one-pass SGD, "
    "by the paper's protocol (minutes to hours at d = 450; shorter with --samples and fewer --step-sizes).",
)

"""Options that nothing takes: whoever writes one expects an effect, so it is refused and never ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:  # `lazyscope explore` asks here too, and starts without them
    from lazyscope.cli.asking.declared import Question
    from lazyscope.evidence.claim import Claim
    from lazyscope.evidence.run import Run


def refuse(
    owner: str, takes: Iterable[str], optional: Iterable[str], got: str, elsewhere: Callable[[str], str] = lambda _: ""
) -> None:
    """Refuse an option or argument that the user wrote and that nothing of what was asked for uses.

    Of the `optional` ones of a command, those in `takes` are used. `got` says what was asked for, and `elsewhere` what
    would take an option.
    """
    context, unused = click.get_current_context(), {*optional} - {*takes}
    for option in context.command.params:
        name = option.name or ""
        if name in unused and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            written = option.opts[0] if isinstance(option, click.Option) else option.human_readable_name
            advice = f"Leave it out{elsewhere(name)}."
            raise InvalidParameter.of(owner, written, "go with something that takes it", got, advice)


def refuse_force(owner: str, writes: bool, options: str = "--out") -> None:
    """Refuse `--force` where no file is asked for that it could replace."""
    refuse(owner, ("force",) * writes, ("force",), "no file to write", lambda _: f", or add {options}")


def check(question: Question, runs: Iterable[Run]) -> None:
    """Refuse options of other regimes, methods and theorems than those that were chosen."""
    from lazyscope.cli.asking.declared import flag

    runs = list(runs)
    takes = {name for run in runs for name in _taken(run.claim)} | {option.name for option in question.kind.options}
    chosen = [f"{run.regime.label}{f' by --method {run.method}' * (run.method is not None)}" for run in runs]
    some = list(dict.fromkeys(chosen))
    sizes = ", ".join(flag(name) for name in question.arguments if name in takes) or "no size"
    got = f"{', '.join(some)}, which take{'s' * (len(some) == 1)} {sizes},"

    def elsewhere(name: str) -> str:
        here = [claim for claim in question.claims if any(isinstance(run.regime, claim.regime) for run in runs)]
        methods = sorted({claim.method for claim in here if claim.method and name in _taken(claim)})
        known = name == "method" or {run.method for run in runs} & {*methods}
        if methods and not known:
            return f", or add --method {' or '.join(methods)}"
        others = {claim.regime for claim in question.claims if claim not in here and name in _taken(claim)}
        words = [word for word, regime in question.regimes.items() if regime in others]
        return f", or ask for --regime {' or '.join(words)}" if words and not methods else ""

    optional = [*question.arguments, *question.regime_options, *question.protocol_options, "method"]
    refuse(question.owner, takes, optional, got, elsewhere)


def _taken(claim: Claim) -> set[str]:
    """Return the options that have a meaning for a claim: its sizes, and those of its regime and protocol."""
    protocol = claim.protocol.options if claim.protocol is not None else ()
    return {*claim.arguments, *(option.name for option in (*claim.regime.options, *protocol))} | (
        {"method"} if claim.method is not None else set()
    )

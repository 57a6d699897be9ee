"""`lazyscope`: the group of commands, and how their errors are shown."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from lazyscope import __version__
from lazyscope.errors import LazyscopeError

_COMMANDS = {  # name: (module, imported when the command is used; short help)
    "bench": ("bench", "Performance as ratios against peers."),
    "claims": ("claims", "What is implemented, on which theorem."),
    "cite": ("claims", "BibTeX of what results stand on."),
    "compare": ("compare", "The three side by side, difference in standard errors."),
    "errata": ("claims", "Where the papers are misprinted."),
    "exact": ("verbs", "Risk at finite N and d, without samples."),
    "explore": ("explore", "A page where theory moves with the sliders."),
    "figure": ("figure", "Draw a figure of the papers."),
    "flow": ("flow", "Risk along training, predicted."),
    "forecast": ("forecast", "What more rows would buy on your data."),
    "lens": ("lens", "Is it worth training the features on your data?"),
    "limit": ("verbs", "Risk as N, d → ∞, by a theorem."),
    "report": ("report", "Wide networks, measured: tables."),
    "simulate": ("verbs", "Risk of networks trained on drawn data."),
    "sweep": ("sweep", "Grids of tasks that survive a crash."),
}

_PACKAGE = Path(__file__).parents[1]


class Commands(click.Group):
    """A group that prints a user's mistake as one line; a mistake in the code keeps its traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"lazyscope.cli.{_COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command as it was typed: results carry it, so that it makes them again."""
        ctx.obj = shlex.join(["lazyscope", *args])
        return super().parse_args(ctx, args)

    def main(  # type: ignore[override]  # click overloads it by the value of standalone_mode
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Say in one line what click would say in four, and point to the help of the command that it was for."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        try:
            sys.exit(super().main(args, standalone_mode=False, **extra))
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()  # a command without its subcommand: all of the help, as click does
            sys.exit(error.exit_code)
        except click.ClickException as error:
            where = getattr(error, "ctx", None)
            help_ = f" See {where.command_path} --help." if where is not None else ""
            said = error.format_message().rstrip()
            stop = "" if said.endswith((".", "?", "!", ")")) else "."  # versions of click differ in it
            click.echo("lazyscope: error: " + " ".join(f"{said}{stop}{help_}".split()), err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(130)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 on a mistake and 130 on Ctrl-C, as shells expect."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without ρ shows ?, not a traceback
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_noted, warnings.showwarning)
                return super().invoke(ctx)
        except LazyscopeError as error:
            _stop(ctx, f"error: {error}", 2)
        except MemoryError as error:
            said = f" ({error})" if str(error) else ""
            _stop(ctx, f"error: out of memory{said}. Use a smaller d, width or number of draws.", 2)
        except KeyboardInterrupt:
            _stop(ctx, "interrupted", 130)


def _noted(usual: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Show a warning of this package as one line; warnings of other packages as Python does."""
    if category is UserWarning and Path(where[0]).is_relative_to(_PACKAGE):
        click.echo("lazyscope: note: " + " ".join(str(message).split()), err=True)
    else:
        usual(message, category, *where)


def _stop(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo("lazyscope: " + " ".join(message.split()), err=True)
    ctx.exit(code)


@click.group(
    "lazyscope", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="lazyscope")
def main() -> None:
    """What a two-layer network learns in each training regime, and what laziness costs."""

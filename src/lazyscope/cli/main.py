"""`lazyscope`: the group of commands, and what becomes of their errors."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from lazyscope import __version__
from lazyscope.cli.bench import bench
from lazyscope.cli.claims import claims
from lazyscope.cli.compare import compare
from lazyscope.cli.explore import explore
from lazyscope.cli.figure import figure
from lazyscope.cli.flow import flow
from lazyscope.cli.lens import lens
from lazyscope.cli.report import report
from lazyscope.cli.sweep import sweep
from lazyscope.cli.verbs import exact, limit, simulate
from lazyscope.errors import LazyscopeError


class Commands(click.Group):
    """A group that prints a user's mistake as one line and leaves the traceback to the programmer's."""

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
            click.echo("lazyscope: error: " + " ".join(f"{error.format_message()}{help_}".split()), err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(130)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 on a mistake and 130 on Ctrl-C, as shells expect."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without ρ shows ?, not a traceback
        try:
            return super().invoke(ctx)
        except LazyscopeError as error:
            _stop(ctx, f"error: {error}", 2)
        except MemoryError as error:
            said = f" ({error})" if str(error) else ""
            _stop(ctx, f"error: out of memory{said}. Use a smaller d, width or number of draws.", 2)
        except KeyboardInterrupt:
            _stop(ctx, "interrupted", 130)


def _stop(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo("lazyscope: " + " ".join(message.split()), err=True)
    ctx.exit(code)


@click.group(
    "lazyscope", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="lazyscope")
def main() -> None:
    """What a two-layer network learns in each training regime, and what laziness costs."""


for command in (limit, exact, simulate, compare, flow, report, figure, sweep, lens, explore, claims, bench):
    main.add_command(command)

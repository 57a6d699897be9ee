"""`lazyscope explore`: the page where theory moves with the sliders."""

from __future__ import annotations

from pathlib import Path

import click

from lazyscope.cli.asking import unused
from lazyscope.cli.output import FORCE


@click.command()
@click.option("--port", type=int, help="Port to listen on; 8765, or any that is free, by default.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on: loopback, unless you say so."
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@click.option(
    "--export", type=click.Path(path_type=Path), help="Write the page with precomputed lines into one .html, and end."
)
@click.option("--force", is_flag=True, help=FORCE)
def explore(port: int | None, host: str, no_browser: bool, export: Path | None, force: bool) -> None:
    """Open a local web page: lines of theory that move with sliders, and simulated dots that land on them.

    Nothing leaves this machine. Ctrl-C ends it.
    """
    elsewhere = {"port": "", "host": "", "force": ", or add --export"}
    takes, got = (("force",), "--export") if export is not None else (("port", "host"), "no --export")
    unused.refuse("lazyscope explore", takes, elsewhere, got, elsewhere.__getitem__)
    if export is None:
        from lazyscope.explorer.server import serve

        serve(host, port, browser=not no_browser, say=_say)
        return
    from lazyscope.cli.terminal import progress_bar
    from lazyscope.explorer.export import SUFFIXES, write
    from lazyscope.files import Place, check_places

    check_places("lazyscope explore", [Place("--export", export, SUFFIXES)], force=force)
    with progress_bar():
        write(export)
    click.echo(f"wrote {export}", err=True)


def _say(line: str) -> None:
    """Print the address on stdout, and notes on stderr."""
    note = line.startswith("note: ")
    click.echo(f"lazyscope: {line}" if note else line, err=note)

"""The command line. Everything heavier than click is imported inside the command that needs it."""

from lazyscope.cli.main import main

__all__ = ["main"]

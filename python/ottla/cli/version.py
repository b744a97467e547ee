"""`ottla version`: which release this is."""

from __future__ import annotations

import click

from ottla import __version__
from ottla.cli.options import Verb

__all__ = ["version"]


@click.command(cls=Verb)
def version() -> int:
    """Show the version of ottla."""
    click.echo(f"ottla {__version__}")
    return 0

"""Lines on the terminal: whatever they quote, it obeys none of it."""

from __future__ import annotations

import click

from ottla.text import visible

__all__ = ["complain", "say"]


def say(line: str, *, err: bool = False) -> None:
    """Prints one line."""
    click.echo(visible(line), err=err)


def complain(what: object) -> None:
    """Prints what is wrong as one line on standard error."""
    say(f"ottla: {what}", err=True)

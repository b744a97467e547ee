"""Lines on the terminal: whatever they quote, it obeys none of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

__all__ = ["complain", "discard", "open_streams", "say", "try_to_tell"]


def say(line: str, *, err: bool = False) -> None:
    """Prints one line."""
    click.echo(visible(line), err=err)


def complain(what: object) -> None:
    """Prints what is wrong as one line on standard error, if that can be written to."""
    try_to_tell(lambda: say(f"ottla: {what}", err=True))


def try_to_tell(tell: Callable[[], object]) -> None:
    """Calls what writes to standard error. The exit status stands where that fails."""
    try:
        tell()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discards what a stream holds and gets, so that the interpreter's final flush succeeds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_streams() -> None:
    """Opens the standard streams that the process was started without: they go nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, nowhere)

"""What the verbs share: how they take arguments, and options that several have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OFFSET", "Rate", "Verb", "storage_option"]

Command = TypeVar("Command", bound="Callable[..., Any]")

MAX_OFFSET = 2**63 - 1


class Offset(click.ParamType[int]):
    """An offset of a log, an int64. Help does not go into its range."""

    name = "offset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `click.ParamType`."""
        return int(click.IntRange(min=0, max=MAX_OFFSET).convert(value, param, ctx))


OFFSET = Offset()
"""An offset of a log."""


class Verb(click.Command):
    """A command that refuses arguments which can only be mistakes.

    An empty one is often an unset variable of a script, and would be the working directory. Text
    that is not UTF-8 can name a file, and nothing else.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command`.

        Raises:
            BadParameter: an argument is empty, or not text.
        """
        if ctx.resilient_parsing:
            # A shell asks how to go on with what may be half a command line.
            return super().parse_args(ctx, args)
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        for parameter in self.params:
            value = given.get(parameter.name or "")
            for text in value if isinstance(value, (list, tuple)) else [value]:
                fault = _fault(text, parameter) if isinstance(text, str) else None
                if fault is not None:
                    raise click.BadParameter(fault, ctx, parameter)
        return super().parse_args(ctx, args)


def _fault(text: str, parameter: click.Parameter) -> str | None:
    """Returns what is wrong with a text given for a parameter."""
    if not text:
        return "it is empty"
    if "\0" in text:
        return "it holds a NUL character"
    is_text = text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text)
    if not is_text and not isinstance(parameter.type, click.Path):
        return "it is not UTF-8"
    return None


class Rate(click.FloatRange):
    """A finite number above 0."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """See `click.ParamType`."""
        rate = float(super().convert(value, param, ctx))
        if not math.isfinite(rate):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return rate


def storage_option(command: Command) -> Command:
    """Adds `--storage-option` to a command, which receives a dictionary `storage_options`."""
    return click.option(
        "--storage-option",
        "storage_options",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_storage_options,
        help="Object store setting, such as allow_http=true. May be repeated.",
    )(command)


def _storage_options(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    settings: dict[str, str] = {}
    for number, text in enumerate(values, 1):
        key, equals, value = text.partition("=")
        if not (key and equals):
            # The message must not repeat the value, which may be a secret.
            which = f"number {number} " if len(values) > 1 else ""
            raise click.BadParameter(
                f"{which}is not KEY=VALUE, such as region=eu-central-1", context, parameter
            )
        if settings.setdefault(key, value) != value:
            raise click.BadParameter(f"{key} has two values", context, parameter)
    return settings

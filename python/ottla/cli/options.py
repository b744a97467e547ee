"""Options that several verbs take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["storage_option"]

Command = TypeVar("Command", bound="Callable[..., Any]")


def storage_option(command: Command) -> Command:
    """Adds `--storage-option` to a command, which gets a dictionary `storage_options`."""
    return click.option(
        "--storage-option",
        "storage_options",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_storage_options,
        help="Setting of the object store of a URI, as in region=eu-central-1. May be repeated.",
    )(command)


def _storage_options(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    settings: dict[str, str] = {}
    for number, text in enumerate(values, 1):
        key, equals, value = text.partition("=")
        if not (key and equals):
            # Its text is not repeated: it may be a secret.
            which = f"number {number} " if len(values) > 1 else ""
            raise click.BadParameter(
                f"{which}is not KEY=VALUE, as in region=eu-central-1", context, parameter
            )
        if settings.setdefault(key, value) != value:
            raise click.BadParameter(f"{key} is given twice", context, parameter)
    return settings

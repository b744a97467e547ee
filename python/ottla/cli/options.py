"""Options shared by several verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["storage_option"]

Command = TypeVar("Command", bound="Callable[..., Any]")


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

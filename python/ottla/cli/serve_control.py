"""The control endpoint of `ottla serve`: where it listens, and what a client has to show."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.net.server import Server

__all__ = ["add_control"]

TOKEN_VARIABLE = "OTTLA_CONTROL_TOKEN"  # noqa: S105 - its name, and no token
MIN_TOKEN_LENGTH = 8


def add_control(
    server: Server[Broker], place: tuple[str, int] | None, token_file: str | None
) -> list[str]:
    """Adds the endpoint to a server, if it is asked for; returns what the ready line says of it.

    Raises:
        ListenError: it cannot listen there; the server is closed, as with the next.
        OSError: the file of the token cannot be read.
    """
    try:
        return _added(server, place, token_file)
    except BaseException:
        server.stop()
        raise


def _added(
    server: Server[Broker], place: tuple[str, int] | None, token_file: str | None
) -> list[str]:
    if place is None:
        if token_file is not None:
            raise click.UsageError("--control-token-file is for --control, which is missing")
        return []
    from ottla.net.control import ControlSite, new_token
    from ottla.net.http import is_of_this_machine
    from ottla.net.settings import ListenerSettings

    given = _given_token(token_file)
    token = given or new_token()
    host, port = place
    site = ControlSite(server, token, stop=_stop, is_local=is_of_this_machine(host))
    address = server.add_site(site, ListenerSettings(host, port, name="CONTROL"))
    # Who has given a token has it; on a screen or in a log it would be one place more.
    return [f"control={address.authority}", *([] if given else [f"token={token}"])]


def _given_token(token_file: str | None) -> str:
    if token_file is None:
        source, token = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            return ""
    else:
        with open(token_file, encoding="utf-8", errors="replace") as file:
            source, token = token_file, file.read(4096).strip()
    is_one = token.isascii() and token.isprintable() and " " not in token
    if not is_one or len(token) < MIN_TOKEN_LENGTH:
        raise click.UsageError(
            f"{source} has no token: it is {MIN_TOKEN_LENGTH} characters of ASCII or more, and no "
            "spaces"
        )
    return token


def _stop() -> None:
    """Ends the program as SIGTERM does, which it waits for."""
    os.kill(os.getpid(), signal.SIGTERM)

"""Servers in a process that is forked off: their threads are not there, their sockets would be.

A copy of a socket keeps a connection open that the server has closed, so the child closes its own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["look_after"]


class Abandons(Protocol):
    """Something with descriptors."""

    def abandon(self) -> None:
        """Closes them, in the child."""


_ALL: WeakSet[Abandons] = WeakSet()
_register: list[Callable[[], None]] = []


def look_after(server: Abandons) -> None:
    """Has a server abandoned in every process that is forked off while it exists."""
    if not _register and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_abandon_all)
        _register.append(_abandon_all)
    _ALL.add(server)


def _abandon_all() -> None:
    for server in list(_ALL):
        server.abandon()
    _ALL.clear()

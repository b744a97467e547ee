"""What handlers of groups have in common: who calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.classic import Caller

if TYPE_CHECKING:
    from ottla.broker.context import Context

__all__ = ["caller"]


def caller(context: Context) -> Caller:
    """Returns who has sent a request; hosts as Kafka describes them."""
    return Caller(context.version, context.client_id, f"/{context.connection.host}")

"""What handlers of groups have in common: who calls, and faults of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.classic import Caller

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

__all__ = ["caller", "group_fault"]


def caller(context: Context) -> Caller:
    """Returns who has sent a request; hosts as Kafka describes them."""
    return Caller(context.version, context.client_id, f"/{context.connection.host}")


def group_fault(broker: Broker, context: Context, group_id: str) -> int:
    """Returns the error that a group is to fail with, 0 for none."""
    return broker.faults.error(context, group=group_id) if broker.faults else 0

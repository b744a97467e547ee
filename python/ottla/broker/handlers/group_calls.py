"""What handlers of groups have in common: who calls, and which protocols are spoken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.features import level_of
from ottla.broker.groups.classic import Caller

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

__all__ = ["caller", "speaks_of_consumer_groups"]


def caller(context: Context) -> Caller:
    """Returns who has sent a request; hosts as Kafka describes them."""
    return Caller(context.version, context.client_id, f"/{context.connection.host}")


def speaks_of_consumer_groups(broker: Broker) -> bool:
    """Whether the protocol of consumer groups is served (KIP-848)."""
    protocols = broker.config.names("group.coordinator.rebalance.protocols")
    return "consumer" in protocols and level_of(broker.features, "group.version") > 0

"""Puts the parts of a consumer together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.core import ConsumerCore
from ottla.client.groups.group import Group
from ottla.client.network.network import ClientNetwork

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.options.settings import ConsumerSettings

__all__ = ["consumer_core"]


def consumer_core(
    settings: ConsumerSettings, *, random: Callable[[], float], wall_ms: Callable[[], int]
) -> ConsumerCore:
    """Returns the core of a consumer with a network and, where it has a `group_id`, a group."""
    network = ClientNetwork(settings, random=random)
    group = Group(settings, network, random=random) if settings.group_id else None
    return ConsumerCore(settings, network, group, random=random, wall_ms=wall_ms)

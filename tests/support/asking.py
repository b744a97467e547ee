"""The least of a client: it asks brokers for their groups, and what it asked for is waited for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from ottla.client.network.exchange import ANY_NODE, Exchange
from ottla.client.network.network import ClientNetwork
from ottla.client.pending import Pending
from ottla.protocol.messages.list_groups import ListGroupsRequest
from support.scripted_cluster import settings

if TYPE_CHECKING:
    from ottla.protocol.wire import Message


class Asked(Exchange):
    """A request, and the call that waits for its answer."""

    request = ListGroupsRequest

    def __init__(self, timeout_ms: int | None = None) -> None:
        self.pending = Pending("list_groups")
        self.timeout_ms = timeout_ms

    def message(self, version: int) -> Message:
        assert version >= 0
        return ListGroupsRequest()

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        assert min(version, now_ms) >= 0
        self.pending.end(value=response)

    def failed(self, error: Exception, now_ms: int) -> None:
        assert now_ms >= 0
        self.pending.end(error)


class AskingClient:
    """A machine that asks, and nothing else.

    Args:
        servers: addresses to begin at.
        options: settings of the client.
    """

    def __init__(self, *servers: str, **options: Any) -> None:
        self.settings = settings(bootstrap_servers=servers, **options)
        self.network = ClientNetwork(self.settings, random=random.random)

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        self.network.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When it has something to do by itself."""
        return self.network.next_deadline_ms()

    def ask(
        self, now_ms: int, node_id: int | None = ANY_NODE, timeout_ms: int | None = None
    ) -> Pending:
        """Sends a request."""
        asked = Asked(timeout_ms)
        self.network.send(node_id, asked, now_ms)
        return asked.pending

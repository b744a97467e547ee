"""The core of a client on an event loop, against a broker on a port."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client.network.exchange import ANY_NODE, Exchange
from ottla.client.network.network import ClientNetwork
from ottla.client.pending import Pending
from ottla.net.client.driver import Driver
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.testing import Broker
from support.scripted_cluster import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.protocol.wire import Message


class Client:
    """A machine that asks, and nothing else."""

    def __init__(self, *servers: str, **options: Any) -> None:
        made = settings(bootstrap_servers=servers, **options)
        self.network = ClientNetwork(made, random=random.random)

    def tick(self, now_ms: int) -> None:
        self.network.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.network.next_deadline_ms()

    def ask(self, driver: Driver, node_id: int | None = ANY_NODE, **options: Any) -> Pending:
        asked = Asked(**options)
        self.network.send(node_id, asked, driver.now_ms())
        return asked.pending


class Asked(Exchange):
    request = ListGroupsRequest

    def __init__(self, timeout_ms: int | None = None) -> None:
        self.pending = Pending("list_groups")
        self.timeout_ms = timeout_ms

    def message(self, version: int) -> Message:
        assert version >= 0
        return ListGroupsRequest()

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        assert version >= 0
        assert now_ms >= 0
        self.pending.end(value=response)

    def failed(self, error: Exception, now_ms: int) -> None:
        assert now_ms >= 0
        self.pending.end(error)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}) as made:
        yield made


def test_a_broker_answers_requests_and_tells_its_cluster(broker: Broker) -> None:
    async def go() -> None:
        client = Client(broker.bootstrap_servers)
        driver = Driver(client)
        response = await driver.call(client.ask(driver), 10_000)
        assert response.groups == []
        metadata = client.network.metadata
        known = Pending("metadata")
        metadata.on_change(known.end)
        metadata.add_topics(frozenset({"orders"}))
        await driver.call(known, 10_000)
        assert metadata.partition_count("orders") == 3
        leader = metadata.leader("orders", 2)
        assert leader is not None
        for _ in range(20):
            await driver.call(client.ask(driver, leader.node_id), 10_000)
        await driver.close()

    asyncio.run(go())

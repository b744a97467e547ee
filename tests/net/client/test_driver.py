"""The core of a client on an event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client.errors import IllegalStateError, KafkaTimeoutError, NetworkError
from ottla.client.pending import Pending
from ottla.net.client.driver import Driver
from ottla.testing import Broker
from support.asking import AskingClient
from support.forking import forked
from support.scripted_server import WITHIN_S, ScriptedServer, until_closed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}) as made:
        yield made


def drive(
    client: AskingClient, script: Callable[[Driver], Awaitable[None]], **options: Any
) -> None:
    """Runs a script with a client on a loop, and closes it."""

    async def go() -> None:
        driver = Driver(client, **options)
        try:
            await script(driver)
        finally:
            await driver.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


def test_a_broker_answers_requests_and_tells_its_cluster(broker: Broker) -> None:
    client = AskingClient(broker.bootstrap_servers)

    async def script(driver: Driver) -> None:
        response = await driver.call(client.ask(driver.now_ms()), 10_000)
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
            await driver.call(client.ask(driver.now_ms(), leader.node_id), 10_000)

    drive(client, script)


def test_many_calls_wait_at_once(broker: Broker) -> None:
    client = AskingClient(broker.bootstrap_servers)

    async def script(driver: Driver) -> None:
        calls = [driver.call(client.ask(driver.now_ms()), 10_000) for _ in range(50)]
        assert len(await asyncio.gather(*calls)) == 50

    drive(client, script)


def test_no_broker_is_an_error_that_says_so_in_the_time_of_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = AskingClient(f"127.0.0.1:{port}")

    async def script(driver: Driver) -> None:
        with pytest.raises(
            NetworkError, match=rf"cannot connect to 127\.0\.0\.1:{port}: .*refused"
        ):
            await driver.call(client.ask(driver.now_ms(), timeout_ms=300))

    drive(client, script)


def test_a_name_that_nobody_knows_is_an_error_that_says_so() -> None:
    client = AskingClient("broker.invalid:9092")

    async def getaddrinfo(*_: object, **_options: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def script(driver: Driver) -> None:
        asyncio.get_running_loop().getaddrinfo = getaddrinfo  # type: ignore[method-assign]
        with pytest.raises(NetworkError, match=r"name broker\.invalid is not known"):
            await driver.call(client.ask(driver.now_ms(), timeout_ms=200))

    drive(client, script)


def test_the_next_address_of_a_name_is_tried_where_one_refuses(broker: Broker) -> None:
    port = broker.bootstrap_servers.rpartition(":")[2]
    client = AskingClient(f"several:{port}")

    async def getaddrinfo(*_: object, **_options: object) -> list[Any]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", int(port), 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port))),
        ]

    async def script(driver: Driver) -> None:
        asyncio.get_running_loop().getaddrinfo = getaddrinfo  # type: ignore[method-assign]
        await driver.call(client.ask(driver.now_ms()), 10_000)

    drive(client, script)


def test_a_call_whose_time_is_over_says_so_and_may_be_told_what_to_raise() -> None:
    with ScriptedServer(until_closed) as server:
        client = AskingClient(server.address)

        async def script(driver: Driver) -> None:
            pending = client.ask(driver.now_ms())
            with pytest.raises(KafkaTimeoutError, match="list_groups took longer than 20 ms"):
                await driver.call(pending, 20)
            with pytest.raises(KafkaTimeoutError, match="list_groups goes on"):
                await driver.call(
                    pending, 20, lambda pending: KafkaTimeoutError(f"{pending.name} goes on")
                )

        drive(client, script)
        assert server.all_closed.wait(WITHIN_S)


def test_a_task_that_is_cancelled_leaves_its_call_and_the_client_goes_on(broker: Broker) -> None:
    client = AskingClient(broker.bootstrap_servers)

    async def script(driver: Driver) -> None:
        never = asyncio.ensure_future(driver.call(Pending("never")))
        await driver.call(client.ask(driver.now_ms()), 10_000)
        never.cancel()
        with pytest.raises(asyncio.CancelledError):
            await never
        await driver.call(client.ask(driver.now_ms()), 10_000)

    drive(client, script)


def test_close_ends_what_waits_and_a_closed_client_says_so() -> None:
    with ScriptedServer(until_closed) as server:
        client = AskingClient(server.address)

        async def script(driver: Driver) -> None:
            asked = asyncio.ensure_future(driver.call(client.ask(driver.now_ms())))
            other = asyncio.ensure_future(driver.call(Pending("never")))
            await asyncio.to_thread(server.begun.wait, WITHIN_S)
            await driver.close()
            with pytest.raises(NetworkError, match="the client was closed"):
                await asked
            with pytest.raises(IllegalStateError, match="the client is closed"):
                await other
            with pytest.raises(IllegalStateError, match="the client is closed"):
                await driver.call(Pending("late"))
            await driver.close()

        drive(client, script)
        assert server.all_closed.wait(WITHIN_S)


def test_another_event_loop_is_refused_and_one_that_is_closed_is_named(broker: Broker) -> None:
    client = AskingClient(broker.bootstrap_servers)
    first = asyncio.new_event_loop()

    async def begin(client: AskingClient) -> Driver:
        driver = Driver(client)
        await driver.call(client.ask(driver.now_ms()), 10_000)
        return driver

    async def use(driver: Driver) -> None:
        await driver.call(Pending("anything"), 10_000)

    driver = first.run_until_complete(begin(client))
    with pytest.raises(IllegalStateError, match="in another event loop"):
        asyncio.run(use(driver))
    first.close()
    with pytest.raises(IllegalStateError, match="event loop that the client was made in is closed"):
        asyncio.run(use(driver))
    with pytest.warns(ResourceWarning, match="Client was not closed"):
        driver.discard("Client")
    del driver, client
    with pytest.warns(ResourceWarning, match="unclosed transport"):
        gc.collect()


def test_a_client_that_nobody_closed_is_told_of_and_its_sockets_are_closed() -> None:
    with ScriptedServer(until_closed) as server:

        async def go() -> None:
            client = AskingClient(server.address)
            driver = Driver(client)
            asked = asyncio.ensure_future(driver.call(client.ask(driver.now_ms())))
            await asyncio.to_thread(server.begun.wait, WITHIN_S)
            with pytest.warns(ResourceWarning, match=r"Producer was not closed: .* close\(\)"):
                driver.discard("Producer")
            with pytest.raises(NetworkError, match="closed"):
                await asked

        asyncio.run(go())
        assert server.all_closed.wait(WITHIN_S)


def test_a_fault_of_the_core_ends_every_call_and_is_the_cause_of_what_they_raise() -> None:
    class Faulty(AskingClient):
        def tick(self, now_ms: int) -> None:
            if now_ms >= 0:
                raise ZeroDivisionError

    async def script(driver: Driver) -> None:
        with pytest.raises(IllegalStateError, match="fault of its own") as caught:
            await driver.call(Pending("anything"))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    drive(Faulty("127.0.0.1:9"), script)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process_is_told_to_make_a_client_and_holds_no_connection_open() -> None:
    with ScriptedServer(until_closed) as server:
        client = AskingClient(server.address)

        async def script(driver: Driver) -> None:
            asked = asyncio.ensure_future(driver.call(client.ask(driver.now_ms())))
            await asyncio.to_thread(server.begun.wait, WITHIN_S)
            said, end = forked(driver.check)
            try:
                assert "a process that was forked off has to make a client of its own" in said
                await driver.close()
                # The child still runs, and its copy of the socket is closed.
                assert await asyncio.to_thread(server.all_closed.wait, WITHIN_S)
            finally:
                end()
            with pytest.raises(NetworkError):
                await asked

        drive(client, script)

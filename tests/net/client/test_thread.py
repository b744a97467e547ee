"""The core of a client in a thread of its own."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from ottla.client.errors import IllegalStateError, KafkaTimeoutError, NetworkError
from ottla.client.pending import Pending
from ottla.net.client.thread import DriverThread
from ottla.testing import Broker
from support.asking import AskingClient
from support.ctrl_c import ctrl_c_once_waiting
from support.forking import forked
from support.scripted_server import WITHIN_S, ScriptedServer, until_closed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


class Shell:
    """The public class of a client, as small as can be."""

    def __init__(self, *servers: str) -> None:
        self.client = AskingClient(*servers)
        self.thread = DriverThread(self.client, name="ottla-asking")

    def begin(self, timeout_ms: int | None = None) -> Pending:
        return self.thread.run(lambda: self.client.ask(self.thread.now_ms(), timeout_ms=timeout_ms))

    def ask(self) -> int:
        return len(self.thread.wait(self.begin(), 10_000).groups)

    def __enter__(self) -> Shell:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()

    def __del__(self) -> None:
        self.thread.discard("Shell")


def is_running() -> bool:
    return any(thread.name == "ottla-asking" for thread in threading.enumerate())


def test_several_threads_use_one_client(broker: Broker) -> None:
    with Shell(broker.bootstrap_servers) as shell:
        assert is_running()
        with ThreadPoolExecutor(5) as pool:
            assert list(pool.map(lambda _: shell.ask(), range(100))) == [0] * 100
    assert not is_running()


def test_a_call_whose_time_is_over_says_so_and_can_be_waited_for_again(broker: Broker) -> None:
    with Shell(broker.bootstrap_servers) as shell:
        pending = Pending("commit")
        with pytest.raises(KafkaTimeoutError, match="commit took longer than 10 ms"):
            shell.thread.wait(pending, 10)
        with pytest.raises(KafkaTimeoutError, match="commit goes on"):
            shell.thread.wait(pending, 10, lambda one: KafkaTimeoutError(f"{one.name} goes on"))
        shell.thread.run(pending.end, None, 5)
        assert shell.thread.wait(pending, 10) == 5


def test_close_ends_calls_in_other_threads_and_a_closed_client_says_so() -> None:
    with ScriptedServer(until_closed) as server, ThreadPoolExecutor(2) as pool:
        shell = Shell(server.address)
        asked = pool.submit(shell.ask)
        never = pool.submit(shell.thread.wait, Pending("never"))
        assert server.begun.wait(WITHIN_S)
        shell.thread.close()
        assert server.all_closed.wait(WITHIN_S)
        assert not is_running()
        with pytest.raises(NetworkError, match="the client was closed"):
            asked.result(WITHIN_S)
        with pytest.raises(IllegalStateError, match="the client is closed"):
            never.result(WITHIN_S)
        with pytest.raises(IllegalStateError, match="the client is closed"):
            shell.ask()
        shell.thread.close()


def test_ctrl_c_leaves_a_call_at_once_and_the_client_goes_on(broker: Broker) -> None:
    with Shell(broker.bootstrap_servers) as shell:
        with ctrl_c_once_waiting(), pytest.raises(KeyboardInterrupt):
            shell.thread.wait(Pending("never"), WITHIN_S * 1000)
        assert shell.ask() == 0


def test_a_callback_of_the_client_that_waits_for_the_client_is_refused(broker: Broker) -> None:
    with Shell(broker.bootstrap_servers) as shell:
        caught: list[Exception] = []

        def wait() -> None:
            try:
                shell.thread.wait(Pending("commit"))
            except IllegalStateError as error:
                caught.append(error)

        pending = shell.begin()
        with shell.thread.lock:
            pending.when_done(wait)
        shell.thread.wait(pending, 10_000)
        assert "commit was called from a callback of the client itself" in str(caught[0])


def test_a_client_that_nobody_closed_is_told_of_and_leaves_no_thread_and_no_socket() -> None:
    with ScriptedServer(until_closed) as server:
        shell = Shell(server.address)
        shell.begin()
        assert server.begun.wait(WITHIN_S)
        (thread,) = (one for one in threading.enumerate() if one.name == "ottla-asking")
        with pytest.warns(ResourceWarning, match=r"Shell was not closed: .* close\(\)"):
            del shell
        thread.join(WITHIN_S)
        assert not thread.is_alive()
        assert server.all_closed.wait(WITHIN_S)


def test_a_fault_of_the_core_ends_calls_in_other_threads() -> None:
    with Shell("127.0.0.1:9") as shell, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shell.thread.wait, Pending("never"))
        shell.client.settings.reconnect_backoff_ms = None
        shell.client.network.tick = None  # type: ignore[method-assign,assignment]
        shell.thread.run(lambda: None)
        with pytest.raises(IllegalStateError, match="fault of its own") as caught:
            waiting.result(WITHIN_S)
        assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process_is_told_to_make_a_client_and_holds_no_connection_open() -> None:
    with ScriptedServer(until_closed) as server:
        shell = Shell(server.address)
        shell.begin()
        assert server.begun.wait(WITHIN_S)
        said, end = forked(shell.begin)
        try:
            assert "a process that was forked off has to make a client of its own" in said
            shell.thread.close()
            assert server.all_closed.wait(WITHIN_S)
        finally:
            end()


def test_an_address_that_does_not_answer_does_not_keep_the_thread_from_ending() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        shell = Shell(f"127.0.0.1:{listener.getsockname()[1]}")
        shell.begin()
        shell.thread.close()
        assert not is_running()

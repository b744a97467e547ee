"""What is bounded: no peer, and no number of peers, takes more than its share."""

import errno
import os
import resource
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from ottla.net.clock import Clock
from ottla.net.limits import Limits
from ottla.net.listener import Listener
from ottla.net.server import Server
from support.fake_broker import (
    WITHIN_S,
    Client,
    FakeBroker,
    connect,
    framed,
    lines_with,
    serving,
    wait_for,
)

MIB = 1 << 20


def test_a_thousand_connections_are_served_side_by_side() -> None:
    with serving() as server, ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(1000)]
        for number, client in enumerate(clients):
            client.send(b"echo %d" % number)
        for number, client in enumerate(clients):
            assert client.receive() == b"echo %d" % number
        assert server.connection_count == 1000


def test_readers_that_take_nothing_slow_nobody_and_hold_a_bounded_amount() -> None:
    limits = Limits(max_unsent_bytes=MIB)
    with serving(limits=limits) as server, connect(server) as client, ExitStack() as stack:
        for _ in range(20):
            slow = stack.enter_context(connect(server))
            slow.send(*[b"big %d" % MIB] * 50)
        for number in range(200):
            assert client.ask(b"echo %d" % number) == b"echo %d" % number
        # Each has had some answers; of no other was the request looked at.
        assert server.run(lambda broker: broker.handled) < 200 + 20 * 20


def test_a_reader_that_takes_nothing_for_too_long_is_closed() -> None:
    log: list[str] = []
    with serving(limits=Limits(max_stalled_ms=50), log=log) as server, connect(server) as slow:
        slow.send(*[b"big %d" % MIB] * 20)
        wait_for(server, lambda broker: len(broker.gone) == 1)
        assert lines_with(log, "it takes no answers")


def test_a_reader_that_is_slow_but_reads_gets_everything() -> None:
    with serving(limits=Limits(max_stalled_ms=2000)) as server, connect(server) as slow:
        slow.send(*[b"big %d" % MIB] * 20)
        for _ in range(20):
            assert len(slow.receive()) == MIB


def test_of_all_that_waits_to_be_sent_the_peer_that_stalls_longest_gives_way() -> None:
    log: list[str] = []
    limits = Limits(max_unsent_total_bytes=60 * MIB)
    with serving(limits=limits, log=log) as server, connect(server) as client, ExitStack() as stack:
        slow = [stack.enter_context(connect(server)) for _ in range(10)]
        for reader in slow:
            reader.send(b"big %d" % (16 * MIB))
            time.sleep(0.002)
            assert client.ask(b"echo") == b"echo"
        wait_for(server, lambda broker: broker.handled == 20)
        assert 1 <= server.connection_count - 1 <= 4
        wait_for(server, lambda broker: len(broker.gone) == 11 - server.connection_count)
        # The newest is among those that are left.
        assert len(slow[-1].receive()) == 16 * MIB
    assert lines_with(log, "it has taken nothing for longest")


def test_answers_that_are_due_to_many_at_once_keep_the_bound_of_all() -> None:
    log: list[str] = []
    limits = Limits(max_unsent_total_bytes=20 * MIB)
    with serving(limits=limits, log=log) as server, ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(connect(server)).send(b"wait " + bytes(4 * MIB))
        wait_for(server, lambda broker: len(broker.waiting) == 10)
        held: list[int] = []

        def answer_all(broker: FakeBroker) -> None:
            broker.answer_all()
            held.append(server._hub.unsent_bytes)

        server.run(answer_all)
        assert held[0] <= 20 * MIB
        wait_for(server, lambda broker: len(broker.gone) == 10 - server.connection_count)
        assert 1 <= server.connection_count < 10


def test_an_answer_that_is_half_sent_is_held_as_a_whole() -> None:
    with serving() as server, connect(server) as slow:
        slow.send(b"big %d" % (32 * MIB))
        wait_for(server, lambda broker: broker.handled == 1)
        assert server.run(lambda _: server._hub.unsent_bytes) >= 32 * MIB
        assert len(slow.receive()) == 32 * MIB
        assert server.run(lambda _: server._hub.unsent_bytes) == 0


def test_requests_behind_one_that_waits_are_received_up_to_a_bound() -> None:
    limits = Limits(max_held_bytes=MIB)
    with serving(limits=limits) as server, connect(server) as client:
        client.send(b"wait")
        wait_for(server, lambda broker: len(broker.waiting) == 1)
        client.socket.settimeout(0.2)
        frame, sent = framed(b"quiet " + bytes(MIB)), 0
        with suppress(TimeoutError):
            while sent < 100 * MIB:
                sent += client.socket.send(frame[sent % len(frame) :])
        held = server.run(lambda _: server._hub.held_bytes)
        assert MIB <= held <= 2 * MIB
        client.socket.settimeout(WITHIN_S)
        server.run(FakeBroker.answer_all)
        assert client.receive() == b"wait"
        client.socket.sendall(frame[sent % len(frame) :])
        assert client.ask(b"echo") == b"echo"
        assert server.run(lambda _: server._hub.held_bytes) == 0


def test_of_all_that_was_received_and_not_handled_the_largest_gives_way() -> None:
    log: list[str] = []
    limits = Limits(max_held_total_bytes=4 * MIB)
    with serving(limits=limits, log=log) as server, connect(server) as client, ExitStack() as stack:
        for _ in range(10):
            flood = stack.enter_context(connect(server))
            flood.socket.sendall(framed(bytes(2 * MIB))[:-1])
            assert client.ask(b"echo") == b"echo"
        wait_for(server, lambda _: server._hub.held_bytes <= 4 * MIB)
        assert client.ask(b"echo") == b"echo"
    assert lines_with(log, "it holds the most")


def test_a_peer_that_does_not_go_on_with_its_request_is_closed() -> None:
    log: list[str] = []
    with serving(limits=Limits(max_stalled_ms=50), log=log) as server, connect(server) as client:
        client.socket.sendall(framed(b"echo")[:-1])
        assert client.is_closed()
    assert lines_with(log, "it does not go on with its request")


def test_an_idle_peer_is_closed_and_one_that_waits_for_its_answer_is_not() -> None:
    with serving(limits=Limits(max_idle_ms=300)) as server, ExitStack() as stack:
        idle, waiting, busy = (stack.enter_context(connect(server)) for _ in range(3))
        waiting.send(b"wait")
        idle.ask(b"echo")
        end = time.monotonic() + WITHIN_S
        while server.connection_count == 3:
            assert busy.ask(b"echo") == b"echo"
            assert time.monotonic() < end
        assert idle.is_closed()
        server.run(FakeBroker.answer_all)
        assert waiting.receive() == b"wait"


def test_time_that_a_test_advances_closes_no_connection() -> None:
    with serving(clock=Clock(frozen_at_ms=0)) as server, connect(server) as client:
        client.ask(b"echo")
        server.advance(10 * 24 * 3600)
        assert client.ask(b"echo") == b"echo"


def test_a_stranger_has_smaller_frames_and_less_time() -> None:
    log: list[str] = []
    limits = Limits(max_early_frame_bytes=100, max_early_ms=300)
    broker = FakeBroker(needs_authentication=True)
    with serving(broker=broker, limits=limits, log=log) as server, ExitStack() as stack:
        large, slow, known = (stack.enter_context(connect(server)) for _ in range(3))
        large.send(b"x" * 101)
        assert large.is_closed()
        assert known.ask(b"enter") == b"enter"
        assert known.ask(b"x" * 1000) == b"x" * 1000
        assert slow.ask(b"echo") == b"echo"
        assert slow.is_closed()
        assert known.ask(b"echo") == b"echo"
    assert lines_with(log, "where 100 are the most")


def test_of_too_many_strangers_the_oldest_has_to_go_and_nobody_who_is_known() -> None:
    log: list[str] = []
    broker = FakeBroker(needs_authentication=True)
    limits = Limits(max_early_connections=3)
    with serving(broker=broker, limits=limits, log=log) as server, ExitStack() as stack:
        known = stack.enter_context(connect(server))
        assert known.ask(b"enter") == b"enter"
        strangers = [stack.enter_context(connect(server)) for _ in range(4)]
        assert strangers[0].is_closed()
        assert [stranger.ask(b"echo") for stranger in strangers[1:]] == [b"echo"] * 3
        assert strangers[3].ask(b"enter") == b"enter"
        late = stack.enter_context(connect(server))
        assert late.ask(b"enter") == b"enter"
        assert strangers[1].ask(b"echo") == b"echo"
        assert known.ask(b"echo") == b"echo"
        assert server.run(lambda _: len(server._hub._early)) == 2
    assert lines_with(log, "more than 3 have not said who they are")


def test_more_connections_than_allowed_are_closed_at_once_and_the_others_served() -> None:
    log: list[str] = []
    with serving(limits=Limits(max_connections=3), log=log) as server, ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(3)]
        assert [client.ask(b"echo") for client in clients] == [b"echo"] * 3
        with connect(server) as fourth:
            assert fourth.is_closed()
        assert clients[0].ask(b"echo") == b"echo"
        clients[1].socket.close()
        wait_for(server, lambda _: server.connection_count == 2)
        with connect(server) as fourth:
            assert fourth.ask(b"echo") == b"echo"
    assert lines_with(log, "3 connections are open already")


def test_connections_of_one_host_have_a_bound_of_their_own() -> None:
    with serving(limits=Limits(max_connections_per_host=1)) as server:
        with connect(server) as client, connect(server) as second:
            assert client.ask(b"echo") == b"echo"
            assert second.is_closed()
        wait_for(server, lambda _: server.connection_count == 0)
        with connect(server) as client:
            assert client.ask(b"echo") == b"echo"


def test_without_descriptors_it_accepts_again_later_and_serves_the_others_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []
    attempts: list[int] = []
    accept = Listener.accept

    def fails(self: Listener) -> tuple[socket.socket, str, int] | None:
        attempts.append(1)
        if len(attempts) < 4:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return accept(self)

    with serving(log=log) as server, connect(server) as client:
        assert client.ask(b"echo") == b"echo"
        monkeypatch.setattr(Listener, "accept", fails)
        with connect(server) as late:
            late.send(b"echo")
            for _ in range(100):
                assert client.ask(b"echo") == b"echo"
            assert late.receive() == b"echo"
    # Once a pause, not once a turn.
    assert 4 <= len(attempts) < 20
    assert lines_with(log, "cannot accept connections: Too many open files")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="nothing lists descriptors")
def test_real_exhaustion_of_descriptors_ends_when_some_are_free_again() -> None:
    log: list[str] = []
    with serving(log=log) as server, connect(server) as client, ExitStack() as stack:
        crowd = [stack.enter_context(Client(socket.socket())) for _ in range(6)]
        with descriptors_left(2):
            for each in crowd:
                each.socket.settimeout(WITHIN_S)
                each.socket.connect(server.addresses[0][1:])
                each.send(b"echo")
            wait_for(server, lambda _: bool(log))
            assert client.ask(b"echo") == b"echo"
            assert server.connection_count < 7
        assert [each.receive() for each in crowd] == [b"echo"] * 6
    assert lines_with(log, "cannot accept connections: Too many open files")


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """With a limit that leaves so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(path.name) for path in Path("/dev/fd").iterdir()}
    free = [number for number in range(len(used) + count) if number not in used]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count - 1] + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_garbage_ends_its_connections_and_writes_a_line_a_second() -> None:
    log: list[str] = []
    with serving(log=log) as server, connect(server) as healthy:
        begun = time.monotonic()
        for number in range(300):
            with connect(server) as client:
                client.socket.sendall(os.urandom(2) + b"\xff" * (number % 50))
            assert healthy.ask(b"echo") == b"echo"
        for _ in range(300):
            with connect(server) as client:
                client.socket.sendall(b"\xff" * 4)
                assert client.is_closed()
        assert healthy.ask(b"echo") == b"echo"
        assert 1 <= len(log) <= 2 + time.monotonic() - begun


def test_many_requests_leave_nothing_behind() -> None:
    def ask(count: int) -> None:
        for _ in range(count // 100):
            client.send(*[b"echo of some bytes"] * 100)
            for _ in range(100):
                client.receive()

    with serving() as server, connect(server) as client:
        ask(1000)
        tracemalloc.start()
        try:
            ask(1000)
            before = tracemalloc.get_traced_memory()[0]
            ask(30_000)
            after = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert after - before < 30_000


def test_connections_that_came_and_went_leave_nothing_behind() -> None:
    with serving(limits=Limits(max_half_closed_ms=10)) as server:
        threads = [threading.Thread(target=come_and_go, args=(server, 100)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for(server, lambda broker: len(broker.gone) == 400)
        hub = server._hub
        assert server.run(lambda _: (hub.unsent_bytes, hub.held_bytes, hub._hosts)) == (0, 0, {})
        assert len(hub._selector.get_map()) == 2


def come_and_go(server: Server[FakeBroker], count: int) -> None:
    for number in range(count):
        with connect(server) as client:
            if number % 3 == 0:
                client.ask(b"echo")
            elif number % 3 == 1:
                client.send(b"wait")

"""Frames in, answers out: whatever peers do, each gets its answers in order, or is closed."""

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.net.limits import MAX_FRAMES_A_TURN, Limits
from ottla.net.server import Server
from support.fake_broker import Client, FakeBroker, connect, framed, lines_with, serving, wait_for


@pytest.fixture
def server() -> Iterator[Server[FakeBroker]]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def any_server() -> Iterator[Server[FakeBroker]]:
    with serving() as running:
        yield running


def test_a_request_is_answered_with_its_parts_behind_their_size(server: Server[FakeBroker]) -> None:
    with connect(server) as client:
        client.socket.sendall(b"\0\0\0\x06orders")
        assert client.socket.recv(100) == b"\0\0\0\x06orders"


def test_an_empty_frame_is_a_request_too(server: Server[FakeBroker]) -> None:
    with connect(server) as client:
        assert client.ask(b"") == b""


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 300), max_size=6))
def test_a_stream_cut_anywhere_has_the_same_answers(
    any_server: Server[FakeBroker], frames: list[bytes], cuts: list[int]
) -> None:
    frames = [b"echo " + frame for frame in frames]
    stream = b"".join(map(framed, frames))
    with connect(any_server) as client:
        last = 0
        for cut in sorted(cuts):
            client.socket.sendall(stream[last:cut])
            last = max(last, min(cut, len(stream)))
        client.socket.sendall(stream[last:])
        assert [client.receive() for _ in frames] == frames


REQUESTS = st.one_of(
    st.binary(max_size=20).map(b"echo ".__add__),
    st.just(b"wait"),
    st.just(b"quiet"),
    st.integers(0, 300_000).map(lambda size: b"big %d" % size),
)


def answered(request_: bytes) -> list[bytes]:
    """What the fake broker answers, if it does."""
    if request_ == b"quiet":
        return []
    return [bytes(int(request_[4:])) if request_.startswith(b"big ") else request_]


@given(
    scripts=st.lists(st.lists(REQUESTS, max_size=12), min_size=1, max_size=4), ends=st.booleans()
)
def test_every_client_gets_its_own_answers_in_order_whatever_the_others_ask(
    any_server: Server[FakeBroker], scripts: list[list[bytes]], *, ends: bool
) -> None:
    expected = [[a for request_ in script for a in answered(request_)] for script in scripts]
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(any_server)) for _ in scripts]
        for client, script in zip(clients, scripts, strict=True):
            client.send(*script)
            if ends:
                client.socket.shutdown(socket.SHUT_WR)
        # All read at once: an answer that is not taken would hold up those behind it.
        with ThreadPoolExecutor(len(scripts)) as pool:
            counts = map(len, expected)
            received = [pool.submit(take, *each) for each in zip(clients, counts, strict=True)]
            waits = sum(script.count(b"wait") for script in scripts)
            while waits:
                waits -= any_server.run(FakeBroker.answer_all)
            assert [each.result() for each in received] == expected
        if ends:
            assert all(client.is_closed() for client in clients)


def take(client: Client, count: int) -> list[bytes]:
    return [client.receive() for _ in range(count)]


def test_frames_cut_at_every_byte_are_answered(server: Server[FakeBroker]) -> None:
    stream = framed(b"echo one") + framed(b"echo two")
    for cut in range(len(stream) + 1):
        with connect(server) as client:
            client.socket.sendall(stream[:cut])
            # Whatever else the server does, it has seen the first part by then.
            server.run(lambda _: None)
            client.socket.sendall(stream[cut:])
            assert [client.receive(), client.receive()] == [b"echo one", b"echo two"]


def test_answers_come_in_the_order_of_requests_though_one_waits(
    server: Server[FakeBroker],
) -> None:
    with connect(server) as client, connect(server) as other:
        client.send(b"one", b"wait", b"two", b"quiet", b"wait again", b"three")
        assert client.receive() == b"one"
        assert other.ask(b"echo") == b"echo"
        assert server.run(FakeBroker.answer_all) == 1
        assert [client.receive(), client.receive()] == [b"wait", b"two"]
        server.run(lambda _: None)
        assert server.run(FakeBroker.answer_all) == 1
        assert [client.receive(), client.receive()] == [b"wait again", b"three"]


def test_a_second_answer_to_a_request_goes_nowhere(server: Server[FakeBroker]) -> None:
    with connect(server) as client:
        client.send(b"wait")
        wait_for(server, lambda broker: len(broker.waiting) == 1)
        server.run(FakeBroker.answer_all)
        assert client.receive() == b"wait"
        assert client.ask(b"next") == b"next"


def test_a_pipeline_longer_than_a_turn_is_answered_and_holds_up_nobody(
    server: Server[FakeBroker],
) -> None:
    count = 20 * MAX_FRAMES_A_TURN
    with connect(server) as client, connect(server) as other:
        client.send(*[b"echo %d" % number for number in range(count)])
        assert other.ask(b"echo") == b"echo"
        assert [client.receive() for _ in range(count)] == [b"echo %d" % n for n in range(count)]


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_frame_of_an_impossible_size_ends_its_connection_and_no_other(size: int) -> None:
    log: list[str] = []
    limits = Limits(max_frame_bytes=1000)
    with serving(limits=limits, log=log) as server, connect(server) as other:
        with connect(server) as client:
            client.send(b"x" * 1000)
            assert client.receive() == b"x" * 1000
            client.socket.sendall(struct.pack(">i", size) + b"xxxx")
            assert client.is_closed()
        assert other.ask(b"echo") == b"echo"
    assert lines_with(log, f"a frame of {size} bytes, where 1000 are the most")


@pytest.mark.parametrize("request_", [b"shut", b"late-shut", b"refuse", b"fail"])
def test_a_connection_that_the_broker_ends_is_closed_with_what_was_answered_before(
    server: Server[FakeBroker], request_: bytes
) -> None:
    with connect(server) as other, connect(server) as client:
        client.send(b"one", request_, b"two")
        assert client.receive() == b"one"
        assert client.is_closed()
        assert other.ask(b"echo") == b"echo"
        wait_for(server, lambda broker: len(broker.gone) == 1)


def test_the_log_tells_what_a_peer_did_from_what_the_broker_did() -> None:
    for request_, said in [
        (b"refuse", "127.0.0.1:{}: a request of the unknown API key 999"),
        (
            b"fail",
            "127.0.0.1:{}: a fault of the broker, please report it: KeyError('of the broker')",
        ),
    ]:
        log: list[str] = []
        with serving(log=log) as server, connect(server) as client:
            client.send(request_)
            assert client.is_closed()
            port = client.socket.getsockname()[1]
        assert log == [said.format(port)]


def test_a_peer_that_sends_no_more_gets_its_answers_and_is_closed(
    server: Server[FakeBroker],
) -> None:
    with connect(server) as client:
        client.send(b"one", b"wait", b"two")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive() == b"one"
        wait_for(server, lambda broker: len(broker.waiting) == 1)
        server.run(FakeBroker.answer_all)
        assert [client.receive(), client.receive()] == [b"wait", b"two"]
        assert client.is_closed()
        wait_for(server, lambda broker: not broker.connections)


def test_a_peer_that_sends_no_more_and_waits_too_long_is_forgotten() -> None:
    with serving(limits=Limits(max_half_closed_ms=10)) as server, connect(server) as client:
        client.send(b"wait")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()
        wait_for(server, lambda broker: not broker.connections)
        # The broker may still answer; there is nobody.
        assert server.run(FakeBroker.answer_all) == 1
        assert server.connection_count == 0


def test_a_peer_that_is_gone_is_told_to_the_broker_once(server: Server[FakeBroker]) -> None:
    with connect(server) as client:
        client.ask(b"echo")
    wait_for(server, lambda broker: not broker.connections)
    assert len(server.run(lambda broker: broker.gone)) == 1


def test_a_peer_that_resets_its_connection_while_it_is_answered_harms_nobody(
    server: Server[FakeBroker],
) -> None:
    with connect(server) as other:
        for _ in range(20):
            client = connect(server)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.send(*[b"big 100000"] * 20)
            client.socket.close()
        assert other.ask(b"echo") == b"echo"
        wait_for(server, lambda broker: len(broker.connections) == 1)

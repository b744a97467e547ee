"""Crowds at a broker in a process of its own: idle ones, ones that never read, and strangers.

What they take is bounded, and a client beside them is served. The crowds of the tests that are slow
are as large as they are told: 10,000 and 1,000.
"""

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import ottla
import pytest
from ottla.net.limits import Limits
from ottla.protocol.codec import encode
from ottla.protocol.header import request_header
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.served import WITHIN_S, Served, address_of, client_of, served

MIB = 1 << 20
LIMITS = Limits()
KIB_OF_A_CONNECTION = 8
"""More than it takes, so that no other build of Python fails."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="Linux alone tells memory so"
)


def resident_bytes(running: Served) -> int:
    pages = Path(f"/proc/{running.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """With so many descriptors, which a broker that it starts may have as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.fail(f"this machine allows {hard:,} descriptors (ulimit -Hn), {count:,} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connected(stack: ExitStack, address: tuple[str, int], receive_bytes: int = 0) -> socket.socket:
    sock = stack.enter_context(socket.socket())
    sock.settimeout(WITHIN_S)
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.connect(address)
    return sock


def is_served(running: Served) -> bool:
    with client_of(running.address) as client:
        return len(client.ask(MetadataRequest(topics=[]), 9).brokers) == 1


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_idle_connections_take_a_few_kib_each_and_are_all_served(count: int) -> None:
    with descriptors(count + 200), served() as running, ExitStack() as stack:
        assert is_served(running)
        before = resident_bytes(running)
        idle = [connected(stack, running.address) for _ in range(count)]
        assert is_served(running)
        grown = resident_bytes(running) - before
        assert grown < count * KIB_OF_A_CONNECTION * 1024 + MIB
        frame = request_header(18, 0, 7, "idle")
        for sock in idle[:: count // 100]:
            sock.sendall(len(frame).to_bytes(4, "big") + frame)
            assert len(sock.recv(8)) == 8
        assert running.end() == (0, "")


def test_a_broker_takes_as_many_descriptors_as_it_may_have() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    with ExitStack() as stack:
        try:
            running = stack.enter_context(served())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(200):
            connected(stack, running.address)
        assert is_served(running)
        assert running.end() == (0, "")


def produce_a_mib(running: Served) -> None:
    record = ottla.NewRecord(value=os.urandom(MIB - 1000), timestamp=5)
    data = PartitionProduceData(index=0, records=ottla.build_batch([record]))
    topics = [TopicProduceData(name="orders", partition_data=[data])]
    with client_of(running.address) as client:
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
        (topic,) = client.ask(request, 8).responses
        assert topic.partition_responses[0].error_code == 0


def fetch_of_a_mib() -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
    topic = FetchTopic(topic="orders", partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=MIB, topics=[topic])
    frame = request_header(1, 11, 7, "slow") + b"".join(encode(FetchRequest, 11)(request))
    return len(frame).to_bytes(4, "big") + frame


@pytest.mark.parametrize("count", [30, pytest.param(1_000, marks=pytest.mark.slow)])
def test_readers_that_take_nothing_are_bounded_together_and_dropped_in_time(
    count: int, tmp_path: Path
) -> None:
    with (
        (tmp_path / "log").open("w+") as log,
        descriptors(count + 200),
        served("--topic", "orders", "--metrics", 0, stderr=log) as running,
        ExitStack() as stack,
    ):
        produce_a_mib(running)
        before = resident_bytes(running)
        for _ in range(count):
            slow = connected(stack, running.address, receive_bytes=4096)
            with suppress(ConnectionError):
                slow.sendall(fetch_of_a_mib() * 4)
        assert is_served(running)
        most = min(count * 2 * LIMITS.max_unsent_bytes, LIMITS.max_unsent_total_bytes)
        assert resident_bytes(running) - before < most + 64 * MIB
        if count >= 1_000:
            end_s = time.monotonic() + LIMITS.max_stalled_ms / 1000 + WITHIN_S
            while "\nottla_unsent_bytes 0\n" not in running.page("/metrics")[1]:
                assert time.monotonic() < end_s
                assert is_served(running)
                time.sleep(0.1)
        running.process.terminate()
        assert running.process.wait(WITHIN_S) == 0
        log.seek(0)
        said = log.read()
    if count >= 1_000:
        assert "it has taken nothing for longest" in said
        assert "it takes no answers" in said


SASL = (
    "--set",
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "--set",
    "sasl.enabled.mechanisms=PLAIN",
)


@pytest.mark.parametrize("count", [50, pytest.param(1_500, marks=pytest.mark.slow)])
def test_what_strangers_send_before_their_login_is_held_within_a_bound(
    count: int, tmp_path: Path
) -> None:
    most = LIMITS.max_early_frame_bytes
    begun = most.to_bytes(4, "big") + bytes(most - 10)
    with (
        (tmp_path / "log").open("w") as log,
        descriptors(count + 200),
        served(*SASL, stderr=log, port=False) as running,
        ExitStack() as stack,
    ):
        assert is_served(running)
        before = resident_bytes(running)
        strangers = address_of(running.ready["SASL_PLAINTEXT"])
        for _ in range(count):
            with suppress(ConnectionError):
                connected(stack, strangers).sendall(begun)
        assert is_served(running)
        held = min(count * most, LIMITS.max_held_total_bytes)
        # A buffer grows in steps of its size.
        assert resident_bytes(running) - before < held * 5 // 4 + 64 * MIB
        running.process.terminate()
        assert running.process.wait(WITHIN_S) == 0


def test_a_stranger_who_asks_for_nothing_but_versions_is_closed() -> None:
    frame = request_header(18, 0, 7, "stranger")
    flood = (len(frame).to_bytes(4, "big") + frame) * 10_000
    with served(*SASL, port=False) as running, client_of(running.address) as beside:
        stranger = address_of(running.ready["SASL_PLAINTEXT"])
        with socket.create_connection(stranger, timeout=WITHIN_S) as sock:
            received = 0
            with suppress(ConnectionError):
                sock.sendall(flood)
                while data := sock.recv(1 << 16):
                    received += len(data)
        assert received < 20_000
        assert len(beside.ask(MetadataRequest(topics=[]), 9).brokers) == 1
        status, complaints = running.end()
    assert status == 0
    assert "asks for versions again and again before its login" in complaints

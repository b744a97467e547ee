"""A broker that stops leaves nobody waiting."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol.codec import decode, encode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.header import request_header, response_header
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.wire import Message, schema
from ottla.testing import Broker

LONG_MS = 2**31 - 1
PATIENCE_S = 60
"""Nothing takes as long; what hangs ends."""
JOIN_VERSION = 3


class Client:
    """A connection that sends requests and waits for answers when it likes."""

    def __init__(self, broker: Broker) -> None:
        host, port = broker.bootstrap_servers.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)

    def send(self, request: Message, version: int) -> "Client":
        key = schema(type(request)).api_key
        assert key is not None
        body = b"".join(encode(type(request), version)(request))
        frame = request_header(key, version, 1, "c") + body
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        return self

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self.socket.recv(size - len(data))):
            data += more
        return data

    def frame(self) -> bytes:
        """The next answer; nothing at the end of the connection."""
        return self.read(int.from_bytes(self.read(4), "big"))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def joining(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=LONG_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def joined(frame: bytes) -> Any:
    header = response_header(11, JOIN_VERSION, 1)
    return decode(JoinGroupResponse, JOIN_VERSION)(frame, len(header))[0]


def fetching() -> FetchRequest:
    asked = FetchPartition(partition=0, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=LONG_MS,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic="orders", partitions=[asked])],
    )


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("is_kept", [False, True])
def test_whoever_waits_when_it_stops_is_told_or_disconnected(
    stack: ExitStack, tmp_path: Path, process: bool, is_kept: bool
) -> None:
    data = tmp_path / "data" if is_kept else None
    broker = stack.enter_context(Broker(topics=["orders"], process=process, data=data))

    def client() -> Client:
        opened = Client(broker)
        stack.callback(opened.socket.close)
        return opened

    first = client().send(FindCoordinatorRequest(key="readers"), 2)
    first.frame()
    assert joined(first.send(joining(), JOIN_VERSION).frame()).error_code == 0
    # The second member waits for the first to join anew, which it never does.
    waits_for_members = client().send(joining(), JOIN_VERSION)
    seen = broker.fail("Fetch", observe=True)
    waits_for_records = client().send(fetching(), 4)
    held = broker.fail("Metadata")
    held.pause()
    waits_for_a_test = client().send(MetadataRequest(topics=[]), 4)
    idle = client()
    broker.wait_for(group="readers", state="PreparingRebalance")
    seen.wait()
    held.wait()
    broker.stop()
    answer = joined(waits_for_members.frame())
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    for each in (waits_for_members, waits_for_records, waits_for_a_test, idle, first):
        assert each.frame() == b""

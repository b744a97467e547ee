"""Bytes beside those of kafka-python, which reads what we write and writes what we read."""

from importlib import import_module
from random import Random
from typing import Any

import pytest
from kafka.protocol.api_message import ApiMessage
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import read_request_header, request_header
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.wire import schema
from support.messages import any_message, messages_of, modules

for package in ("admin", "consumer", "metadata", "producer", "sasl"):
    import_module(f"kafka.protocol.{package}")

# What it does not have: KIP-848 beyond heartbeats, and versions newer than itself.
UNKNOWN = {
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
}


def peers(base: Any = ApiMessage) -> dict[str, Any]:
    """The classes of kafka-python by name, the messages of all its versions in one."""
    found: dict[str, Any] = {}
    for peer in base.__subclasses__():
        found |= {peer.__name__: peer, **peers(peer)}
    return found


PEERS = peers()
APIS = [
    name
    for name, module in modules().items()
    if any(schema(message).name in PEERS for message in messages_of(module))
]


@pytest.mark.parametrize("name", APIS)
def test_kafka_python_reads_our_bytes_and_writes_the_same(name: str) -> None:
    random = Random(name)
    for message in messages_of(modules()[name]):
        peer = PEERS[schema(message).name]
        for version in range(peer.max_version + 1):
            ours = any_message(message, version, random, private=False)
            if message is ApiVersionsResponse:
                # A body with an error it takes for one of version 0.
                ours.error_code = 0
            frame = b"".join(encode(message, version)(ours))
            theirs = peer.decode(frame, version=version, header=False)
            is_flexible = peer.flexible_version_q(version)
            written = peer._struct.encode(
                theirs, version=version, compact=is_flexible, tagged=is_flexible
            )
            assert written == frame
            assert decode(message, version)(bytes(written), 0) == (ours, len(frame))


def test_only_what_kafka_python_does_not_have_is_left_out() -> None:
    declared = {
        schema(message).name
        for name, module in modules().items()
        for message in messages_of(module)
        if schema(message).name.endswith(("Request", "Response"))
    }
    assert declared - PEERS.keys() == UNKNOWN


@pytest.mark.parametrize("name", sorted(name for name in PEERS if name.endswith("Request")))
def test_headers_are_those_of_kafka_python(name: str) -> None:
    peer = PEERS[name]
    for version in range(peer.max_version + 1):
        request = peer(version=version)
        request.with_header(correlation_id=7, client_id="me")
        written = request.encode_header(flexible=peer.flexible_version_q(version))
        assert request_header(peer.API_KEY, version, 7, "me") == written
        header, position = read_request_header(bytes(written))
        assert (header.api_key, header.api_version) == (peer.API_KEY, version)
        assert position == len(written)

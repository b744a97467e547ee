"""Requests that no client would send: the broker has no fault, and whoever else is there is served.

They begin as valid requests of every API and version, with values by chance, and most are damaged.
"""

import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from ottla.broker.api import APIS
from ottla.protocol.codec import encode
from ottla.protocol.header import request_header
from ottla.testing import Broker
from support.messages import any_message, modules, one_item_in_each_list

VERSIONS = [
    (key, v) for key, api in APIS.items() for v in range(api.min_version, 1 + api.max_version)
]
API_VERSIONS = request_header(18, 0, 7, "healthy")


def request_type(key: int) -> Any:
    name = APIS[key].name
    return getattr(modules()[name], "".join(map(str.capitalize, name.split("_"))) + "Request")


def request_of(key: int, version: int, chance: random.Random) -> bytes:
    """A request of an API: nothing in it, one of everything, or values by chance."""
    made = request_type(key)
    message = chance.choice(
        [
            made,
            lambda: one_item_in_each_list(made, version),
            lambda: any_message(made, version, chance, longest=30),
        ]
    )()
    header = request_header(key, version, chance.randrange(1 << 31), chance.choice([None, "me"]))
    return b"".join([header, *map(bytes, encode(made, version)(message))])


def damaged(request_: bytes, chance: random.Random) -> bytes:
    """Up to three changes: a byte, bytes put in or taken out, an end, a name that is known."""
    data = bytearray(request_)
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[place : place + 1] = bytes([chance.choice([0, 1, 127, 128, 255])])
            case 1:
                data[place:place] = chance.randbytes(chance.randrange(6))
            case 2:
                del data[place : place + chance.randrange(6)]
            case 3:
                del data[max(place, 4) :]
            case _:
                data[place:place] = b"\0\6orders"
    return bytes(data)


def connected(broker: Broker) -> socket.socket:
    host, _, port = broker.bootstrap_servers.partition(":")
    sock = socket.create_connection((host, int(port)), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def framed(request_: bytes) -> bytes:
    return struct.pack(">i", len(request_)) + request_


def is_served(client: socket.socket) -> bool:
    """Whether ApiVersions is answered."""
    client.sendall(framed(API_VERSIONS))
    with client.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return bool(stream.read(size).startswith(b"\0\0\0\x07\0\0"))


def throw(broker: Broker, chance: random.Random, count: int) -> int:
    """Send so many requests, some to each connection; returns how many it was closed under."""
    closed = 0
    for _ in range(count // 5):
        # Not more: behind one that waits for its answer the others are not looked at.
        with closing(connected(broker)) as sock:
            try:
                for _ in range(5):
                    request_ = request_of(*chance.choice(VERSIONS), chance)
                    sock.sendall(framed(damaged(request_, chance)))
                    sock.settimeout(0.001)
                    with suppress(TimeoutError):
                        closed += sock.recv(1 << 20) == b""
                    sock.settimeout(30)
            except ConnectionError:
                closed += 1
    return closed


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def broker(log: list[str]) -> Iterator[Broker]:
    with Broker(topics={"orders": 2}, log=log.append) as running:
        yield running


def test_damaged_requests_of_every_api_show_no_fault_and_end_no_other_connection(
    broker: Broker, log: list[str]
) -> None:
    chance, begun = random.Random(467), time.monotonic()
    with closing(connected(broker)) as client:
        for _ in range(10):
            assert throw(broker, chance, 200) > 10
            assert is_served(client)
    assert broker._desk.server.errors == ()
    assert len(log) <= 2 + time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux alone tells memory so")
def test_sixty_thousand_damaged_requests_leave_memory_as_it_was(broker: Broker) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    chance = random.Random(511)
    with closing(connected(broker)) as client:
        # The journal of requests is full by then, and every API's code loaded.
        throw(broker, chance, 20_000)
        before = resident()
        throw(broker, chance, 60_000)
        assert is_served(client)
    assert broker._desk.server.errors == ()
    assert resident() - before < 16 << 20

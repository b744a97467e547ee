"""Servers that answer what no broker does: a typed error, in its time, and nothing left over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from ottla.client import Admin
from ottla.errors import OttlaError
from support.scripted_server import WITHIN_S, ScriptedServer, until_closed

if TYPE_CHECKING:
    import socket


def received(connection: socket.socket) -> bytes:
    """Returns the correlation id of the next request."""
    stream = connection.makefile("rb")
    size = int.from_bytes(stream.read(4), "big")
    return stream.read(size)[4:8]


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "did not answer within 500 ms (negotiating)"),
        (lambda _: b"", "closed the connection before its first answer"),
        (lambda which: frame(which + bytes(90))[:40], "closed the connection"),
        (frame, "sent no answer of Kafka's"),
        (lambda _: frame(b"\0\0"), "an answer of 2 bytes, less than its header"),
        (lambda _: frame(b"\x7f\0\0\x01" + bytes(20)), "2130706433"),
        (lambda _: b"\xff\xff\xff\xff", "sent no answer of Kafka's"),
        (lambda _: b"\x7f\xff\xff\xff" + bytes(20), "sent no answer of Kafka's"),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "sent no answer of Kafka's"),
        (lambda _: b"\x15\x03\x03\0\x02\x02\x46", "speaks TLS, where security_protocol is"),
        (lambda which: frame(which + b"\0\x2a" + bytes(8)), "set client_software_name"),
    ],
    ids=[
        "silence",
        "closed",
        "cut",
        "empty",
        "short",
        "another correlation id",
        "negative length",
        "huge length",
        "http",
        "tls",
        "refused",
    ],
)
def test_an_answer_that_no_broker_gives_is_an_error_that_says_so(answer: object, said: str) -> None:
    def serve(connection: socket.socket) -> None:
        which = received(connection)
        if callable(answer):
            sent = answer(which)
            connection.sendall(sent)
            if len(sent) in {0, 40}:
                return
        until_closed(connection)

    before = set(threading.enumerate())
    with ScriptedServer(serve) as server:
        admin = Admin(
            bootstrap_servers=server.address,
            request_timeout_ms=500,
            default_api_timeout_ms=1500,
        )
        with admin, pytest.raises(OttlaError) as raised:
            admin.list_topics()
        assert server.all_closed.wait(WITHIN_S)
        assert server.accepted < 40
    assert said in str(raised.value)
    assert {one for one in threading.enumerate() if one.name.startswith("ottla")} <= before

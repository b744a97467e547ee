"""Requests of HTTP out of a stream, and what is refused because it could be read in two ways."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.net.http import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    HttpRefusal,
    HttpRequest,
    HttpRequests,
    http_answer,
)


def taken(*chunks: bytes, max_bytes: int = 100) -> list[HttpRequest | HttpRefusal]:
    requests = HttpRequests(max_bytes)
    found = []
    for chunk in chunks:
        requests.feed(chunk)
        while (request := requests.take()) is not None:
            found.append(request)
    return found


def request(*headers: str, body: bytes = b"", first: str = "GET / HTTP/1.1") -> bytes:
    return "\r\n".join([first, "Host: a", *headers, "", ""]).encode() + body


def test_a_request_has_method_path_query_headers_and_body() -> None:
    (found,) = taken(
        request(
            "Content-Length: 3",
            "Accept: a",
            "accept:  b \t",
            body=b"xyz",
            first="POST /faults?all=1&b HTTP/1.1",
        )
    )
    assert found == HttpRequest(
        "POST",
        "/faults",
        "all=1&b",
        {"host": "a", "content-length": "3", "accept": "a, b"},
        b"xyz",
        is_last=False,
    )


PIPELINED = [
    request(),
    request("Content-Length: 5", body=b"\r\n\r\nx", first="PUT /a HTTP/1.1"),
    b"\r\n" + request("Content-Length: 0"),
    request("Connection: Keep-Alive, close", first="GET /last HTTP/1.1"),
    request(first="GET /never HTTP/1.1"),
]


@given(st.lists(st.integers(0, len(b"".join(PIPELINED))), max_size=8))
def test_requests_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    stream = b"".join(PIPELINED)
    bounds = [0, *sorted(cuts), len(stream)]
    found = taken(*(stream[a:b] for a, b in pairwise(bounds)))
    assert found == taken(stream)
    assert [
        (each.path, each.body, each.is_last) for each in found if type(each) is HttpRequest
    ] == [
        ("/", b"", False),
        ("/a", b"\r\n\r\nx", False),
        ("/", b"", False),
        ("/last", b"", True),
    ]


WORDS = [
    b"GET / HTTP/1.1\r\n",
    b"Host: a\r\n",
    b"Content-Length: ",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"\r\n",
    b"7",
    b":",
]


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=60))
def test_whatever_is_received_is_requests_or_one_refusal_and_little_is_held(
    chunks: list[bytes],
) -> None:
    requests = HttpRequests(100)
    found: list[HttpRequest | HttpRefusal] = []
    for chunk in chunks:
        requests.feed(chunk)
        while (request := requests.take()) is not None:
            found.append(request)
        assert requests.held_bytes < MAX_HEAD_BYTES + 100 + len(chunk)
    assert all(isinstance(each, HttpRequest) for each in found[:-1])
    assert sum(len(each.body) for each in found if isinstance(each, HttpRequest)) <= sum(
        map(len, chunks)
    )


@pytest.mark.parametrize(
    ("first", "headers", "is_last"),
    [
        ("GET / HTTP/1.1", [], False),
        ("GET / HTTP/1.1", ["Connection: close"], True),
        ("GET / HTTP/1.0", [], True),
        ("GET / HTTP/1.0", ["Connection: keep-alive"], False),
    ],
)
def test_a_connection_goes_on_where_both_sides_may_expect_it(
    first: str, headers: list[str], is_last: bool
) -> None:
    (found,) = taken(request(*headers, first=first))
    assert isinstance(found, HttpRequest)
    assert found.is_last is is_last


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (b"\x00\x00\x00\x10 a frame of Kafka\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (request("Host : b"), 400),
        (request(" folded: b"), 400),
        (request("a: \x1b[2J"), 400),
        (request("a: b\nc: d"), 400),
        ("GET / HTTP/1.1\r\nHost: ä\r\n\r\n".encode(), 400),
        (request("no colon"), 400),
        (request("Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 501),
        (request("Content-Length: 1", "Content-Length: 1", body=b"x"), 400),
        (request("Content-Length: +1", body=b"x"), 400),
        (request("Content-Length: -1", body=b"x"), 400),
        (request("Content-Length: 1, 1", body=b"x"), 400),
        (request("Content-Length: 101"), 413),
        (request("Content-Length: " + "9" * 5000), 413),
        (request(*["a: b"] * MAX_HEADERS), 431),
        (request("a: " + "b" * MAX_HEAD_BYTES), 431),
        (b"x" * MAX_HEAD_BYTES, 431),
    ],
)
def test_what_is_no_request_is_refused_once_and_ends_the_stream(stream: bytes, status: int) -> None:
    found = taken(stream, request())
    assert [type(each) for each in found] == [HttpRefusal]
    (refusal,) = found
    assert isinstance(refusal, HttpRefusal)
    assert refusal.status == status
    assert refusal.message.isprintable()


def test_a_body_may_be_as_large_as_is_said_and_is_not_taken_before_it_is_whole() -> None:
    head = request("Content-Length: 100")
    assert taken(head, b"x" * 99) == []
    (found,) = taken(head, b"x" * 99, b"x")
    assert isinstance(found, HttpRequest)
    assert found.body == b"x" * 100


def test_nothing_is_held_of_a_stream_that_is_over() -> None:
    requests = HttpRequests(100)
    requests.feed(request("Connection: close") + b"more")
    assert isinstance(requests.take(), HttpRequest)
    requests.feed(b"x" * 1_000)
    assert (requests.is_over, requests.held_bytes, requests.take()) == (True, 0, None)


def test_an_answer_says_how_long_it_is() -> None:
    head, body = http_answer(200, b"ok\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert b"Content-Type: text/plain; charset=utf-8\r\n" in head
    assert body == b"ok\n"
    (head,) = http_answer(503, b"ok\n", without_body=True, is_last=True)
    assert b"Content-Length: 3\r\n" in head
    assert b"\r\nConnection: close\r\n" in head
    assert http_answer(204)[0].count(b"Content-Type:") == 0

"""Endpoints of HTTP on the server's own thread: bounded, and apart from the broker's clients."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from typing import Any

import pytest
from ottla.broker.meters import GAUGE, Family, Sample
from ottla.errors import ServerError
from ottla.net.http import HttpRefusal, HttpRequest, http_answer
from ottla.net.limits import MAX_HTTP_CONNECTIONS, Limits
from ottla.net.metrics import MetricsSite, broker_metrics
from ottla.net.served import Address, Send
from ottla.net.server import Server
from ottla.net.serving import broker_server
from ottla.net.settings import ListenerSettings
from ottla.net.site import Site
from support.fake_broker import WITHIN_S, FakeBroker, connect, lines_with, wait_for


class Echo(Site):
    """Answers with the body; `/wait` when it is told to."""

    max_body_bytes = 1_000

    def __init__(self) -> None:
        self.waiting: list[Send] = []

    def answer(self, _connection: Any, request: HttpRequest, _now_ms: int, send: Send) -> bool:
        if request.path == "/wait":
            self.waiting.append(send)
            return True
        if request.path == "/refuse":
            raise HttpRefusal(404, "not here")
        send(http_answer(200, request.body or request.path.encode(), is_last=request.is_last))
        return False

    def answer_all(self, _broker: FakeBroker) -> int:
        waiting, self.waiting = self.waiting, []
        for send in waiting:
            send(http_answer(200, b"late"))
        return len(waiting)


@contextmanager
def endpoint(
    site: Site, limits: Limits | None = None, log: list[str] | None = None
) -> Iterator[tuple[Server[FakeBroker], Address]]:
    server = Server(lambda _: FakeBroker(), limits=limits, log=None if log is None else log.append)
    address = server.add_site(site, ListenerSettings(name="HTTP"))
    with server:
        yield server, address
    assert server.errors == ()


@contextmanager
def client_of(address: Address) -> Iterator[HTTPConnection]:
    client = HTTPConnection(address.host, address.port, timeout=WITHIN_S)
    try:
        yield client
    finally:
        client.close()


def asked(client: HTTPConnection, method: str, path: str, body: bytes | None = None) -> Any:
    client.request(method, path, body)
    response = client.getresponse()
    return response.status, response.read()


def test_requests_are_answered_beside_those_of_kafka() -> None:
    with (
        endpoint(Echo()) as (server, address),
        client_of(address) as client,
        connect(server) as other,
    ):
        for number in range(3):
            body = b"x" * 300 * number
            assert asked(client, "POST", f"/{number}", body) == (200, body or b"/0")
            assert other.ask(b"echo") == b"echo"
        assert asked(client, "GET", "/refuse") == (404, b"not here\n")
        assert asked(client, "GET", "/after") == (200, b"/after")


def test_an_answer_may_come_later_also_on_a_connection_that_ends_with_it() -> None:
    site = Echo()
    limits = Limits(max_half_closed_ms=1)
    with endpoint(site, limits) as (server, address), client_of(address) as client:
        client.request("GET", "/wait", headers={"Connection": "close"})
        wait_for(server, lambda _: bool(site.waiting))
        for _ in range(20):
            assert server.run(lambda broker: len(broker.ticks)) > 0
        assert server.run(site.answer_all) == 1
        assert client.getresponse().read() == b"late"
        wait_for(server, lambda _: server.connection_count == 0)


def test_what_is_no_http_is_told_and_closed() -> None:
    with endpoint(Echo()) as (server, address):
        with socket.create_connection(address[1:], timeout=WITHIN_S) as client:
            client.sendall(b"\0\0\0\x10 a frame of Kafka\r\n\r\n")
            with client.makefile("rb") as answered:
                assert answered.read().startswith(b"HTTP/1.1 400 Bad Request\r\n")
        wait_for(server, lambda _: server.connection_count == 0)


def test_a_body_that_is_too_large_is_refused_before_it_is_received() -> None:
    with endpoint(Echo()) as (_, address), client_of(address) as client:
        client.putrequest("POST", "/")
        client.putheader("Content-Length", "1001")
        client.endheaders()
        assert client.getresponse().status == 413


def test_a_crowd_at_an_endpoint_is_bounded_and_takes_no_place_of_the_brokers_clients() -> None:
    log: list[str] = []
    site = Echo()
    with (
        endpoint(site, Limits(max_connections=1), log) as (server, address),
        ExitStack() as stack,
    ):
        for _ in range(MAX_HTTP_CONNECTIONS):
            crowd = stack.enter_context(client_of(address))
            crowd.request("GET", "/wait")
        wait_for(server, lambda _: len(site.waiting) == MAX_HTTP_CONNECTIONS)
        with socket.create_connection(address[1:], timeout=WITHIN_S) as late:
            assert late.recv(1) == b""
        with connect(server) as client:
            assert client.ask(b"echo") == b"echo"
        server.run(site.answer_all)
        assert crowd.getresponse().read() == b"late"
        assert asked(crowd, "GET", "/still") == (200, b"/still")
    assert f"{MAX_HTTP_CONNECTIONS} connections wait for their answers already" in log[0]


def test_those_who_ask_for_nothing_give_way_to_newcomers_and_nobody_else_does() -> None:
    log: list[str] = []
    with endpoint(Echo(), log=log) as (server, address), ExitStack() as stack:
        active = stack.enter_context(client_of(address))
        assert asked(active, "GET", "/first") == (200, b"/first")
        silent = [
            stack.enter_context(socket.create_connection(address[1:], timeout=WITHIN_S))
            for _ in range(MAX_HTTP_CONNECTIONS - 1)
        ]
        # A byte now and then is no request.
        silent[1].sendall(b"G")
        for number in range(50):
            with client_of(address) as newcomer:
                path = f"/{number}"
                assert asked(newcomer, "GET", path) == (200, path.encode())
                assert server.connection_count <= MAX_HTTP_CONNECTIONS
        assert silent[0].recv(1) == b""
        assert asked(active, "GET", "/still") == (200, b"/still")
    assert lines_with(log, "it has asked for nothing for longest")


@pytest.mark.parametrize("begin", [b"", b"GET /a HTTP/1.1\r\nHost: x\r\nA: "])
def test_a_request_that_comes_byte_by_byte_has_to_end_in_time(
    monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr("ottla.net.connection.MAX_HTTP_REQUEST_MS", 200)
    log: list[str] = []
    with endpoint(Echo(), log=log) as (_, address), client_of(address) as quick:
        assert asked(quick, "GET", "/quick") == (200, b"/quick")
        with socket.create_connection(address[1:], timeout=WITHIN_S) as slow:
            slow.sendall(begin)
            slow.settimeout(0.01)
            end_s, is_closed = time.monotonic() + WITHIN_S, False
            while not is_closed:
                assert time.monotonic() < end_s
                with suppress(TimeoutError, ConnectionError):
                    slow.sendall(b"x" if begin else b"")
                try:
                    is_closed = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    is_closed = True
        # Who has asked may be silent for longer.
        assert asked(quick, "GET", "/again") == (200, b"/again")
    assert lines_with(log, "it does not go on" if begin else "it has asked for nothing in time")


def test_requests_that_come_at_once_leave_a_turn_to_others_between_two() -> None:
    turns: list[int] = []

    class Turns(Echo):
        def answer(self, _connection: Any, request: HttpRequest, _now: int, send: Send) -> bool:
            turns.append(len(server.served.ticks))
            return super().answer(_connection, request, _now, send)

    with (
        endpoint(Turns()) as (server, address),
        socket.create_connection(address[1:], timeout=WITHIN_S) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        wait_for(server, lambda _: len(turns) == 20)
    # The first has its turn with what the socket has.
    assert len(set(turns)) >= 19


def test_a_site_is_added_before_the_server_starts() -> None:
    with endpoint(Echo()) as (server, _), pytest.raises(ServerError, match="before the server"):
        server.add_site(Echo(), ListenerSettings())


def test_what_a_broker_says_is_wrong_with_it_is_in_its_health() -> None:
    server = broker_server()
    address = server.add_site(broker_metrics(server, dict), ListenerSettings(name="HTTP"))
    with server, client_of(address) as client:
        assert asked(client, "GET", "/health")[0] == 200
        server.run(lambda broker: broker.wrong.update(storage="/data is offline"))
        assert asked(client, "GET", "/health") == (
            503,
            b'{"status": "unavailable", "wrong": {"storage": "/data is offline"}}\n',
        )
        page = asked(client, "GET", "/metrics")[1]
        assert b"\nkafka_server_socket_server_metrics_incoming_byte_total " in page


def test_numbers_and_health_are_told_as_machines_expect_them() -> None:
    wrong = {"storage": "the log directory /a is offline"}
    families = [Family("up", GAUGE, "Up.", [Sample((), 1)])]
    site = MetricsSite(lambda: families, lambda: wrong)
    with endpoint(site) as (_, address), client_of(address) as client:
        client.request("GET", "/metrics?x=1")
        answer = client.getresponse()
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert answer.read() == b"# HELP up Up.\n# TYPE up gauge\nup 1\n"
        assert asked(client, "GET", "/health") == (
            503,
            b'{"status": "unavailable", "wrong": {"storage": "the log directory /a is offline"}}\n',
        )
        wrong.clear()
        assert asked(client, "GET", "/health") == (200, b'{"status": "ready", "wrong": {}}\n')
        assert asked(client, "HEAD", "/health") == (200, b"")
        assert asked(client, "POST", "/metrics")[0] == 405
        assert asked(client, "GET", "/")[0] == 404


def test_a_site_of_this_machine_answers_to_its_names_alone() -> None:
    site = MetricsSite(lambda: (), dict, is_local=True)
    with endpoint(site) as (_, address), client_of(address) as client:
        for name, status in (("localhost:9", 200), ("[::1]", 200), ("rebound.example:80", 421)):
            client.request("GET", "/health", headers={"Host": name})
            answer = client.getresponse()
            answer.read()
            assert (name, answer.status) == (name, status)

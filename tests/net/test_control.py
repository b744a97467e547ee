"""The control endpoint: faults, time and inspection by HTTP, for who has the token alone."""

import json
import random
import socket
from base64 import b64decode
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, NamedTuple

import ottla
import pytest
from ottla.broker.broker import Broker
from ottla.net.control import ControlSite
from ottla.net.control_operations import OPERATIONS
from ottla.net.serving import broker_server
from ottla.net.settings import ListenerSettings

TOKEN = "sesame"  # noqa: S105 - for a test
WITHIN_S = 30.0


class Endpoint(NamedTuple):
    server: Any
    host: str
    port: int
    stopped: list[bool]

    def raw(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        client = HTTPConnection(self.host, self.port, timeout=WITHIN_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            client.request(method, path, body, {"Authorization": f"Bearer {TOKEN}", **named})
            response = client.getresponse()
            return response.status, response.read()
        finally:
            client.close()

    def ask(self, operation: str, **arguments: object) -> tuple[int, Any]:
        status, body = self.raw("POST", f"/{operation}", json.dumps(arguments).encode())
        told = json.loads(body)
        return status, told.get("result", told.get("error"))

    def result(self, operation: str, **arguments: object) -> Any:
        status, told = self.ask(operation, **arguments)
        assert status == 200, told
        return told


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = broker_server({"log.retention.ms": "-1"})
    stopped: list[bool] = []
    site = ControlSite(server, TOKEN, stop=lambda: stopped.append(True))
    address = server.add_site(site, ListenerSettings(name="CONTROL"))
    with server:
        yield Endpoint(server, address.host, address.port, stopped)
    assert server.errors == ()


def append(endpoint: Endpoint, topic: str, *values: bytes) -> None:
    def job(broker: Broker) -> None:
        handle = broker.image.topics[topic].partitions[0].handle
        for value in values:
            record = ottla.NewRecord(value=value, key=None, headers=[("h", b"\xff")], timestamp=5)
            batch = ottla.build_batch([record])
            assert broker.plane.append(
                handle, batch, now_ms=endpoint.server.clock.now_ms()
            ).accepted

    endpoint.server.run(job)


def test_topics_are_made_listed_and_deleted(endpoint: Endpoint) -> None:
    assert endpoint.result("create_topic", name="orders", partitions=3) is None
    configs = {"cleanup.policy": "compact", "retention_ms": 5}
    endpoint.result("create_topic", name="kept", configs=configs)
    assert endpoint.result("topics") == {"orders": 3, "kept": 1}
    assert endpoint.raw("GET", "/topics") == (200, b'{"result":{"orders":3,"kept":1}}\n')
    endpoint.result("delete_topic", name="kept")
    assert endpoint.ask("delete_topic", name="kept") == (
        400,
        {
            "kind": "KafkaError",
            "message": "there is no topic kept; topics are orders",
            "error": "UNKNOWN_TOPIC_OR_PARTITION",
            "error_code": 3,
        },
    )


def test_records_are_given_in_base64_and_what_is_left_out_is_counted(endpoint: Endpoint) -> None:
    endpoint.result("create_topic", name="orders")
    append(endpoint, "orders", b"\x00\xff", b"2", b"3")
    found = endpoint.result("records", topic="orders")
    assert found["left_out"] == 0
    assert [b64decode(each["value"]) for each in found["records"]] == [b"\x00\xff", b"2", b"3"]
    first = found["records"][0]
    assert (first["partition"], first["offset"], first["timestamp"]) == (0, 0, 5)
    assert (first["key"], first["headers"]) == (None, [["h", "/w=="]])
    found = endpoint.result("records", topic="orders", offset=1, max_bytes=1)
    assert ([each["offset"] for each in found["records"]], found["left_out"]) == ([1], 1)
    (part,) = endpoint.result("log", topic="orders", max_bytes=1)
    assert (part["next_offset"], part["end_offset"]) == (1, 3)
    assert [record.value for record in ottla.read(b64decode(part["data"]))] == [b"\x00\xff"]


def test_records_are_appended_from_base64(endpoint: Endpoint) -> None:
    endpoint.result("create_topic", name="orders")
    headers = [["trace", "AP8="], ["none", None]]
    given: dict[str, Any] = {
        "topic": "orders",
        "key": "aw==",
        "value": "AP8=",
        "headers": headers,
        "timestamp": 17,
    }
    assert endpoint.result("produce", **given) == 0
    (record,) = endpoint.result("records", topic="orders")["records"]
    assert {name: record[name] for name in ("key", "value", "headers", "timestamp")} == {
        name: given[name] for name in ("key", "value", "headers", "timestamp")
    }
    for name, wrong in (
        ("value", "no base64!"),
        ("key", 5),
        ("headers", {"trace": "AP8="}),
        ("headers", [["trace"]]),
        ("headers", [[5, None]]),
        ("headers", [["trace", "?"]]),
        ("headers", [[]]),
    ):
        status, told = endpoint.ask("produce", **{"topic": "orders", name: wrong})
        assert (status, told["message"].startswith(f"{name} is to be ")) == (400, True), told


def test_a_fault_is_set_paused_counted_and_removed(endpoint: Endpoint) -> None:
    fault = endpoint.result("fail", api="Metadata", error="INVALID_REQUEST", times=2)
    (entry,) = endpoint.result("faults")
    assert (entry["fault"], entry["api"], entry["error"]) == (fault, "Metadata", 42)
    endpoint.result("pause", fault=fault)
    assert endpoint.result("faults")[0]["is_paused"]
    endpoint.result("release", fault=fault)
    status, told = endpoint.ask("wait", fault=fault, hits=1, timeout_s=0.01)
    assert (status, told["kind"]) == (409, "TimeoutError")
    assert told["message"] == "the fault was to strike 1 times within 0.01 s: it has struck 0 times"
    endpoint.result("remove", fault=fault)
    assert endpoint.result("faults") == []
    assert endpoint.result("hits", fault=fault) == 0


def test_the_clock_is_read_frozen_and_advanced(endpoint: Endpoint) -> None:
    now_ms = endpoint.result("freeze")
    assert endpoint.result("now_ms") == now_ms
    assert endpoint.result("advance", seconds=45.5) == now_ms + 45_500
    assert endpoint.result("resume") >= now_ms + 45_500
    for seconds, said in ((-1, "cannot go back"), (1e300, "are the most")):
        status, told = endpoint.ask("advance", seconds=seconds)
        assert (status, told["kind"]) == (400, "ValueError")
        assert said in told["message"]


def test_a_wait_is_answered_when_it_is_over_and_others_are_served_meanwhile(
    endpoint: Endpoint,
) -> None:
    endpoint.result("create_topic", name="orders")
    body = json.dumps({"topic": "orders", "records": 1, "timeout_s": WITHIN_S}).encode()
    client = HTTPConnection(endpoint.host, endpoint.port, timeout=WITHIN_S)
    client.request("POST", "/wait_for", body, {"Authorization": f"Bearer {TOKEN}"})
    assert endpoint.result("topics") == {"orders": 1}
    append(endpoint, "orders", b"1")
    response = client.getresponse()
    assert (response.status, response.read()) == (200, b'{"result":null}\n')
    client.close()


def test_a_client_that_goes_while_it_waits_is_forgotten(endpoint: Endpoint) -> None:
    client = HTTPConnection(endpoint.host, endpoint.port, timeout=WITHIN_S)
    body = b'{"topic": "never", "timeout_s": 0.05}'
    client.request("POST", "/wait_for", body, {"Authorization": f"Bearer {TOKEN}"})
    client.close()
    status, _ = endpoint.ask("wait_for", topic="never", timeout_s=0.1)
    assert status == 409


def test_nobody_gets_in_without_the_token(endpoint: Endpoint) -> None:
    for credential in ("", "sesame", "Bearer", "Bearer sesame2", "Basic sesame", "bearer é"):
        value = credential.encode().decode("latin-1")
        status, _ = endpoint.raw("GET", "/topics", Authorization=value)
        assert status in {400, 401}, credential
    status, body = endpoint.raw("POST", "/stop", Authorization="Bearer wrong")
    assert status == 401
    assert b"Authorization: Bearer TOKEN" in body
    assert endpoint.stopped == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", 200),
        ("localhost:9093", 200),
        ("[::1]:9093", 200),
        ("LOCALHOST", 200),
        ("attacker.example", 421),
        ("127.0.0.1.attacker.example:9093", 421),
        ("", 421),
    ],
)
def test_it_answers_to_names_of_this_machine_alone(
    endpoint: Endpoint, host: str, expected: int
) -> None:
    assert endpoint.raw("GET", "/topics", Host=host)[0] == expected


def test_a_page_of_a_browser_is_allowed_nothing(endpoint: Endpoint) -> None:
    client = HTTPConnection(endpoint.host, endpoint.port, timeout=WITHIN_S)
    asks = {"Origin": "http://attacker.example", "Access-Control-Request-Method": "POST"}
    client.request("OPTIONS", "/fail", headers=asks)
    response = client.getresponse()
    assert response.status == 401
    assert not [name for name in response.headers if name.lower().startswith("access-control")]
    client.close()


@pytest.mark.parametrize(
    ("asked", "expected", "said"),
    [
        (("GET", "/nothing", None), 404, "no such operation"),
        (("GET", "/", None), 404, "GET /operations lists them"),
        (("GET", "/fail", None), 405, "by POST"),
        (("GET", "/wait_for", None), 405, "by POST"),
        (("PUT", "/fail", b"{}"), 405, "GET and POST"),
        (("GET", "/topics?a=1", None), 400, "not a query"),
        (("POST", "/fail", b"{"), 400, "no JSON"),
        (("POST", "/fail", b"[" * 100_000), 400, "no JSON"),
        (("POST", "/fail", b"\xff"), 400, "no JSON"),
        (("POST", "/fail", b"[]"), 400, "no object"),
        (("POST", "/advance", b'{"seconds": NaN}'), 400, "no JSON"),
        (("POST", "/advance", b'{"seconds": 1e999}'), 400, "are the most"),
        (("POST", "/advance", b"{}"), 400, "needs seconds"),
        (("POST", "/advance", b'{"seconds": true}'), 400, "seconds is to be a number, not True"),
        (("POST", "/fail", b'{"times": 1.5}'), 400, "times is to be a whole number"),
        (("POST", "/fail", b'{"times": 0}'), 400, "strikes once at least"),
        (("POST", "/fail", b'{"when": "x"}'), 400, "no argument 'when'"),
        (("POST", "/fail", b'{"api": "Nothing"}'), 400, "no API"),
        (("POST", "/fail", b'{"error": "NO_SUCH"}'), 400, "no error"),
        (("POST", "/hits", b'{"fault": 99}'), 400, "no fault 99"),
        (("POST", "/hits", b'{"fault": 1e3}'), 400, "a whole number"),
        (("POST", "/hits", b'{"fault": 99999999999999999999}'), 400, "a whole number"),
        (("POST", "/wait_for", b'{"topic": "a", "timeout_s": 1e9}'), 400, "expected 0 to 600"),
        (("POST", "/wait_for", b'{"topic": "a", "group": "b"}'), 400, "one of"),
        (("POST", "/producers", b'{"topic": "a", "partition": 0}'), 400, "no topic a"),
        (("POST", "/create_topic", b'{"name": "a", "partitions": 1000000000}'), 400, ""),
        (("POST", "/fail", b" " * 2_000_000), 413, "1,048,576 bytes"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    endpoint: Endpoint, asked: tuple[str, str, bytes | None], expected: int, said: str
) -> None:
    try:
        status, told = endpoint.raw(*asked)
    except (BrokenPipeError, ConnectionResetError):
        # It was refused before all of it was sent.
        assert expected == 413
    else:
        assert (status, said in told.decode()) == (expected, True), told
    assert endpoint.result("faults") == []
    assert endpoint.result("topics") == {}


def test_a_topic_of_too_many_partitions_is_refused_before_there_are_any(endpoint: Endpoint) -> None:
    status, told = endpoint.ask("create_topic", name="a", partitions=1_000_000)
    assert (status, told["kind"]) == (400, "KafkaError")


def test_all_operations_are_listed_with_their_arguments(endpoint: Endpoint) -> None:
    listed = endpoint.result("operations")
    assert listed.keys() == OPERATIONS.keys()
    assert listed["advance"] == {"seconds": "a number, required"}


def test_a_stop_is_answered_before_it_happens(endpoint: Endpoint) -> None:
    assert endpoint.ask("stop") == (200, None)
    # Whatever its thread did for the request is done.
    endpoint.result("topics")
    assert endpoint.stopped == [True]


def test_noise_hurts_nobody(endpoint: Endpoint) -> None:
    chance = random.Random(9093)
    good = (
        b"POST /advance HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sesame\r\n"
        b'Content-Length: 15\r\n\r\n{"seconds": 0}\n'
    )
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        with socket.create_connection((endpoint.host, endpoint.port), timeout=WITHIN_S) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
    assert endpoint.result("topics") == {}


def any_value(types: tuple[type, ...], chance: random.Random) -> object:
    """A value of one of some types, at its bounds as often as not."""
    kind = chance.choice(types)
    if kind is str:
        return chance.choice(["", "a", "Stable", "Produce", "x" * 300, "\u0000\ud800", "__proto__"])
    if kind is int:
        return chance.choice([0, 1, -1, 3, 1 << 31, (1 << 53) - 1, 1 - (1 << 53)])
    if kind is float:
        return chance.choice([0.0, 0.5, -0.5, 1e-9, 1e9, 1e300])
    if kind is dict:
        return chance.choice([{}, {"a": 1}, {"retention.ms": []}, {"retention_ms": {"a": None}}])
    return chance.choice([True, False])


def test_arguments_of_the_right_types_show_no_fault_whatever_they_are(endpoint: Endpoint) -> None:
    chance = random.Random(15)
    names = [name for name in OPERATIONS if name != "stop"]
    statuses = set()
    for number in range(400):
        operation = OPERATIONS[chance.choice(names)]
        given = {
            name: any_value(types, chance)
            for name, types in operation.arguments.items()
            if name in operation.required or chance.random() < 0.5
        }
        if operation.waits:
            given["timeout_s"] = chance.choice([0, 0.001, -1])
        status, _ = endpoint.ask(operation.name, **given)
        assert status in {200, 400, 409}, (operation.name, given)
        statuses.add(status)
        if number % 100 == 0:
            endpoint.ask("create_topic", name="a", partitions=2)
    assert statuses == {200, 400, 409}
    assert endpoint.server.errors == ()


def test_records_that_inflate_are_left_out_beyond_a_bound(endpoint: Endpoint) -> None:
    endpoint.result("create_topic", name="orders")
    records = [ottla.NewRecord(value=bytes(300_000), timestamp=5) for _ in range(30)]
    batch = ottla.build_batch(records, compression="gzip")
    assert len(batch) < 100_000

    def job(broker: Broker) -> None:
        handle = broker.image.topics["orders"].partitions[0].handle
        assert broker.plane.append(handle, batch, now_ms=endpoint.server.clock.now_ms()).accepted

    endpoint.server.run(job)
    found = endpoint.result("records", topic="orders", max_bytes=1_000_000)
    assert [each["offset"] for each in found["records"]] == [0, 1, 2, 3]
    assert found["left_out"] == 26
    found = endpoint.result("records", topic="orders", offset=26)
    assert ([each["offset"] for each in found["records"]], found["left_out"]) == (
        [26, 27, 28, 29],
        0,
    )


@pytest.mark.parametrize(
    "stream",
    [
        b"POST /stop HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 60\r\n\r\n{}",
        b"POST /stop HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length : 2\r\n\r\n{}",
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: +2\r\n\r\n{}",
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nX: y\r\n Content-Length: 2\r\n\r\n{}",
        b"POST /stop HTTP/1.1\r\nHost: localhost\nAuthorization: Bearer sesame\r\n\r\n",
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n",
        b"POST http://localhost/stop HTTP/1.1\r\nHost: attacker.example\r\n\r\n",
        b"POST /stop HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /stop\r\n\r\n",
        b"POST /stop HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n",
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 20_000,
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read(
    endpoint: Endpoint, stream: bytes
) -> None:
    smuggled = (
        b"POST /stop HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sesame\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )
    with socket.create_connection((endpoint.host, endpoint.port), timeout=WITHIN_S) as client:
        client.sendall(stream + smuggled)
        received = b""
        try:
            while data := client.recv(1 << 16):
                received += data
        except ConnectionResetError:
            assert received
    assert received.count(b"Content-Length: ") == 1
    assert received[9:12] in {b"400", b"431", b"501", b"505"}
    assert endpoint.stopped == []


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/json"]
)
def test_a_form_of_a_strange_page_changes_nothing(endpoint: Endpoint, content_type: str) -> None:
    client = HTTPConnection(endpoint.host, endpoint.port, timeout=WITHIN_S)
    # What a browser sends to other sites without asking them first has no Authorization.
    headers = {"Origin": "http://attacker.example", "Content-Type": content_type}
    client.request("POST", "/create_topic", b'{"name": "a"}', headers)
    assert client.getresponse().status == 401
    client.close()
    assert endpoint.result("topics") == {}


def test_text_of_a_request_is_in_no_line_of_a_log() -> None:
    log: list[str] = []
    server = broker_server(log=log.append)
    site = ControlSite(server, TOKEN, stop=lambda: None)
    address = server.add_site(site, ListenerSettings(name="CONTROL"))
    with server:
        for stream in (
            b"GET /\x1b[31m HTTP/1.1\r\n\r\n",
            b"GET /%0aforged HTTP/1.1\r\nHost: x\r\n\r\n",
        ):
            with socket.create_connection(address[1:], timeout=WITHIN_S) as client:
                client.sendall(stream)
                client.shutdown(socket.SHUT_WR)
                answered = b""
                while data := client.recv(1 << 16):
                    answered += data
            assert b"\x1b" not in answered
            assert b"forged" not in answered
    assert log == []

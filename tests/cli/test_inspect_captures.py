"""`ottla inspect` of Produce and Fetch out of a capture: bodies, frames, and what is cut."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol.codec import encode
from ottla.protocol.framing import framed
from ottla.protocol.header import request_header, response_header
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.wire import Message, schema
from support.commands import Ran, Run
from support.logs import batches, segment

PRODUCE, FETCH, METADATA = 0, 1, 3


def produce(version: int, data: bytes) -> bytes:
    topic = TopicProduceData(
        name="orders" if version < 13 else "",
        topic_id=bytes(16) if version < 13 else bytes(range(16)),
        partition_data=[PartitionProduceData(index=4, records=data)],
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return b"".join(encode(ProduceRequest, version)(request))


def fetched(version: int, data: bytes) -> bytes:
    partition = PartitionData(partition_index=4, high_watermark=9, records=data)
    if version >= 4:
        partition.aborted_transactions = [AbortedTransaction(producer_id=7, first_offset=2)]
    topic = FetchableTopicResponse(
        topic="orders" if version < 13 else "",
        topic_id=bytes(16) if version < 13 else bytes(range(16)),
        partitions=[partition],
    )
    return b"".join(encode(FetchResponse, version)(FetchResponse(responses=[topic])))


def frame(*parts: bytes) -> bytes:
    return b"".join(framed(list(parts)))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "capture"


def inspected(run: Run, capture: Path, data: bytes, kind: str, *options: object) -> Ran:
    capture.write_bytes(data)
    return run("inspect", capture, "--as", kind, *options)


def found(ran: Ran) -> list[dict[str, Any]]:
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.mark.parametrize("version", schema(ProduceRequest).versions)
def test_a_produce_body_is_read_in_every_version(run: Run, capture: Path, version: int) -> None:
    body = produce(version, segment(2))
    (message,) = found(
        inspected(run, capture, body, "produce-request", "--api-version", version, "-J")
    )
    assert message["versions"] == [version]
    (topic,) = message["topic_data"]
    (partition,) = topic["partition_data"]
    assert partition["index"] == 4
    assert [batch["base_offset"] for batch in partition["records"]] == [0, 3]


@pytest.mark.parametrize("version", schema(ProduceRequest).versions)
def test_the_version_of_a_produce_body_is_found(run: Run, capture: Path, version: int) -> None:
    (message,) = found(
        inspected(run, capture, produce(version, segment(2)), "produce-request", "-J")
    )
    assert version in message["versions"]


@pytest.mark.parametrize("version", schema(FetchResponse).versions)
@pytest.mark.parametrize("is_framed", [False, True])
def test_the_version_of_a_fetch_response_is_found(
    run: Run, capture: Path, version: int, *, is_framed: bool
) -> None:
    data = fetched(version, segment(2))
    if is_framed:
        data = frame(response_header(FETCH, version, 5), data)
    (message,) = found(inspected(run, capture, data, "fetch-response", "-J"))
    assert version in message["versions"]
    assert message["correlation_id"] == (5 if is_framed else None)
    (topic,) = message["responses"]
    assert len(topic["partitions"][0]["records"]) == 2


def requests() -> bytes:
    """What a client sent: something else, two produce requests, a fetch request."""
    fetch = b"".join(encode(FetchRequest, 12)(FetchRequest(max_wait_ms=500)))
    return b"".join(
        (
            frame(request_header(METADATA, 9, 1, "app"), b"\0\0\0\0"),
            frame(request_header(PRODUCE, 9, 2, "app"), produce(9, segment(1))),
            frame(request_header(PRODUCE, 3, 3, "a\x1bp"), produce(3, segment(2))),
            frame(request_header(FETCH, 12, 4, "app"), fetch),
        )
    )


def test_the_requests_of_a_connection_say_what_they_are(run: Run, capture: Path) -> None:
    ran = inspected(run, capture, requests(), "produce-request")
    assert ran.status == 0
    heads = [line for line in ran.out.splitlines() if line.startswith("produce")]
    assert heads[0].startswith("produce request, version 9, correlation id 2, client id app, pos")
    assert heads[1].startswith("produce request, version 3, correlation id 3, client id a\\x1bp,")
    assert "record set of 151 bytes" in ran.out
    assert "name=orders" in ran.out
    assert "index=4" in ran.out
    (message,) = found(inspected(run, capture, requests(), "fetch-request", "-J"))
    assert (message["correlation_id"], message["max_wait_ms"]) == (4, 500)


def test_records_can_be_shown_in_place_of_batches(run: Run, capture: Path) -> None:
    data = produce(9, segment(1))
    ran = inspected(run, capture, data, "produce-request", "--records")
    assert ran.out.count('key="key" value="vvvvvvvvvvvvvvvvvvvv"') == 3
    (message,) = found(inspected(run, capture, data, "produce-request", "--records", "-J"))
    assert '"key": "key"' in json.dumps(message)


def test_a_batch_that_a_fetch_response_cuts_is_shown_as_such(run: Run, capture: Path) -> None:
    whole, cut = batches(2)
    ran = inspected(run, capture, fetched(12, whole + cut[:50]), "fetch-response")
    assert ran.status == 0
    assert ran.out.splitlines()[-1].split() == ["151", "50", "not", "a", "batch"]


def test_what_is_whole_is_shown_before_a_cut_is_told(run: Run, capture: Path) -> None:
    data = requests()
    last = data.index(b"a\x1bp") - 14
    ran = inspected(run, capture, data[: last + 100], "produce-request")
    assert ran.status == 3
    assert ran.out.count("produce request, version 9") == 1
    (size,) = struct.unpack_from(">i", data, last)
    assert ran.err == (
        f"ottla: {capture}: a frame of {size} bytes, of which 96 are here (position {last})\n"
    )
    ran = inspected(run, capture, data[: last + 2], "produce-request")
    assert f"the capture ends 2 bytes into the size of a frame (position {last})" in ran.err


@pytest.mark.parametrize("size", range(0, 230, 7))
def test_a_body_that_is_cut_is_an_error_with_its_position(
    run: Run, capture: Path, size: int
) -> None:
    body = produce(9, segment(1))
    assert len(body) < 230
    ran = inspected(run, capture, body[:size], "produce-request", "--api-version", 9)
    assert ran.status == (0 if size >= len(body) else 3)
    if ran.status:
        assert ran.out == ""
        assert "no produce request: as version 9, " in ran.err
        assert "(position " in ran.err


def test_what_is_of_no_version_says_where_the_last_of_them_ends(run: Run, capture: Path) -> None:
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, bytes(3)):
        ran = inspected(run, capture, data, "fetch-response")
        assert ran.status == 3
        assert "no fetch response: of no version; as version " in ran.err
        assert "(position " in ran.err


def test_versions_that_read_a_body_otherwise_are_asked_for(run: Run, capture: Path) -> None:
    # A topic without a name or a partition in version 1, an error and a session in version 7.
    data = struct.pack(">iihi", 0, 1, 0, 0)
    ran = inspected(run, capture, data, "fetch-response")
    assert (ran.status, ran.out) == (3, "")
    assert "read it, and not alike: say which by --api-version (position 0)" in ran.err
    for version in (1, 7):
        ran = inspected(run, capture, data, "fetch-response", "--api-version", version)
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.startswith(f"fetch response, version {version}, ")


def test_a_version_that_there_is_none_of_is_wrong_usage(run: Run, capture: Path) -> None:
    ran = inspected(run, capture, b"", "produce-request", "--api-version", 14)
    assert ran.status == 64
    assert "a produce request has the versions 0 to 13, not 14" in ran.err


@pytest.mark.parametrize("message", [ProduceRequest, ProduceResponse, FetchRequest, FetchResponse])
def test_an_empty_message_of_each_kind_is_read(
    run: Run, capture: Path, message: type[Message]
) -> None:
    kind = {
        ProduceRequest: "produce-request",
        ProduceResponse: "produce-response",
        FetchRequest: "fetch-request",
        FetchResponse: "fetch-response",
    }[message]
    for version in schema(message).versions:
        data = b"".join(encode(message, version)(message()))
        ran = inspected(run, capture, data, kind, "--api-version", version)
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.startswith(f"{kind.replace('-', ' ')}, version {version}, ")

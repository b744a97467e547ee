"""Kafka's decisions by a broker on loopback, against the verdict on the same bytes.

`tests/plane/test_decide_over_the_wire.py` asks a data plane for all of them; here a sample goes
through the server, each case to a topic of its own with the settings of the case.
"""

from __future__ import annotations

import base64
import socket
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import ottla
import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.header import request_header, response_header
from ottla.testing import Broker
from plane.test_decide_over_the_wire import (
    EVERYTHING,
    PROFILES,
    SAMPLE,
    cases_of,
    first_batch,
    sendable,
    shown,
    version_of,
)
from support import vectors
from support.plane_frames import HEADER, NOW_MS, produce_frame
from support.wire_verdicts import COORDINATOR_IS_ASKED, Told, to_be_told, told_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Profile = Literal["kafka", "strict"]
PRODUCE = 0
PATIENCE_S = 60
PIPELINED = 50
LEAST_SEGMENT_BYTES = 1 << 20
# The first version in which a producer of which nothing is known is told so.
UNKNOWN_IS_TOLD = 8


def fits_a_broker(case: dict[str, Any]) -> bool:
    """Whether a broker has the topic of a case, and its producer needs no open transaction."""
    cfg = case.get("cfg", {})
    if cfg.get("segment_bytes", LEAST_SEGMENT_BYTES) < LEAST_SEGMENT_BYTES:
        return False
    if version_of(case) < COORDINATOR_IS_ASKED:
        return True
    first = first_batch(case)
    return first is None or not first.is_transactional


def chosen(path: Path, count: int) -> list[dict[str, Any]]:
    """Cases from all over a file."""
    cases = [case for case in sendable(cases_of(path)) if fits_a_broker(case)]
    return cases[:: len(cases) // count][:count]


class Client:
    """A connection that sends record sets one behind the other."""

    def __init__(self, broker: Broker) -> None:
        host, port = broker.bootstrap_servers.split(":")
        self.stream = socket.create_connection((host, int(port)), PATIENCE_S)

    def send(self, case: dict[str, Any], number: int, topic: tuple[str, bytes]) -> None:
        version, name = version_of(case), topic[0]
        body = produce_frame(
            version,
            {(name, 0): base64.b64decode(case["in"])},
            transactional_id=vectors.circumstances_of(case.get("cfg", {}))["transactional_id"],
            topic_id=UUID(bytes=topic[1]),
        )[len(HEADER) :]
        frame = request_header(PRODUCE, version, number, "c") + body
        self.stream.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self, case: dict[str, Any], number: int) -> Told:
        frame = self.exactly(int.from_bytes(self.exactly(4), "big"))
        header = response_header(PRODUCE, version_of(case), number)
        assert frame.startswith(header)
        return told_by(version_of(case), frame[len(header) :])

    def exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.stream.recv(count)
            assert part, "the broker has closed the connection"
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    """The settings of a case's topic, for the newest release."""
    found = vectors.topic_of(case.get("cfg", {}))
    del found["kafka_version"]
    return found


def expected(case: dict[str, Any], profile: Profile) -> tuple[Told, bytes]:
    """What a broker must answer and store, at the beginning of a log."""
    around = vectors.circumstances_of(case.get("cfg", {})) | {
        "now_ms": NOW_MS,
        "base_offset": 0,
        "leader_epoch": 0,
    }
    config = ottla.TopicConfig(**settings_of(case))
    verdict = ottla.validate(base64.b64decode(case["in"]), config, profile=profile, **around)
    told = to_be_told(verdict, version_of(case), profile, 0)
    first = first_batch(case)
    is_told = profile == "strict" and version_of(case) >= UNKNOWN_IS_TOLD
    if not (is_told and verdict.accepted and first and first.producer_id >= 0):
        return told, verdict.stored
    if first.base_sequence == 0:
        return told, verdict.stored
    text = (
        f"producer {first.producer_id} of epoch {first.producer_epoch} sent sequence "
        f"{first.base_sequence}, expected 0: nothing is known of what it sent before"
    )
    return Told(ErrorCode.UNKNOWN_PRODUCER_ID, -1, -1, told.log_start_offset, (), text), b""


def answers(
    cases: list[dict[str, Any]], profile: Profile
) -> Iterator[tuple[dict[str, Any], Told, bytes]]:
    """Each case with what a broker answers, and what it has stored."""
    config = {"transaction.partition.verification.enable": False}
    with Broker(config=config, profile=profile, frozen_at_ms=NOW_MS) as broker:
        names = [f"t{number}" for number in range(len(cases))]
        for name, case in zip(names, cases, strict=True):
            broker.create_topic(name, **settings_of(case))
        ids = broker.run(lambda core: {n: t.topic_id for n, t in core.image.topics.items()})
        client = Client(broker)
        for start in range(0, len(cases), PIPELINED):
            turn = range(start, min(start + PIPELINED, len(cases)))
            for number in turn:
                client.send(cases[number], number, (names[number], ids[names[number]]))
            for number in turn:
                told = client.receive(cases[number], number)
                yield cases[number], told, stored_in(broker, names[number])
        client.stream.close()


def stored_in(broker: Broker, topic: str) -> bytes:
    """The bytes of a topic's only partition."""

    def read(core: Any) -> bytes:
        partition = core.image.partition(topic, 0)
        return bytes(core.plane.read(partition.handle, 0, EVERYTHING))

    return broker.run(read)


def unlike_the_verdict(cases: list[dict[str, Any]], profile: Profile) -> list[str]:
    wrong = {}
    for case, told, stored in answers(cases, profile):
        wanted, bytes_wanted = expected(case, profile)
        found = vectors.unequal(told._asdict(), wanted._asdict())
        if stored != bytes_wanted:
            found.append("other bytes are stored")
        if found:
            wrong[case["id"]] = found
    return shown(wrong)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_broker_answers_through_its_socket_as_validate_decides(profile: Profile) -> None:
    assert unlike_the_verdict(chosen(SAMPLE, 100), profile) == []


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_a_broker_answers_a_thousand_shared_decisions_through_its_socket(
    profile: Profile, shared: Path
) -> None:
    cases = chosen(shared / "vectors" / "decide.jsonl.gz", 1000)
    assert len(cases) == 1000
    assert unlike_the_verdict(cases, profile) == []

"""Kafka's own decisions, asked for by Produce and read back by Fetch.

The cases are those of `tests/support/vectors.py`, the whole of them beside the repository and a
sample in it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ottla
import pytest
from ottla._engine import DataPlane
from support import vectors
from support.plane_frames import CODE, NOW_MS, Plane
from support.wire_verdicts import (
    COORDINATOR_IS_ASKED,
    RECORDS_ARE_NAMED,
    Told,
    to_be_told,
    told_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLE = Path(__file__).parents[1] / "samples" / "decide.jsonl.gz"
EVERYTHING = 1 << 30
SHOWN = 20
Profile = Literal["kafka", "strict"]
PROFILES: tuple[Profile, ...] = ("kafka", "strict")

# Why no client can bring a case about.
BY_A_COORDINATOR = "a broker's own coordinator writes it"
WITHOUT_A_REQUEST = "it comes to the log without a request, which would refuse it or ask otherwise"


@cache
def cases_of(path: Path) -> tuple[dict[str, Any], ...]:
    """Return the cases of a file."""
    return tuple(json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())


def obstacle(case: dict[str, Any]) -> str | None:
    """Return why no client can bring a case about; none where one can."""
    cfg = case.get("cfg", {})
    if cfg.get("origin") == "coordinator":
        return BY_A_COORDINATOR
    return WITHOUT_A_REQUEST if cfg.get("api_version") == -1 else None


def sendable(cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cases that a client can bring about."""
    return [case for case in cases if obstacle(case) is None]


def version_of(case: dict[str, Any]) -> int:
    """Return the version of the Produce that carries a case."""
    version: int = case.get("cfg", {}).get("api_version", 9)
    return version


def asked(case: dict[str, Any], profile: Profile) -> tuple[Told, bytes]:
    """Return the answer to a case, from a coordinator that consents, and what is stored then."""
    cfg = case.get("cfg", {})
    around = vectors.circumstances_of(cfg)
    plane = Plane(
        DataPlane(
            profile=profile,
            kafka_version=vectors.KAFKA_VERSION,
            unknown_producer="accept",
            transaction_verification=False,
        )
    )
    config = ottla.TopicConfig(**vectors.topic_of(cfg))
    start = around["base_offset"]
    plane.open(settings=config, next_offset=start, leader_epoch=around["leader_epoch"])
    version = around["api_version"]
    call = {
        "version": version,
        "now_ms": around["now_ms"],
        "transactional_id": around["transactional_id"],
    }
    sets = {("t", 0): base64.b64decode(case["in"])}
    produced = plane.produced(sets, **call)
    if produced.to_verify is not None:
        assert version >= COORDINATOR_IS_ASKED
        produced = plane.produced(sets, verified=produced.to_verify, **call)
    assert produced.answer is not None
    stored = plane.engine.read(plane.handles["t", 0], start, EVERYTHING)
    found = told_by(version, b"".join(produced.answer))
    assert produced.failed == (found.code != 0)
    return found, stored


def first_batch(case: dict[str, Any]) -> ottla.RecordBatch | None:
    """Return the first batch of a case, as far as there is one."""
    try:
        return next(ottla.read_batches(base64.b64decode(case["in"])), None)
    except ottla.RecordBatchError:
        return None


def begins_a_transaction_late(case: dict[str, Any]) -> bool:
    """Whether a batch of transaction version 2 is the producer's first and not its sequence 0.

    The cases know of no producers; since Produce 12 a log that knows none either refuses it.
    """
    if version_of(case) < COORDINATOR_IS_ASKED:
        return False
    first = first_batch(case)
    return (
        first is not None
        and first.is_transactional
        and first.producer_id >= 0
        and first.base_sequence != 0
    )


def unlike_the_verdict(case: dict[str, Any], profile: Profile) -> list[str]:
    """Return in what an answer is not the verdict on the same bytes."""
    records, cfg = base64.b64decode(case["in"]), case.get("cfg", {})
    verdict = vectors.verdict_of(records, cfg, profile)
    found, stored = asked(case, profile)
    start = vectors.circumstances_of(cfg)["base_offset"]
    if verdict.accepted and begins_a_transaction_late(case):
        return [] if found.code == CODE.OUT_OF_ORDER_SEQUENCE_NUMBER else [f"answered {found}"]
    expected = to_be_told(verdict, version_of(case), profile, start)
    wrong = vectors.unequal(found._asdict(), expected._asdict())
    return wrong if stored == verdict.stored else [*wrong, "other bytes are stored"]


def unlike_kafka(case: dict[str, Any]) -> list[str]:
    """Return in what an answer is not Kafka's."""
    out = case["out"]
    found, stored = asked(case, "kafka")
    if not out["code"] and begins_a_transaction_late(case):
        return [] if found.code == CODE.OUT_OF_ORDER_SEQUENCE_NUMBER else [f"answered {found}"]
    answer: dict[str, Any] = {
        "code": found.code,
        "base_offset": found.base_offset,
        "log_append_time": found.log_append_time_ms,
    }
    wanted = {"base_offset": -1, "log_append_time": -1} | out
    if version_of(case) >= RECORDS_ARE_NAMED:
        answer["record_errors"] = [record.batch_index for record in found.records]
        wanted.setdefault("record_errors", [])
    wrong = vectors.unequal(answer, wanted)
    return vectors.stored(stored, out) if "stored" in out and not wrong else wrong


def shown(wrong: dict[str, list[str]]) -> list[str]:
    """Return the first of what is wrong."""
    lines = [f"{case}: {what}" for case, found in wrong.items() for what in found]
    return lines[:SHOWN] + ([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])


def test_a_produce_is_answered_as_by_kafka() -> None:
    cases = sendable(cases_of(SAMPLE))
    assert len(cases) > 1000
    assert shown({case["id"]: found for case in cases if (found := unlike_kafka(case))}) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_a_produce_is_answered_as_validate_decides(profile: Profile) -> None:
    wrong = {
        case["id"]: found
        for case in sendable(cases_of(SAMPLE))
        if (found := unlike_the_verdict(case, profile))
    }
    assert shown(wrong) == []


@pytest.mark.shared
@pytest.mark.slow
def test_every_shared_decision_that_a_client_can_ask_for_is_given_over_the_wire(
    shared: Path,
) -> None:
    cases = cases_of(shared / "vectors" / "decide.jsonl.gz")
    assert Counter(map(obstacle, cases)) == {
        None: 16_516,
        WITHOUT_A_REQUEST: 2_553,
        BY_A_COORDINATOR: 931,
    }
    wrong = {
        f"{case['id']} ({profile})": found
        for case in sendable(cases)
        for profile in PROFILES
        if (found := unlike_the_verdict(case, profile))
    }
    assert shown(wrong) == []
    known = {case["id"]: found for case in sendable(cases) if (found := unlike_kafka(case))}
    assert shown(known) == []
    late = [case for case in sendable(cases) if begins_a_transaction_late(case)]
    assert 0 < len(late) < 50


def test_what_no_client_can_ask_for_is_known_by_its_reason() -> None:
    reasons = Counter(map(obstacle, cases_of(SAMPLE)))
    assert set(reasons) == {None, BY_A_COORDINATOR, WITHOUT_A_REQUEST}


def test_the_clock_of_the_cases_is_that_of_the_frames() -> None:
    assert vectors.circumstances_of({})["now_ms"] == NOW_MS

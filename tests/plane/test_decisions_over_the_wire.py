"""Kafka's own decisions, asked for by Produce and read back by Fetch."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any, Literal

import ottla
import pytest
from ottla._engine import DataPlane
from support import vectors
from support.plane_frames import CODE, NOW_MS, Plane, produce_answer

SAMPLE = Path(__file__).parents[1] / "samples" / "decide.jsonl.gz"
INVALID_RECORD_IS_KNOWN = 8
EVERYTHING = 1 << 30


def cases(api_versions: range) -> list[dict[str, Any]]:
    """Return the cases of the sample that a request of these versions may carry."""
    lines = gzip.decompress(SAMPLE.read_bytes()).splitlines()
    found = []
    for line in lines:
        case = json.loads(line)
        cfg = case.get("cfg", {})
        if cfg.get("origin") != "coordinator" and cfg.get("api_version", 9) in api_versions:
            found.append(case)
    return found


def asked(case: dict[str, Any], profile: str) -> tuple[Any, bytes] | None:
    """Return the answer to a case, and what is stored then; none where a coordinator is asked."""
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
    call = {
        "version": around["api_version"],
        "now_ms": around["now_ms"],
        "transactional_id": around["transactional_id"],
    }
    sets = {("t", 0): base64.b64decode(case["in"])}
    produced = plane.produced(sets, **call)
    if produced.to_verify is not None:
        return None
    found = produce_answer(call["version"], produced).responses[0].partition_responses[0]
    handle = plane.handles["t", 0]
    return found, plane.engine.read(handle, start, EVERYTHING)


def test_a_produce_is_answered_as_by_kafka_in_every_decide_case() -> None:
    wrong, asking = [], []
    for case in cases(range(3, 14)):
        out = case["out"]
        done = asked(case, "kafka")
        if done is None:
            asking.append(case["id"])
            continue
        found, stored = done
        version = case.get("cfg", {}).get("api_version", 9)
        answer = {"code": found.error_code, "base_offset": found.base_offset}
        wanted = {"base_offset": -1} | out
        answer["log_append_time"] = found.log_append_time_ms
        wanted.setdefault("log_append_time", -1)
        if version >= INVALID_RECORD_IS_KNOWN:
            answer["record_errors"] = [error.batch_index for error in found.record_errors]
            wanted.setdefault("record_errors", [])
        differences = vectors.unequal(answer, wanted)
        if "stored" in out and not differences:
            differences = vectors.stored(stored, out)
        wrong += [f"{case['id']}: {what}" for what in differences]
    assert wrong == []
    # Since Produce 12 the coordinator is asked in any case; that of the cases is nobody.
    assert 0 < len(asking) < 40


@pytest.mark.parametrize("version", [7, 9])
def test_a_produce_is_answered_as_validate_decides_in_the_strict_profile(
    version: Literal[7, 9],
) -> None:
    wrong = []
    for case in cases(range(version, version + 1)):
        verdict = vectors.verdict_of(base64.b64decode(case["in"]), case.get("cfg", {}), "strict")
        done = asked(case, "strict")
        assert done is not None
        found, stored = done
        code = verdict.error
        if version < INVALID_RECORD_IS_KNOWN and code == CODE.INVALID_RECORD:
            code = CODE.INVALID_REQUEST
        expected = (code, verdict.base_offset, verdict.stored)
        if (found.error_code, found.base_offset, stored) != expected:
            wrong.append((case["id"], found, expected[:2]))
        if version >= INVALID_RECORD_IS_KNOWN:
            assert found.error_message == verdict.error_message
            named = [error.batch_index for error in found.record_errors]
            assert named == [error.batch_index for error in verdict.record_errors]
    assert wrong == []


def test_the_clock_of_the_cases_is_that_of_the_frames() -> None:
    assert vectors.circumstances_of({})["now_ms"] == NOW_MS

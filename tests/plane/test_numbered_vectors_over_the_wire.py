"""The numbered vectors (`produce-validation.md` §13) as Produce requests, below version 8 and on.

What a request can carry is answered with the code and the records of the table; the rest is named.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import ottla
import pytest
from leader.test_vectors_of_the_specification import (
    CRC,
    KEYLESS,
    MAGIC,
    NOW,
    OFFSETS,
    RIGHT,
    STAMPED,
    VECTORS,
    Accepted,
    Refused,
    Vector,
    decided,
    sent,
)
from ottla._engine import DataPlane
from support.plane_frames import CODE, Plane, produce_answer
from support.wire_verdicts import RECORD_CODES_ARE_TAGGED, RECORDS_ARE_NAMED, Told, told_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla._engine import Produced

START = 1000
EVERYTHING = 1 << 30
LEAST_VERSION = 3
# From 7 on the rules of a request are the same in each.
VERSIONS = range(7, 14)
# Beside these Kafka tells no log start, nor where it looks no further than at the request.
WITHOUT_LOG_START = {2, 10, 18}
OF_THE_REQUEST = {"47", "61", "62"}


def obstacle(vector: Vector) -> str | None:
    """Return why no request can carry a vector; none where one can."""
    if vector.request.get("origin") == "coordinator":
        return "a coordinator writes it"
    version = vector.request.get("api_version", 9)
    if version is None:
        return "it comes to the log without a request"
    return "Produce 0 to 2 is served no more" if version < LEAST_VERSION else None


CARRIED = [vector for vector in VECTORS if obstacle(vector) is None]
CASES = [
    pytest.param(vector, profile, id=f"{vector.number} {vector.says} ({profile})")
    for vector in CARRIED
    for profile in ("kafka", "strict")
]


def versions(vector: Vector) -> Iterator[int]:
    """The versions of Produce that a vector holds for."""
    fixed = vector.request.get("api_version")
    return iter(VERSIONS if fixed is None else [fixed])


def opened(profile: str, config: dict[str, Any] | None = None, partitions: int = 1) -> Plane:
    """A plane with the topic of a vector."""
    # The specification has the answers of 4.1.
    version = "4.1" if profile == "kafka" else None
    plane = Plane(
        DataPlane(
            profile=profile,
            kafka_version=version,
            unknown_producer="accept",
            transaction_verification=False,
        )
    )
    settings = ottla.TopicConfig(**(config or {}), kafka_version=version)
    for partition in range(partitions):
        plane.open(partition=partition, settings=settings, next_offset=START, leader_epoch=7)
    return plane


def produced(plane: Plane, sets: dict[int, bytes], vector: Vector, version: int) -> Produced:
    """Hands over a Produce of record sets by partition, with the consent of a coordinator."""
    call: dict[str, Any] = {
        "version": version,
        "now_ms": NOW,
        "transactional_id": vector.request.get("transactional_id"),
    }
    named = {("t", partition): records for partition, records in sets.items()}
    found = plane.produced(named, **call)
    if found.to_verify is not None:
        found = plane.produced(named, verified=found.to_verify, **call)
    return found


@pytest.mark.parametrize(("vector", "profile"), CASES)
def test_a_vector_is_answered_over_the_wire_as_the_table_has_it(
    vector: Vector, profile: str
) -> None:
    expected = vector.kafka if profile == "kafka" else vector.strict
    for version in versions(vector):
        plane = opened(profile, vector.config)
        answer = produced(plane, {0: vector.records}, vector, version)
        found = told(version, answer)
        stored = plane.engine.read(plane.handles["t", 0], START, EVERYTHING)
        if isinstance(expected, Accepted):
            assert found.code == 0
            assert found.base_offset == expected.first
            assert found.log_append_time_ms == (NOW if vector.config == STAMPED else -1)
            assert (found.log_start_offset, found.records, found.message) == (START, (), None)
            assert stored == decided(vector, profile).stored
            assert stored
            continue
        assert stored == b""
        assert found.code == code_for(expected, version, profile)
        assert (found.base_offset, found.log_append_time_ms) == (-1, -1)
        is_told = profile == "strict" or not (
            expected.request_wide
            or expected.code in WITHOUT_LOG_START
            or vector.number in OF_THE_REQUEST
        )
        assert found.log_start_offset == (START if is_told else -1)
        assert [(each.batch_index, each.code) for each in found.records] == blamed(
            expected, version, profile
        )
        assert all(each.message for each in found.records)
        assert bool(found.message) == (
            version >= RECORDS_ARE_NAMED
            and (profile == "strict" or found.records != () or says_why_to_all(expected))
        )
        counted = plane.engine.metrics()
        for meter in (OFFSETS, MAGIC, CRC, KEYLESS):
            assert counted[meter] == (expected.marks if meter == expected.meter else 0), meter


def says_why_to_all(expected: Refused) -> bool:
    """Whether Kafka fails all of a request with the text of what it met."""
    return expected.request_wide and expected.code != CODE.UNKNOWN_SERVER_ERROR


def code_for(expected: Refused, version: int, profile: str) -> int:
    """The code that a client of a version is told: INVALID_RECORD only where it is known."""
    is_known = profile == "kafka" or version >= RECORDS_ARE_NAMED
    return expected.code if is_known or expected.code != CODE.INVALID_RECORD else 42


def blamed(expected: Refused, version: int, profile: str) -> list[tuple[int, int]]:
    """The records that a client of a version is told, and their codes where they are others."""
    if version < RECORDS_ARE_NAMED:
        return []
    pairs = [(each, 0) if isinstance(each, int) else each for each in expected.culprits]
    is_tagged = profile == "strict" and version >= RECORD_CODES_ARE_TAGGED
    return [(index, code if is_tagged else 0) for index, code in pairs]


@pytest.mark.parametrize("profile", ["kafka", "strict"])
@pytest.mark.parametrize(
    "vector",
    [each for each in CARRIED if isinstance(each.kafka, Refused) and each.kafka.request_wide],
    ids=lambda vector: f"{vector.number} {vector.says}",
)
def test_what_fails_all_of_a_request_in_kafka_fails_its_own_partition_alone(
    vector: Vector, profile: str
) -> None:
    for version in versions(vector):
        plane = opened(profile, vector.config, partitions=2)
        found = produced(plane, {0: RIGHT, 1: vector.records}, vector, version)
        codes = codes_of(version, found)
        wanted = vector.kafka if profile == "kafka" else vector.strict
        assert isinstance(wanted, Refused)
        code = code_for(wanted, version, profile)
        assert codes == [code if profile == "kafka" else 0, code]


def told(version: int, found: Produced) -> Told:
    """What is told of the only partition."""
    assert found.answer is not None
    return told_by(version, b"".join(found.answer))


def codes_of(version: int, found: Produced) -> list[int]:
    """The codes of the partitions of an answer."""
    answer = produce_answer(version, found)
    return [each.error_code for topic in answer.responses for each in topic.partition_responses]


def from_producer(index: int) -> bytes:
    return sent(producer_id=5, producer_epoch=0, base_sequence=3 * index)


WINDOW = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 1000}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("profile", ["kafka", "strict"])
class TestDuplicates:
    """Vectors 99 and 100: six batches of a producer are in the log, and one comes again."""

    @pytest.fixture
    def plane(self, profile: str, version: int) -> Plane:
        plane = opened(profile, WINDOW)
        for index in range(6):
            assert plane.append(from_producer(index), version=version).error_code == 0
        return plane

    @pytest.mark.parametrize("index", [5, 1])
    def test_vector_99_a_duplicate_of_the_newest_or_fifth_newest_batch_has_its_offset(
        self, plane: Plane, version: int, index: int
    ) -> None:
        found = plane.append(from_producer(index), version=version)
        # The time of a duplicate is that of its newest record, whatever the topic stamps.
        assert (found.error_code, found.base_offset) == (0, START + 3 * index)
        assert found.log_append_time_ms == NOW + 2
        assert plane.engine.offsets(0)[3] == START + 18

    def test_vector_100_a_duplicate_whose_timestamps_are_out_of_range_now_is_refused(
        self, plane: Plane, version: int
    ) -> None:
        call: dict[str, Any] = {"version": version, "now_ms": NOW + 1002}
        found = told(version, plane.produced({("t", 0): from_producer(5)}, **call))
        named = [0, 1] if version >= RECORDS_ARE_NAMED else []
        assert (found.code, [each.batch_index for each in found.records]) == (32, named)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("profile", ["kafka", "strict"])
class TestAcknowledgements:
    """Vectors 109 and 110: what is asked of the request and of the replicas."""

    def test_vector_109_other_acknowledgements_are_refused_for_every_partition(
        self, profile: str, version: int
    ) -> None:
        plane = opened(profile, partitions=2)
        found = plane.produced({("t", 0): RIGHT, ("t", 1): RIGHT}, acks=2, version=version)
        assert codes_of(version, found) == [CODE.INVALID_REQUIRED_ACKS] * 2

    def test_vector_110_too_few_replicas_in_sync_are_told_beside_the_log_start(
        self, profile: str, version: int
    ) -> None:
        plane = opened(profile)
        plane.engine.configure(0, min_insync_replicas=2)
        found = told(version, plane.produced({("t", 0): RIGHT}, acks=-1, version=version))
        assert (found.code, found.log_start_offset) == (CODE.NOT_ENOUGH_REPLICAS, START)


def test_what_no_request_can_carry_is_named_with_its_reason() -> None:
    kept_out: dict[str | None, set[int]] = defaultdict(set)
    for vector in VECTORS:
        kept_out[obstacle(vector)].add(int(vector.number))
    of_a_request = {99, 100, 109, 110}
    assert kept_out[None] | of_a_request == {
        *range(1, 42), 43, *range(45, 63), *range(85, 94), *range(96, 103), 104, 105,
        *range(108, 111),
    }  # fmt: skip
    assert kept_out["a coordinator writes it"] == {42, 44, 45}
    assert kept_out["Produce 0 to 2 is served no more"] == {63, 64, 65, 66, 67, 68}
    assert kept_out["it comes to the log without a request"] == {
        47, 61, *range(69, 85), 94, 95, 103, 106, 107,
    }  # fmt: skip

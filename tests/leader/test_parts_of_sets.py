"""A record set taken apart, and a batch of a log judged as if its producer sent it once more."""

import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.records import SetPart, validate_each, validate_stored

NOW_MS = 1_700_000_000_000
COMPACTED = ottla.TopicConfig(cleanup_policy="compact")
KEYED = ottla.build_batch([ottla.NewRecord(b"k", b"1")])
MIXED = ottla.build_batch([ottla.NewRecord(b"k", b"1"), ottla.NewRecord(None, b"2")])


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def split(data: bytes, *, api_version: int | None = None, origin: str = "client") -> list[SetPart]:
    return validate_each(data, COMPACTED, now_ms=NOW_MS, api_version=api_version, origin=origin)


def test_each_batch_is_a_part_and_names_its_records_to_blame() -> None:
    good, bad, refused = split(KEYED + MIXED + damaged(KEYED))
    assert (good.is_refused, good.record_errors) == (False, ())
    assert [record.value for record in good.records() or ()] == [b"1"]
    assert [(error.batch_index, error.error_name) for error in bad.record_errors] == [
        (1, "INVALID_RECORD")
    ]
    assert [record.value for record in bad.records() or ()] == [b"1", b"2"]
    assert (refused.is_refused, refused.error, refused.reason) == (True, 2, "CORRUPT_MESSAGE")
    assert refused.records() is None


@pytest.mark.parametrize(("api_version", "parts"), [(None, 2), (2, 2), (3, 1), (13, 1)])
def test_a_request_since_version_3_has_one_batch(api_version: int | None, parts: int) -> None:
    assert len(split(KEYED + MIXED, api_version=api_version)) == parts


@given(st.binary(max_size=200), st.integers(0, 3), st.sampled_from([None, 2, 11]))
def test_the_parts_of_any_bytes_follow_one_another_and_are_the_set(
    noise: bytes, batches: int, api_version: int | None
) -> None:
    data = KEYED * batches + noise
    for origin in ("client", "coordinator", "replication"):
        end = 0
        for part in split(data, api_version=api_version, origin=origin):
            assert part.position == end
            end += part.size
            assert part.is_refused == (part.reason is not None) == (part.records() is None)
        assert end == len(data)


def test_options_of_a_set_that_is_taken_apart_are_checked_as_those_of_a_verdict() -> None:
    with pytest.raises(ValueError, match="now_ms is -1"):
        validate_each(KEYED, now_ms=-1)
    with pytest.raises(ValueError, match="origin is 'client'"):
        validate_each(KEYED, now_ms=0, origin="replica")
    with pytest.raises(TypeError, match="bytes-like"):
        validate_each("text", now_ms=0)  # type: ignore[arg-type]


def test_a_stored_batch_keeps_its_offset_and_needs_no_transactional_id() -> None:
    batch = ottla.build_batch(
        [ottla.NewRecord(b"k", b"1")],
        base_offset=40,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    verdict = validate_stored(batch, now_ms=NOW_MS, base_offset=40)
    assert (verdict.accepted, verdict.base_offset) == (True, 40)
    assert verdict.stored[:8] == batch[:8]


def test_a_stored_marker_comes_from_its_coordinator() -> None:
    marker = ottla.build_control_batch(
        "commit", producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    assert validate_stored(marker, now_ms=NOW_MS, base_offset=3).accepted


@pytest.mark.parametrize("base_offset", [-(2**63), -1, 2**63 - 1])
def test_an_offset_that_no_log_has_counts_as_the_nearest_that_one_has(base_offset: int) -> None:
    verdict = validate_stored(KEYED, now_ms=NOW_MS, base_offset=base_offset)
    assert verdict.accepted
    assert 0 <= verdict.base_offset <= verdict.last_offset < 2**63


@given(st.binary(max_size=200), st.integers(0, len(KEYED)))
def test_no_stored_bytes_end_without_a_verdict(noise: bytes, cut: int) -> None:
    for data in (noise, KEYED[:cut] + noise):
        verdict = validate_stored(data, now_ms=NOW_MS, base_offset=0)
        assert verdict.accepted == (verdict.error == 0)


def test_bad_options_of_a_stored_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="profile is 'strict' or 'kafka'"):
        validate_stored(KEYED, now_ms=0, base_offset=0, profile="lenient")
    with pytest.raises(ValueError, match="now_ms"):
        validate_stored(KEYED, now_ms=2**63, base_offset=0)
    with pytest.raises(TypeError, match="bytes-like"):
        validate_stored(7, now_ms=0, base_offset=0)  # type: ignore[arg-type]


def test_a_leader_refuses_keywords_that_it_does_not_have() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'leader_epoc'"):
        ottla.Leader(leader_epoc=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'next_offset'"):
        ottla.Leader.restore(None, now_ms=0, next_offset=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="argument 'partition'"):
        ottla.Leader(partition="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leader_epoch is -1"):
        ottla.Leader(leader_epoch=-1)

"""The edges of offsets, sizes and sets, against a plain model of what Kafka decides there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.crafting import CODECS, batch, compress, entry, message, record, wrapper

NOW = 1_700_000_000_000
END_OF_OFFSETS = 2**63 - 1
INVALID_RECORD, TOO_LARGE, SET_TOO_LARGE, INTERNAL = 87, 10, 18, -1
Profile = Literal["kafka", "strict"]

codecs = st.sampled_from(CODECS)
targets = st.sampled_from(["producer", "uncompressed", *CODECS[1:]])
profiles: st.SearchStrategy[Profile] = st.sampled_from(["kafka", "strict"])
# Values at the edges of the buffers that streams fill.
sizes = st.lists(
    st.one_of(
        st.integers(0, 80),
        st.integers(2048 - 20, 2048 + 4),
        st.integers(16_384 - 20, 16_384 + 4),
    ),
    min_size=1,
    max_size=12,
)


@dataclass(frozen=True)
class Producer:
    """The producer's fields of a header."""

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1


producers = st.just(Producer()) | st.builds(
    Producer, st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**31 - 1)
)


def sent(sizes: list[int], codec: str, producer: Producer, base_offset: int = 0) -> bytes:
    payload = b"".join(record(at, key=b"k", value=b"v" * size) for at, size in enumerate(sizes))
    return batch(
        compress(codec, payload),
        count=len(sizes),
        codec=CODECS.index(codec),
        base_offset=base_offset,
        base_timestamp=NOW,
        max_timestamp=NOW,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
    )


def decided(records: bytes, config: dict[str, Any] | None = None, **request: Any) -> ottla.Verdict:
    settings = ottla.TopicConfig(**(config or {}))
    return ottla.validate(records, settings, now_ms=NOW, **request)


def is_kept(codec: str, target: str) -> bool:
    return target in ("producer", codec) or (target, codec) == ("uncompressed", "none")


def as_java_long(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@given(
    sizes=sizes,
    codec=codecs,
    target=targets,
    producer=producers,
    profile=profiles,
    below=st.integers(0, 20),
)
def test_offsets_near_the_end_of_64_bits_wrap_in_what_kafka_keeps_and_nowhere_else(
    *, sizes: list[int], codec: str, target: str, producer: Producer, profile: Profile, below: int
) -> None:
    base_offset = END_OF_OFFSETS - below
    last_offset = base_offset + len(sizes) - 1
    verdict = decided(
        sent(sizes, codec, producer),
        {"compression_type": target},
        base_offset=base_offset,
        profile=profile,
    )
    leaves = last_offset > END_OF_OFFSETS
    if not leaves or (profile == "kafka" and is_kept(codec, target)):
        assert verdict.error == 0
        assert verdict.base_offset == base_offset
        assert verdict.last_offset == as_java_long(last_offset)
        offsets = [r.offset for r in ottla.read(verdict.stored)]
        assert offsets == [as_java_long(base_offset + at) for at in range(len(sizes))]
    else:
        assert verdict.error == (INTERNAL if profile == "kafka" else INVALID_RECORD)
        culprits = [error.batch_index for error in verdict.record_errors]
        is_rebuilt = profile == "strict" and not is_kept(codec, target)
        assert culprits == (list(range(below + 1, len(sizes))) if is_rebuilt else [])


@given(
    sizes=sizes,
    codec=codecs,
    target=targets,
    profile=profiles,
    room=st.integers(-1, 1),
    edge=st.sampled_from(["max_message_bytes", "segment_bytes"]),
)
def test_a_batch_as_large_as_a_limit_is_accepted_and_one_byte_more_is_not(
    *, sizes: list[int], codec: str, target: str, profile: Profile, room: int, edge: str
) -> None:
    data = sent(sizes, codec, Producer())
    free = decided(data, {"compression_type": target}, profile=profile)
    assert free.error == 0
    limit = len(free.stored) + room
    # The size of a batch is compared as it was sent and, if it is rebuilt, as it is stored.
    too_large = room < 0 or (edge == "max_message_bytes" and len(data) > limit)
    verdict = decided(data, {"compression_type": target, edge: limit}, profile=profile)
    refusal = TOO_LARGE if edge == "max_message_bytes" else SET_TOO_LARGE
    assert verdict.error == (refusal if too_large else 0)


@given(
    batches=st.lists(st.tuples(sizes, codecs, producers), min_size=1, max_size=4),
    profile=profiles,
    by_log=st.booleans(),
)
def test_a_set_of_several_batches_is_refused_whoever_produced_them(
    batches: list[tuple[list[int], str, Producer]], profile: Profile, by_log: bool
) -> None:
    data = b"".join(sent(*parts) for parts in batches)
    request: dict[str, Any] = {"api_version": None} if by_log else {}
    verdict = decided(data, profile=profile, **request)
    assert verdict.error == (0 if len(batches) == 1 else INVALID_RECORD)
    assert verdict.record_errors == ()


@given(
    batches=st.lists(st.tuples(sizes, codecs), min_size=1, max_size=4),
    gaps=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    start=st.integers(0, 5),
    profile=profiles,
)
def test_a_follower_appends_several_batches_as_they_are(
    batches: list[tuple[list[int], str]], gaps: list[int], start: int, profile: Profile
) -> None:
    data, offset = b"", start
    for number, ((values, codec), gap) in enumerate(zip(batches, gaps, strict=False)):
        offset += gap
        data += sent(values, codec, Producer(number, 0, 0), offset)
        offset += len(values)
    verdict = decided(
        data,
        api_version=None,
        origin="replication",
        leader_epoch=9,
        base_offset=start,
        profile=profile,
    )
    assert (verdict.error, verdict.stored) == (0, data)
    assert (verdict.base_offset, verdict.last_offset) == (start + gaps[0], offset - 1)


@given(
    values=st.lists(st.integers(0, 300), min_size=1, max_size=220),
    magic=st.integers(0, 1),
    codec=st.sampled_from(CODECS[1:4]),
    target=targets,
    profile=profiles,
    base_offset=st.integers(0, 2**40),
)
def test_a_wrapper_of_many_records_is_taken_apart_whole(
    *,
    values: list[int],
    magic: int,
    codec: str,
    target: str,
    profile: Profile,
    base_offset: int,
) -> None:
    entries = b"".join(
        entry(at, message(magic, value=b"v" * size, timestamp=NOW))
        for at, size in enumerate(values)
    )
    data = wrapper(magic, codec, entries, offset=len(values) - 1, timestamp=NOW)
    verdict = decided(
        data,
        {"compression_type": target},
        api_version=None,
        base_offset=base_offset,
        profile=profile,
    )
    assert (verdict.error, verdict.is_rebuilt, verdict.converted) == (0, True, len(values))
    read = [(r.offset, len(r.value or b"")) for r in ottla.read(verdict.stored)]
    assert read == [(base_offset + at, size) for at, size in enumerate(values)]
    assert [len(r.value or b"") for r in ottla.read(data)] == values


@pytest.mark.parametrize("profile", ["kafka", "strict"])
def test_the_last_offset_of_all_can_be_given(profile: Profile) -> None:
    for target in ("producer", "gzip"):
        verdict = decided(
            sent([5], "none", Producer()),
            {"compression_type": target},
            base_offset=END_OF_OFFSETS,
            profile=profile,
        )
        assert (verdict.error, verdict.last_offset) == (0, END_OF_OFFSETS)

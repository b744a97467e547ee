"""Ordinary batches of producers take a short way; it leads where the long one does.

A request before Produce 7 always takes the long one, and nothing else differs where no batch is
compressed with zstd.
"""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.crafting import CODECS, batch, compress, record

NOW = 1_700_000_000_000
HOUR = 3_600_000

deltas = st.integers(-3, 3) | st.sampled_from([-2 * HOUR, -HOUR, HOUR, HOUR + 1, 2 * HOUR])
rows = st.lists(st.tuples(deltas, st.none() | st.just(b"k")), min_size=1, max_size=9)
configs = st.builds(
    ottla.TopicConfig,
    cleanup_policy=st.sampled_from(["delete", "compact"]),
    message_timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([0, HOUR, 2**63 - 1]),
)


def told(verdict: ottla.Verdict) -> dict[str, Any]:
    others = ("stored_parts", "raise_for_error")
    names = [name for name in dir(verdict) if not name.startswith("_") and name not in others]
    return {name: getattr(verdict, name) for name in names}


@given(
    rows=rows,
    codec=st.sampled_from([codec for codec in CODECS if codec != "zstd"]),
    base=st.sampled_from([NOW, NOW - HOUR, -1, 0]),
    above=st.sampled_from([0, 0, 1, HOUR]),
    config=configs,
    profile=st.sampled_from(["strict", "kafka"]),
)
def test_the_short_way_decides_as_the_long_one(
    *,
    rows: list[tuple[int, bytes | None]],
    codec: str,
    base: int,
    above: int,
    config: ottla.TopicConfig,
    profile: Any,
) -> None:
    payload = b"".join(
        record(index, timestamp_delta=delta, key=key, value=b"v")
        for index, (delta, key) in enumerate(rows)
    )
    data = batch(
        payload if codec == "none" else compress(codec, payload),
        count=len(rows),
        codec=CODECS.index(codec),
        base_timestamp=base,
        # The header's maximum need not be that of a record.
        max_timestamp=base + max(delta for delta, _ in rows) + above,
    )
    short, long = (
        ottla.validate(
            data,
            config,
            now_ms=NOW,
            api_version=version,
            base_offset=42,
            leader_epoch=3,
            profile=profile,
        )
        for version in (7, 6)
    )
    assert told(short) == told(long)
    assert short == long
    assert b"".join(short.stored_parts) == short.stored


def a_batch(first: int, value_bytes: int = 5, **fields: Any) -> bytes:
    rows = [ottla.NewRecord(value=bytes(value_bytes), timestamp=NOW)]
    return ottla.build_batch(rows, producer_id=7, producer_epoch=0, base_sequence=first, **fields)


@pytest.mark.parametrize("value_bytes", [5, 13_000, 40_000])
def test_a_kept_batch_is_stored_as_a_new_header_and_the_records_received(value_bytes: int) -> None:
    data = a_batch(0, value_bytes)
    verdict = ottla.validate(data, now_ms=NOW, base_offset=9, leader_epoch=4)
    header, records = verdict.stored_parts
    assert len(header) == 61
    if value_bytes < 4096:
        assert isinstance(records, bytes)
    else:
        assert isinstance(records, memoryview)
        assert records.obj is data
    assert records == data[61:]
    assert bytes(header) + bytes(records) == verdict.stored
    assert next(ottla.read_batches(verdict.stored)).base_offset == 9


def test_what_is_written_anew_is_stored_as_one_part() -> None:
    config = ottla.TopicConfig(compression_type="gzip")
    verdict = ottla.validate(a_batch(0), config, now_ms=NOW)
    assert verdict.is_rebuilt
    assert verdict.stored_parts == (verdict.stored,)


def test_a_follower_stores_what_it_received_as_one_part() -> None:
    leader = ottla.Leader()
    data = a_batch(0) + a_batch(1, base_offset=1)
    verdict = leader.append_as_follower(data, now_ms=NOW)
    assert verdict.stored_parts == (data,)
    assert verdict.stored is data
    cut = ottla.Leader().append_as_follower(data + b"\0" * 5, now_ms=NOW)
    assert cut.stored == data
    assert [bytes(part) for part in cut.stored_parts] == [data]


@pytest.mark.parametrize("refused", [False, True])
def test_where_nothing_is_appended_there_is_no_part(refused: bool) -> None:
    leader = ottla.Leader()
    leader.append(a_batch(0), now_ms=NOW)
    verdict = leader.append(a_batch(5 if refused else 0), now_ms=NOW)
    assert (verdict.accepted, verdict.is_duplicate) == (not refused, not refused)
    assert (verdict.stored_parts, verdict.stored) == ((), b"")
    assert verdict.metrics["TotalProduceRequestsPerSec"] == 1


def test_a_marker_is_counted_with_its_own_bytes() -> None:
    verdict = ottla.Leader().end_transaction(7, 0, coordinator_epoch=0, commit=True, now_ms=NOW)
    assert verdict.metrics["BytesInPerSec"] == len(verdict.stored) > 61
    assert verdict.stored_parts == (verdict.stored,)

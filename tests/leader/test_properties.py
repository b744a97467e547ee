"""What holds of every verdict, whatever is sent and whatever the topic asks."""

from __future__ import annotations

import struct

import ottla
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from records.crafting import CODECS, LOG_APPEND_TIME, batch, compress, record

NOW = 1_700_000_000_000
HOUR = 3_600_000

# Timestamps around the window of the default topic: older is right, an hour ahead is the edge.
times = st.sampled_from([-5 * HOUR, -1, 0, 1, HOUR, HOUR + 1])
configs = st.builds(
    ottla.TopicConfig,
    cleanup_policy=st.sampled_from(["delete", "compact"]),
    compression_type=st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
    message_timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([HOUR, 2**63 - 1]),
)
contents = st.lists(
    st.tuples(times, st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=70)),
    min_size=1,
    max_size=9,
)
Content = tuple[int, bytes | None, bytes | None]


def sent(rows: list[Content], codec: str = "none", deltas: list[int] | None = None) -> bytes:
    """Give a batch as a producer sends it; its offset deltas may be anything."""
    payload = b"".join(
        record(delta, timestamp_delta=time, key=key, value=value)
        for delta, (time, key, value) in zip(deltas or range(len(rows)), rows, strict=False)
    )
    return batch(
        payload if codec == "none" else compress(codec, payload),
        count=len(rows),
        codec=CODECS.index(codec),
        base_timestamp=NOW,
        max_timestamp=NOW + max(time for time, _, _ in rows),
    )


def rows_of(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(row.offset, row.timestamp, row.key, row.value) for row in ottla.read(data)]


@given(rows=contents, codec=st.sampled_from(CODECS), config=configs, offset=st.integers(0, 2**40))
def test_validating_stored_bytes_again_changes_nothing(
    rows: list[Content], codec: str, config: ottla.TopicConfig, offset: int
) -> None:
    first = ottla.validate(sent(rows, codec), config, now_ms=NOW, base_offset=offset)
    if not first.accepted:
        return
    # Only a leader gives offsets and says LogAppendTime: the bytes come without either, as sent.
    again = ottla.validate(as_sent(first.stored), config, now_ms=NOW, base_offset=offset)
    assert again.accepted
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert again.stored == first.stored
    assert not again.is_rebuilt


@given(
    rows=contents,
    codec=st.sampled_from(CODECS),
    config=configs,
    data=st.data(),
)
def test_what_strict_accepts_every_consumer_reads(
    rows: list[Content], codec: str, config: ottla.TopicConfig, data: st.DataObject
) -> None:
    whole = sent(rows, codec)
    position = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    # A checksum made right again lets the damage reach the rules.
    damaged[position] = data.draw(st.integers(0, 255))
    verdict = ottla.validate(resealed(bytes(damaged)), config, now_ms=NOW)
    if verdict.accepted:
        count = ottla.check_batches(verdict.stored, level="full")
        assert count == verdict.last_offset - verdict.base_offset + 1


def as_sent(data: bytes) -> bytes:
    """Give a stored batch with base offset 0 and without the flag that says LogAppendTime."""
    return resealed(bytes(8) + data[8:22] + bytes([data[22] & ~LOG_APPEND_TIME]) + data[23:])


def resealed(data: bytes) -> bytes:
    """Give a batch with the checksum that its bytes have."""
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


@given(
    rows=contents,
    codec=st.sampled_from(CODECS),
    config=configs,
    data=st.data(),
)
def test_without_the_culprits_the_rest_is_accepted(
    rows: list[Content], codec: str, config: ottla.TopicConfig, data: st.DataObject
) -> None:
    order = st.permutations(range(len(rows)))
    deltas = data.draw(st.one_of(st.just(list(range(len(rows)))), order))
    verdict = ottla.validate(sent(rows, codec, deltas), config, now_ms=NOW)
    culprits = [error.batch_index for error in verdict.record_errors]
    assert culprits == sorted(set(culprits))
    assert bool(culprits) != verdict.accepted
    rest = [row for index, row in enumerate(rows) if index not in culprits]
    if rest:
        again = ottla.validate(sent(rest, codec), config, now_ms=NOW)
        assert again.accepted
        assert [(key, value) for _, _, key, value in rows_of(again.stored)] == [
            (key, value) for _, key, value in rest
        ]

"""What holds of every verdict, whatever is sent and whatever the topic asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ottla
from hypothesis import given
from hypothesis import strategies as st
from records.crafting import (
    CODECS,
    LOG_APPEND_TIME,
    batch,
    compress,
    entry,
    message,
    record,
    resealed,
    wrapper,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000

# Timestamps around the window of the default topic: older is right, an hour ahead is the edge. The
# last one is none that a batch can be rebuilt with.
times = st.sampled_from([-5 * HOUR, -1, 0, 1, HOUR, HOUR + 1, -NOW - 5])
contents = st.lists(
    st.tuples(
        times,
        st.none() | st.binary(max_size=9),
        st.none() | st.binary(max_size=70),
        st.lists(
            st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=9)), max_size=3
        ).map(tuple),
    ),
    min_size=1,
    max_size=9,
)
Content = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


@dataclass(frozen=True)
class Shape:
    """How records become bytes: a format and a codec."""

    magic: int
    codec: str

    def sent(self, rows: list[Content], deltas: list[int] | None = None) -> bytes:
        """Return a record set as a producer sends it; offset deltas of magic 2 may be anything."""
        if self.magic == 2:
            payload = b"".join(
                record(delta, timestamp_delta=time, key=key, value=value, headers=headers)
                for delta, (time, key, value, headers) in zip(
                    deltas or range(len(rows)), rows, strict=True
                )
            )
            return batch(
                compress(self.codec, payload),
                count=len(rows),
                codec=CODECS.index(self.codec),
                base_timestamp=NOW,
                max_timestamp=NOW + max(row[0] for row in rows),
            )
        entries = b"".join(
            entry(index, message(self.magic, key=key, value=value, timestamp=NOW + time))
            for index, (time, key, value, _) in enumerate(rows)
        )
        if self.codec == "none":
            return entries
        latest = NOW + max(row[0] for row in rows)
        return wrapper(self.magic, self.codec, entries, offset=len(rows) - 1, timestamp=latest)


shapes = st.one_of(
    st.builds(Shape, st.just(2), st.sampled_from(CODECS)),
    st.builds(Shape, st.integers(0, 1), st.sampled_from(CODECS[:4])),
)
times_of_topics = st.sampled_from(["CreateTime", "LogAppendTime"])
configs = st.builds(
    ottla.TopicConfig,
    cleanup_policy=st.sampled_from(["delete", "compact"]),
    compression_type=st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
    message_timestamp_type=times_of_topics,
    message_timestamp_before_max_ms=st.sampled_from([HOUR, 2**63 - 1]),
)


def decided(records: bytes, shape: Shape, config: ottla.TopicConfig, **request: Any) -> Any:
    """Decide; older formats come without a request, as no Produce version carries them now."""
    version = 11 if shape.magic == 2 else None
    return ottla.validate(records, config, now_ms=NOW, api_version=version, **request)


def rows_of(data: bytes) -> list[tuple[bytes | None, bytes | None, Any]]:
    return [(row.key, row.value, tuple(row.raw_headers)) for row in ottla.read(data)]


def as_sent(data: bytes) -> bytes:
    """Return a stored batch with base offset 0 and without the flag that says LogAppendTime."""
    return resealed(bytes(8) + data[8:22] + bytes([data[22] & ~LOG_APPEND_TIME]) + data[23:])


@given(rows=contents, shape=shapes, config=configs, offset=st.integers(0, 2**40))
def test_validating_stored_bytes_again_changes_nothing(
    rows: list[Content], shape: Shape, config: ottla.TopicConfig, offset: int
) -> None:
    first = decided(shape.sent(rows), shape, config, base_offset=offset)
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
    codec=st.sampled_from(CODECS[:4]),
    is_compacted=st.booleans(),
    offset=st.integers(0, 2**40),
)
def test_a_log_of_magic_1_keeps_what_it_stored(
    rows: list[Content], codec: str, is_compacted: bool, offset: int
) -> None:
    policy = "compact" if is_compacted else "delete"
    config = ottla.TopicConfig(message_format_version="0.10.0", cleanup_policy=policy)
    shape = Shape(1, codec)
    first = decided(shape.sent(rows), shape, config, base_offset=offset)
    if first.accepted:
        # A producer counts a wrapper's records from 0.
        head = (len(rows) - 1).to_bytes(8, "big") if codec != "none" else first.stored[:8]
        again = decided(head + first.stored[8:], shape, config, base_offset=offset)
        assert (again.accepted, again.stored, again.is_rebuilt) == (True, first.stored, False)


@given(rows=contents, shape=shapes, config=configs, data=st.data())
def test_what_strict_accepts_every_consumer_reads(
    rows: list[Content], shape: Shape, config: ottla.TopicConfig, data: st.DataObject
) -> None:
    damaged = bytearray(shape.sent(rows))
    position = data.draw(st.integers(0, len(damaged) - 1))
    damaged[position] = data.draw(st.integers(0, 255))
    # A checksum made right again lets the damage reach the rules.
    verdict = decided(with_right_checksums(bytes(damaged)), shape, config)
    if verdict.accepted:
        count = ottla.check_batches(verdict.stored, level="full")
        assert count == len(rows_of(verdict.stored))
        # Without a gate, a set whose first size leads beyond it holds nothing to append.
        is_appended = verdict.base_offset >= 0
        assert count == is_appended * (verdict.last_offset - verdict.base_offset + 1)


def with_right_checksums(data: bytes) -> bytes:
    """Return the batches of a set with correct checksums, as far as their sizes lead."""
    whole = []
    while len(data) > 17 and 17 <= (end := 12 + int.from_bytes(data[8:12], "big")) <= len(data):
        whole.append(resealed(data[:end]))
        data = data[end:]
    return b"".join(whole) + data


@given(rows=contents, shape=shapes, config=configs, data=st.data())
def test_without_the_culprits_the_rest_is_accepted(
    rows: list[Content], shape: Shape, config: ottla.TopicConfig, data: st.DataObject
) -> None:
    # A magic 0 record holds no timestamp, and so none that can be wrong.
    order = st.permutations(range(len(rows)))
    deltas = data.draw(st.one_of(st.just(list(range(len(rows)))), order))
    verdict = decided(shape.sent(rows, deltas), shape, config)
    culprits = [error.batch_index for error in verdict.record_errors]
    assert culprits == sorted(set(culprits))
    assert bool(culprits) != verdict.accepted
    rest = [row for index, row in enumerate(rows) if index not in culprits]
    if rest:
        again = decided(shape.sent(rest), shape, config)
        assert again.accepted
        headers = [row[3] if shape.magic == 2 else () for row in rest]
        assert rows_of(again.stored) == [
            (row[1], row[2], held) for row, held in zip(rest, headers, strict=True)
        ]

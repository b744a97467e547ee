"""Which records `ottla read` was asked for, and what a log holds instead where there are none."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.cli.record_text import time_text
from ottla.logs.columns import BATCH_COLUMNS
from ottla.logs.reading import log_start_offset, partition_files, read_partition
from ottla.logs.segment import batch_chunks
from ottla.text import visible
from ottla.words import offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla import Record
    from ottla.cli.reading.sources import Source
    from ottla.logs.reading import Isolation, OnDamage, PartitionRecords

__all__ = ["MAX_TAIL", "Selection"]

MAX_TAIL = 10_000_000
"""Offsets of records that are held to find the first of the last ones."""

BASE_OFFSET, LAST_OFFSET, BASE_TIMESTAMP, MAX_TIMESTAMP = map(
    [column.name for column in BATCH_COLUMNS].index,
    ("base_offset", "last_offset", "base_timestamp", "max_timestamp"),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What records have to be, and how many are enough."""

    isolation: Isolation
    from_offset: int | None = None
    to_offset: int | None = None
    from_time: int | None = None
    """In ms since 1970; the timestamps of records decide, whatever their order."""
    to_time: int | None = None
    keys: frozenset[bytes] = frozenset()
    tail: int | None = None
    """How many of the last of a partition, among those that fit."""
    limit: int | None = None
    """How many in all."""

    @property
    def is_all(self) -> bool:
        """Whether no record of a log is left out."""
        return not (self.is_filtered or self.tail is not None) and (
            self.from_offset is None and self.to_offset is None
        )

    @property
    def is_filtered(self) -> bool:
        """Whether timestamps or keys decide."""
        return self.from_time is not None or self.to_time is not None or bool(self.keys)

    def records(
        self, source: Source, storage_options: dict[str, str], on_damage: OnDamage
    ) -> PartitionRecords:
        """The records of a partition from the first that may fit."""
        from_offset = self.from_offset
        if self.tail is not None:
            from_offset = self._tail_start(source, storage_options, self.tail)
        return self._read(source, storage_options, on_damage, from_offset)

    def fitting(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those of a partition's records that fit."""
        if not self.is_filtered:
            return iter(records)
        first = -(2**63) if self.from_time is None else self.from_time
        end = 2**63 if self.to_time is None else self.to_time
        keys = self.keys
        return (
            record
            for record in records
            if first <= record.timestamp < end and (not keys or record.key in keys)
        )

    def fitting_rows(self, batch: Any) -> Any:
        """The same of a record batch of pyarrow, as `PartitionRecords.batches` gives it."""
        if not self.is_filtered:
            return batch
        from functools import reduce

        import pyarrow as pa
        import pyarrow.compute as pc

        # A record without a timestamp has -1 in the log.
        times = batch.column("timestamp").cast(pa.int64()).fill_null(-1)
        wanted = []
        if self.from_time is not None:
            wanted.append(pc.greater_equal(times, self.from_time))
        if self.to_time is not None:
            wanted.append(pc.less(times, self.to_time))
        if self.keys:
            keys = pa.array(self.keys, pa.binary())
            wanted.append(pc.is_in(batch.column("key"), value_set=keys))
        return batch.filter(reduce(pc.and_, wanted))

    def _read(
        self,
        source: Source,
        storage_options: dict[str, str],
        on_damage: OnDamage,
        from_offset: int | None,
    ) -> PartitionRecords:
        return read_partition(
            source.path,
            isolation=self.isolation,
            from_offset=from_offset,
            to_offset=self.to_offset,
            on_damage=on_damage,
            storage_options=storage_options,
        )

    def _tail_start(self, source: Source, storage_options: dict[str, str], tail: int) -> int | None:
        """Returns the offset of the last so many that fit, or the first one to read.

        Segments are looked at from the last one on, each time twice as many, since nothing tells
        how many of the records in a segment are wanted.
        """
        bases = [base for base, _ in partition_files(source.path, storage_options)]
        back = 1
        while True:
            start = bases[-back] if back < len(bases) else None
            if start is None or (self.from_offset is not None and start < self.from_offset):
                start = self.from_offset
            records = self._read(source, storage_options, _pass_over, start)
            found = deque((record.offset for record in self.fitting(records)), maxlen=tail)
            if len(found) == tail:
                return found[0]
            if start == self.from_offset:
                return start
            back *= 2

    def missed(self, source: Source, storage_options: dict[str, str]) -> str:
        """What to say where no record of a partition fits: what was asked for and what is there."""
        there = _extent(source, storage_options)
        asked = self._in_words()
        return f"{source.name}: no {asked}; {there}"

    def _in_words(self) -> str:
        words = ["committed record" if self.isolation == "read_committed" else "record"]
        first, end = self.from_offset, self.to_offset
        if first is not None and end is not None and first < end:
            words.append(f"at {offsets(first, end - 1)}")
        elif first is not None and end is not None:
            words.append(f"from offset {first} on and below offset {end}")
        elif first is not None:
            words.append(f"from offset {first} on")
        elif end is not None:
            words.append(f"below offset {end}")
        if self.from_time is not None:
            words.append(f"of {time_text(self.from_time)} or later")
        if self.to_time is not None:
            words.append(f"of before {time_text(self.to_time)}")
        if self.keys:
            keys = " or ".join(f'"{visible(os.fsdecode(key))}"' for key in sorted(self.keys))
            words.append(f"with the key {keys}")
        return " ".join(words)


def _pass_over(_damage: object) -> None:
    """Damage is told when records are read for good."""


def _extent(source: Source, storage_options: dict[str, str]) -> str:
    """What a log holds, by its first batch and its last."""
    start = log_start_offset(source.path, storage_options)
    places = [place for _, place in partition_files(source.path, storage_options)]
    batches = (row for place in places for chunk in batch_chunks(place) for row in chunk)
    first = next((row for row in batches if row[LAST_OFFSET] >= start), None)
    if first is None:
        return (
            f"the log holds none from its start, offset {start}, on"
            if start
            else "the log holds no batch"
        )
    last = first
    for place in reversed(places):
        in_segment = deque((chunk[-1] for chunk in batch_chunks(place) if chunk), maxlen=1)
        if in_segment:
            last = in_segment[0]
            break
    held = offsets(max(first[BASE_OFFSET], start), last[LAST_OFFSET])
    times = f"{time_text(first[BASE_TIMESTAMP])} to {time_text(last[MAX_TIMESTAMP])}"
    return f"the log holds {held}, written from {times}"

"""A partition's log as a broker keeps it, around `ottla.Leader`: segments and snapshots in memory.

Everything a leader decides comes from `Leader`; here is what Kafka's storage does around it: when a
snapshot of the producers is taken, which one is loaded, what is read again behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ottla


class StoredBatch(NamedTuple):
    """A batch in a segment."""

    base_offset: int
    last_offset: int
    data: bytes


@dataclass
class Segment:
    """A segment file."""

    base_offset: int
    batches: list[StoredBatch] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        return b"".join(batch.data for batch in self.batches)

    @property
    def next_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset


class BrokerLog:
    """The log of one partition, on a broker that may stop."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.leader = ottla.Leader(**settings)
        self.segments = [Segment(0)]
        self.snapshots: dict[int, bytes] = {}
        self.last_snapshot = 0

    def store(self, verdict: ottla.Verdict) -> None:
        """Write what a verdict says is to be stored."""
        for batch in ottla.read_batches(verdict.stored or b""):
            stored = (verdict.stored or b"")[batch.position : batch.position + batch.size]
            self.segments[-1].batches.append(
                StoredBatch(batch.base_offset, batch.last_offset, stored)
            )

    def roll(self) -> None:
        """Begin a new segment, with a snapshot of what was known before it."""
        if self.segments[-1].batches:
            self.segments.append(Segment(self.leader.log_end_offset))
        self._take_snapshot(self.leader)

    def delete_records(self, offset: int) -> None:
        """Move the log start up."""
        self.leader.delete_records(offset, batch_base_offset=self._batch_at(offset))
        self.last_snapshot = max(self.snapshots, default=self.leader.log_start_offset)

    def truncate(self, offset: int, now_ms: int) -> None:
        """Cut the log at an offset."""
        leader = self.leader
        if offset >= leader.log_end_offset:
            return
        for segment in self.segments:
            segment.batches = [batch for batch in segment.batches if batch.last_offset < offset]
            if segment.base_offset > offset:
                self.snapshots.pop(segment.base_offset, None)
        self.segments = [segment for segment in self.segments if segment.base_offset <= offset]
        log_start_offset = min(offset, leader.log_start_offset)
        self._drop_snapshots(log_start_offset, offset)
        start = self._newest_snapshot(log_start_offset)
        knows_producers = bool(leader.producers) or leader.producer_end_offset < offset
        if knows_producers:
            self._snapshots_on_the_way(start, log_start_offset, offset, now_ms)
        leader.truncate(
            offset,
            self.snapshots.get(start),
            [segment.data for segment in self._segments_from(start)],
            snapshot_offset=start,
            now_ms=now_ms,
        )
        self.last_snapshot = max(self.snapshots, default=log_start_offset)
        self._take_snapshot(leader)

    def restart(self, now_ms: int, *, is_clean: bool) -> None:
        """Close the log and open it again."""
        before = self.leader
        self._take_snapshot(before)
        # The vectors' broker reads the log from its beginning and is told the log start afterwards.
        log_start_offset = 0
        aborted = list(before.aborted_transactions)
        if not is_clean:
            aborted = []
            for index in range(len(self.segments)):
                aborted = self._recover(index, aborted, log_start_offset, now_ms)
        end = self.segments[-1].next_offset
        self._drop_stray_snapshots()
        if not self.snapshots and is_clean:
            # No snapshot and a clean stop: Kafka takes it that there never was a producer.
            bases = [segment.base_offset for segment in self.segments[-2:]]
            nobody = ottla.Leader(**self.settings).snapshot()
            self.snapshots.update({offset: nobody for offset in (*bases, end) if offset > 0})
            start = max(self.snapshots, default=0)
        else:
            self._drop_snapshots(log_start_offset, end)
            start = self._newest_snapshot(log_start_offset)
            self._snapshots_on_the_way(start, log_start_offset, end, now_ms)
        self.leader = self._load(
            start,
            end,
            now_ms,
            log_start_offset=log_start_offset,
            high_watermark=min(before.high_watermark, end),
            aborted_transactions=aborted,
        )
        self.last_snapshot = max(self.snapshots, default=log_start_offset)
        self._take_snapshot(self.leader)
        self.delete_records(before.log_start_offset)

    def _recover(
        self,
        index: int,
        aborted: list[ottla.AbortedTransaction],
        log_start_offset: int,
        now_ms: int,
    ) -> list[ottla.AbortedTransaction]:
        """Read a segment again after an unclean stop: gives the aborted transactions up to it."""
        segment = self.segments[index]
        base = segment.base_offset
        self._drop_snapshots(log_start_offset, base)
        start = self._newest_snapshot(log_start_offset)
        known = self._load(start, base, now_ms, log_start_offset=min(log_start_offset, base))
        recovered = ottla.Leader.restore(
            known.snapshot(),
            segment.data,
            snapshot_offset=base,
            is_recovery=True,
            aborted_transactions=aborted,
            now_ms=now_ms,
            **self.settings,
        )
        self.last_snapshot = max(self.snapshots, default=log_start_offset)
        self._take_snapshot(known, base)
        self._take_snapshot(recovered)
        return list(recovered.aborted_transactions)

    def _load(self, start: int, end: int, now_ms: int, **offsets: Any) -> ottla.Leader:
        """Return a leader with the state of a snapshot and of the batches from there to `end`."""
        return ottla.Leader.restore(
            self.snapshots.get(start),
            [segment.data for segment in self._segments_from(start)],
            snapshot_offset=start,
            log_end_offset=end,
            now_ms=now_ms,
            **offsets,
            **self.settings,
        )

    def _snapshots_on_the_way(
        self, start: int, log_start_offset: int, end: int, now_ms: int
    ) -> None:
        """Take the snapshots of segment starts that reading from `start` to `end` passes."""
        last = self.segments[-2:]
        self.last_snapshot = start if start in self.snapshots else log_start_offset
        for segment in last:
            base = segment.base_offset
            if start < base < end:
                state = self._load(start, base, now_ms, log_start_offset=log_start_offset)
                self._take_snapshot(state, base)

    def _take_snapshot(self, leader: ottla.Leader, offset: int | None = None) -> None:
        offset = leader.producer_end_offset if offset is None else offset
        if offset > self.last_snapshot:
            self.snapshots[offset] = leader.snapshot()
            self.last_snapshot = offset

    def _drop_snapshots(self, log_start_offset: int, end: int) -> None:
        self.snapshots = {
            offset: data
            for offset, data in self.snapshots.items()
            if log_start_offset < offset <= end
        }

    def _drop_stray_snapshots(self) -> None:
        """Keep the snapshots of segment starts, and the newest other one if it is above all."""
        bases = {segment.base_offset for segment in self.segments}
        strays = [offset for offset in self.snapshots if offset not in bases]
        newest = max(strays, default=-1)
        for offset in strays:
            if offset != newest or newest < max(bases):
                del self.snapshots[offset]

    def _newest_snapshot(self, log_start_offset: int) -> int:
        return max(self.snapshots, default=log_start_offset)

    def _segments_from(self, start: int) -> list[Segment]:
        floor = max((s.base_offset for s in self.segments if s.base_offset <= start), default=0)
        return [segment for segment in self.segments if segment.base_offset >= floor]

    def _batch_at(self, offset: int) -> int:
        """Where a read from an offset begins."""
        for segment in self.segments:
            for batch in segment.batches:
                if batch.last_offset >= offset:
                    return batch.base_offset
        return self.leader.log_end_offset

"""What a consumer gets of a Fetch answer, record by record, as Java's `CompletedFetch` does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import ottla
from ottla.errors import RecordBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NaiveFetched", "naive_fetched"]

ABORT = 0

Given = tuple[int, int, str, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


class NaiveFetched(NamedTuple):
    """Records, position and leader epoch behind them, and the kind of what is wrong there."""

    records: list[Given]
    position: int
    leader_epoch: int
    fault: str | None


def naive_fetched(
    data: bytes, position: int, aborted: Sequence[tuple[int, int]], *, check_crcs: bool = True
) -> NaiveFetched:
    """Goes through the answer record by record."""
    given: list[Given] = []
    queue = sorted(aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    epoch, begin = -1, position
    batches = ottla.read_batches(data)
    try:
        for batch in batches:
            begin = position
            if check_crcs:
                batch.verify()
            withheld = False
            if batch.producer_id >= 0:
                while queue and queue[0][1] <= batch.last_offset:
                    aborting.add(queue.pop(0)[0])
                if batch.is_control and (aborting or queue) and is_abort(batch):
                    aborting.discard(batch.producer_id)
                withheld = batch.is_transactional and batch.producer_id in aborting
            if not batch.is_control and not withheld and batch.last_offset >= position:
                for record in [*batch.records()]:
                    if record.offset >= position:
                        given.append(row_of(batch, record))
                        position = record.offset + 1
            position = max(position, batch.last_offset + 1)
            epoch = batch.partition_leader_epoch
    except RecordBatchError as error:
        return NaiveFetched(given, max(position, begin), epoch, error.kind)
    return NaiveFetched(given, position, epoch, None)


def is_abort(batch: ottla.RecordBatch) -> bool:
    """Whether the first record of a control batch, if there is one, is an abort marker."""
    for record in batch.records():
        if record.key is None or len(record.key) < 4 or record.key[:1] >= b"\x80":
            raise RecordBatchError("no control record", "control-key")
        return int.from_bytes(record.key[2:4], "big", signed=True) == ABORT
    return False


def row_of(batch: ottla.RecordBatch, record: ottla.Record) -> Given:
    return (
        record.offset,
        record.timestamp,
        batch.timestamp_type,
        record.key,
        record.value,
        tuple(record.headers),
        batch.partition_leader_epoch,
    )

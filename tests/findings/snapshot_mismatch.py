"""A producer snapshot with an earlier sequence than the log before it."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import TIMESTAMP, segment_name
from support.small_log import (
    PARTITION,
    SnapshotEntry,
    producer_batches,
    producer_snapshot,
    write_orders,
)

SNAPSHOT = f"{PARTITION}/{segment_name(9, 'snapshot')}"


def write(directory: Path, last_sequence: int) -> None:
    write_orders(directory, first=producer_batches(0, 3, 6))
    entry = SnapshotEntry(
        producer_id=7,
        producer_epoch=0,
        last_sequence=last_sequence,
        last_offset=8,
        offset_delta=2,
        timestamp=TIMESTAMP + 8,
    )
    (directory / SNAPSHOT).write_bytes(producer_snapshot([entry]))


def clean(directory: Path) -> None:
    write(directory, last_sequence=8)


def broken(directory: Path) -> None:
    write(directory, last_sequence=5)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("snapshot-mismatch", "warning", SNAPSHOT, position=10, offsets=(8, 8))],
)

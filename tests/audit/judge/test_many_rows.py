"""Tables of a partition with more rows than are made at a time."""

from pathlib import Path

import ottla
from support.logs import TIMESTAMP, segment_name

PIECE_ROWS = 1024
"""Rows of a table that the engine unpacks at a time."""

RECORD = [ottla.NewRecord(value=b"v", timestamp=TIMESTAMP)]


def produced(offset: int, producer: int) -> bytes:
    return ottla.build_batch(
        RECORD,
        base_offset=offset,
        partition_leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=producer % 2 == 1,
    )


def audited(partition: Path, count: int) -> ottla.AuditResult:
    """Producers of falling ids, every other one in a transaction that stays open."""
    partition.mkdir(parents=True)
    data = b"".join(produced(offset, count - offset) for offset in range(count))
    (partition / segment_name(0)).write_bytes(data)
    return ottla.audit(partition.parent)


def test_rows_beyond_a_piece_are_all_there_in_the_order_of_the_table(tmp_path: Path) -> None:
    for count in (2 * PIECE_ROWS, 2 * PIECE_ROWS + 3):
        result = audited(tmp_path / f"{count}" / "orders-0", count)
        producers = [row["producer_id"] for row in result.producers]
        assert producers == list(range(1, count + 1))
        transactions = [
            (row["first_offset"], row["producer_id"], row["state"]) for row in result.transactions
        ]
        odd = ((offset, count - offset) for offset in range(count))
        assert transactions == [(*pair, "open") for pair in odd if pair[1] % 2 == 1]

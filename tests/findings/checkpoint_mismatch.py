"""A high watermark beyond the end of the log."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import LOG_END_OFFSET, PARTITION, write_checkpoint, write_orders

HIGH_WATERMARKS = "replication-offset-checkpoint"


def broken(directory: Path) -> None:
    write_orders(directory)
    write_checkpoint(directory / HIGH_WATERMARKS, {PARTITION: LOG_END_OFFSET + 2})


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("checkpoint-mismatch", "error", HIGH_WATERMARKS, offsets=(18, 19))],
)

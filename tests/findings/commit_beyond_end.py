"""A group that has committed an offset beyond the end of the log."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import LOG_END_OFFSET, PARTITION, write_committed_offset, write_orders


def clean(directory: Path) -> None:
    write_orders(directory)
    write_committed_offset(directory, LOG_END_OFFSET)


def broken(directory: Path) -> None:
    write_orders(directory)
    write_committed_offset(directory, LOG_END_OFFSET + 1)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("commit-beyond-end", "warning", PARTITION, offsets=(19, 19))],
)

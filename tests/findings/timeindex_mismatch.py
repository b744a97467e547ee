"""A .timeindex whose second timestamp is a millisecond too early."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import TIMESTAMP, segment_name
from support.small_log import PARTITION, time_index, write_orders

TIME_INDEX = f"{PARTITION}/{segment_name(0, 'timeindex')}"


def clean(directory: Path) -> None:
    write_orders(directory)
    (directory / TIME_INDEX).write_bytes(time_index((TIMESTAMP + 5, 5), (TIMESTAMP + 8, 8)))


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / TIME_INDEX).write_bytes(time_index((TIMESTAMP + 5, 5), (TIMESTAMP + 7, 8)))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("timeindex-mismatch", "warning", TIME_INDEX, position=12, offsets=(8, 8))],
)

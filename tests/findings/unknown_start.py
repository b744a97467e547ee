"""A producer that begins with sequence 5, in a log that begins with offset 0."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, producer_batches, write_orders


def clean(directory: Path) -> None:
    write_orders(directory, first=producer_batches(0, 3, 6))


def broken(directory: Path) -> None:
    write_orders(directory, first=producer_batches(5, 8, 11))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("unknown-start", "info", FIRST_LOG, position=0, offsets=(0, 2))],
)

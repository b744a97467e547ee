"""Bytes after the last batch of a closed segment that are no batch."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[*FIRST, b"not a batch"])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("garbage-tail", "error", FIRST_LOG, position=3 * SIZE)],
)

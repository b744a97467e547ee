"""A closed segment with preallocated bytes that were never trimmed."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[*FIRST, bytes(4096)])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("zero-tail", "info", FIRST_LOG, position=3 * SIZE)],
)

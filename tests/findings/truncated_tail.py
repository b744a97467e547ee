"""A closed segment that ends inside its last batch."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[*FIRST[:2], FIRST[2][:-10]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("truncated-tail", "error", FIRST_LOG, position=2 * SIZE, offsets=(6, 8))],
)

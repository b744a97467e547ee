"""A batch that was written twice."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[FIRST[0], FIRST[1], FIRST[1], FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("offset-repeat", "error", FIRST_LOG, position=2 * SIZE, offsets=(3, 5))],
)

"""A batch removed from the middle of a segment; the next one follows where it was."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[FIRST[0], FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("offset-gap", "warning", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

"""The second record of a batch has the offset delta of the first; the checksum is right."""

from pathlib import Path

from records.crafting import HEADER_SIZE, patched
from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders

# Three records of one size; length, attributes and timestamp delta take a byte each.
SECOND_RECORD = HEADER_SIZE + (SIZE - HEADER_SIZE) // 3
OFFSET_DELTA = 3


def broken(directory: Path) -> None:
    repeated = patched(FIRST[1], SECOND_RECORD + OFFSET_DELTA, b"\0")
    write_orders(directory, first=[FIRST[0], repeated, FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("record-fault", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

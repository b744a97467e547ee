"""Attributes that say gzip over records that are not compressed; the checksum is right."""

from pathlib import Path

from records.crafting import patched
from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders


def broken(directory: Path) -> None:
    gzip = patched(FIRST[1], 22, b"\x01")
    write_orders(directory, first=[FIRST[0], gzip, FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("undecodable", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

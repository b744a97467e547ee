"""A flipped bit in a base offset, which the checksum does not cover: 259 instead of 3."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, batch, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[FIRST[0], batch(3 + 256), FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("base-offset-wrong", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

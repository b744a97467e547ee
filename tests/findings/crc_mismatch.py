"""A byte of a value changed after the producer took the checksum."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, overwrite, write_orders


def broken(directory: Path) -> None:
    write_orders(directory)
    overwrite(directory / FIRST_LOG, 2 * SIZE - 2, b"!")


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("crc-mismatch", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

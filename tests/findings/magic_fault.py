"""A magic byte, which the checksum does not cover, changed to 3."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, overwrite, write_orders


def broken(directory: Path) -> None:
    write_orders(directory)
    overwrite(directory / FIRST_LOG, SIZE + 16, b"\x03")


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("magic-fault", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

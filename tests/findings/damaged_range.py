"""Foreign bytes in the place of a whole batch."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, overwrite, write_orders


def broken(directory: Path) -> None:
    write_orders(directory)
    overwrite(directory / FIRST_LOG, SIZE, b"\xaa" * SIZE)


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("damaged-range", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

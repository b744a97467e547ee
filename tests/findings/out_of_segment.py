"""A segment that begins with a batch below the offset it is named for."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import SECOND, SECOND_LOG, batch, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, second=[batch(6), *SECOND])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("out-of-segment", "error", SECOND_LOG, position=0, offsets=(6, 8))],
)

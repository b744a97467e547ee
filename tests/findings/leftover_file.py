"""The unfinished output of a compaction that was interrupted."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, write_orders

CLEANED = f"{FIRST_LOG}.cleaned"


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / CLEANED).write_bytes(FIRST[0])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("leftover-file", "info", CLEANED)],
)

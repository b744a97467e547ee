"""A symbolic link to itself in the place of a segment."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, write_orders


def broken(directory: Path) -> None:
    write_orders(directory)
    path = directory / FIRST_LOG
    path.unlink()
    path.symlink_to(path)


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("unreadable", "error", FIRST_LOG)],
)

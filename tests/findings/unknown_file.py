"""A note that somebody left next to the segments."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import PARTITION, write_orders

NOTE = f"{PARTITION}/README.txt"


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / NOTE).write_text("do not delete\n")


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("unknown-file", "info", NOTE)],
)

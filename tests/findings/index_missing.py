"""A segment whose .index was deleted."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, write_orders


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / FIRST_LOG).with_suffix(".index").unlink()


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("index-missing", "info", FIRST_LOG)],
)

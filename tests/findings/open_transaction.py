"""A transaction without an end marker."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, batch, marker, write_orders

DATA = batch(0, producer_id=7, is_transactional=True)


def clean(directory: Path) -> None:
    write_orders(directory, first=[DATA, marker("commit", 3, producer_id=7), batch(4, 5)])


def broken(directory: Path) -> None:
    write_orders(directory, first=[DATA, batch(3, 1), batch(4, 5)])


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("open-transaction", "info", FIRST_LOG, position=0, offsets=(0, 2))],
)

"""A producer that writes plain data inside its own transaction."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, batch, marker, write_orders


def write(directory: Path, *, is_transactional: bool) -> None:
    """Write a transaction of two batches, the second of them transactional or not."""
    begin = batch(0, producer_id=7, is_transactional=True)
    more = batch(3, producer_id=7, base_sequence=3, is_transactional=is_transactional)
    end = marker("commit", 6, producer_id=7)
    write_orders(directory, first=[begin, more, end, batch(7, 2)])


def clean(directory: Path) -> None:
    write(directory, is_transactional=True)


def broken(directory: Path) -> None:
    write(directory, is_transactional=False)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("transaction-fault", "error", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

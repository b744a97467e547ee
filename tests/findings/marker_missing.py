"""A transaction of which the coordinator wrote no marker, and the next one of its producer."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, batch, marker, write_orders

# With a new epoch for each transaction, as of KIP-890; the marker has that of the next one.
FIRST = batch(0, producer_id=7, producer_epoch=4, is_transactional=True)
SECOND = batch(4, 2, producer_id=7, producer_epoch=5, is_transactional=True)


def clean(directory: Path) -> None:
    ends = [
        marker("commit", 3, producer_id=7, producer_epoch=5),
        marker("commit", 6, producer_id=7, producer_epoch=6),
    ]
    write_orders(directory, first=[FIRST, ends[0], SECOND, ends[1], batch(7, 2)])


def broken(directory: Path) -> None:
    second = batch(3, producer_id=7, producer_epoch=5, is_transactional=True)
    end = marker("commit", 6, producer_id=7, producer_epoch=6)
    write_orders(directory, first=[FIRST, second, end, batch(7, 2)])


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("marker-missing", "error", FIRST_LOG, position=0, offsets=(0, 2))],
)

"""A retry that the broker took for new: the same sequences under other offsets."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, producer_batches, write_orders


def clean(directory: Path) -> None:
    write_orders(directory, first=producer_batches(0, 3, 6))


def broken(directory: Path) -> None:
    write_orders(directory, first=producer_batches(0, 3, 3))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("sequence-repeat", "warning", FIRST_LOG, position=2 * SIZE, offsets=(6, 8))],
)

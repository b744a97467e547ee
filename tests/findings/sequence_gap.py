"""Two sequences of a producer are missing where no offset is."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, producer_batches, write_orders


def clean(directory: Path) -> None:
    write_orders(directory, first=producer_batches(0, 3, 6))


def broken(directory: Path) -> None:
    write_orders(directory, first=producer_batches(0, 3, 8))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("sequence-gap", "warning", FIRST_LOG, position=2 * SIZE, offsets=(6, 8))],
)

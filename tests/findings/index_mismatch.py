"""An .index whose second entry points one byte into a batch."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import segment_name
from support.small_log import PARTITION, SIZE, offset_index, write_orders

INDEX = f"{PARTITION}/{segment_name(0, 'index')}"


def clean(directory: Path) -> None:
    write_orders(directory)
    (directory / INDEX).write_bytes(offset_index((5, SIZE), (8, 2 * SIZE)))


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / INDEX).write_bytes(offset_index((5, SIZE), (8, 2 * SIZE + 1)))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("index-mismatch", "warning", INDEX, position=8, offsets=(8, 8))],
)

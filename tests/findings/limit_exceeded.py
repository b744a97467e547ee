"""A batch of a few kilobytes that inflates to 18 MiB, more than the bound."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import TIMESTAMP
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders

from benches.data import encode_batch


def write(directory: Path, value_size: int) -> None:
    records = [(TIMESTAMP + offset, b"key", bytes(value_size), ()) for offset in (3, 4, 5)]
    compressed = encode_batch(records, base_offset=3, compression="zstd")
    write_orders(directory, first=[FIRST[0], compressed, FIRST[2]])


def clean(directory: Path) -> None:
    write(directory, value_size=4 << 20)


def broken(directory: Path) -> None:
    write(directory, value_size=6 << 20)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("limit-exceeded", "warning", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

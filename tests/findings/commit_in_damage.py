"""A group that would go on reading inside a batch with a wrong checksum."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import (
    FIRST_LOG,
    PARTITION,
    SIZE,
    overwrite,
    write_committed_offset,
    write_orders,
)


def clean(directory: Path) -> None:
    write_orders(directory)
    write_committed_offset(directory, 4)


def broken(directory: Path) -> None:
    clean(directory)
    overwrite(directory / FIRST_LOG, 2 * SIZE - 2, b"!")


CASE = Case(
    clean=clean,
    broken=broken,
    found=[
        Found("commit-in-damage", "warning", PARTITION, offsets=(4, 4)),
        Found("crc-mismatch", "error", FIRST_LOG, position=SIZE, offsets=(3, 5)),
    ],
)

"""Two log directories of one broker with the same partition."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import PARTITION, write_orders

SECOND_COPY = f"disk-2/{PARTITION}"


def clean(directory: Path) -> None:
    broken(directory)
    (directory / SECOND_COPY).rename(directory / "disk-2" / "orders-1")


def broken(directory: Path) -> None:
    for disk in ("disk-1", "disk-2"):
        write_orders(directory / disk)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("duplicate-partition", "warning", SECOND_COPY)],
)

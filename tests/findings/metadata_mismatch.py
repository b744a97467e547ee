"""A partition with another topic id than the two others of its topic."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import TOPIC_ID, write_partition
from support.small_log import batch, write_orders

METADATA = "orders-2/partition.metadata"


def write(directory: Path, topic_id: str) -> None:
    write_orders(directory)
    write_partition(directory / "orders-1", {0: batch(0)})
    write_partition(directory / "orders-2", {0: batch(0)}, topic_id=topic_id)


def clean(directory: Path) -> None:
    write(directory, topic_id=TOPIC_ID)


def broken(directory: Path) -> None:
    write(directory, topic_id="Cw7YOpSrRK6fWBUV4XmPLw")


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("metadata-mismatch", "warning", METADATA, topic_partition="orders-2")],
)

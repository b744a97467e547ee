"""A record of a type that no release of Kafka writes to the coordinator's topic."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import write_committed_offset, write_orders

OFFSETS = "__consumer_offsets-0"


def clean(directory: Path) -> None:
    write_orders(directory)
    write_committed_offset(directory, 4)


def broken(directory: Path) -> None:
    write_orders(directory)
    write_committed_offset(directory, 4, record_type=99)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[
        Found("undecoded-record", "info", OFFSETS, topic_partition=OFFSETS, offsets=(0, None)),
    ],
)

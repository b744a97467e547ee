"""A segment that zeros make larger than any that Kafka opens, as a hole of a sparse file."""

import os
from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, write_orders

MAX_SEGMENT_BYTES = 2**31 - 1


def broken(directory: Path) -> None:
    write_orders(directory)
    os.truncate(directory / FIRST_LOG, MAX_SEGMENT_BYTES + 1)


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[
        Found("zero-tail", "info", FIRST_LOG, position=3 * SIZE),
        Found("oversized-segment", "error", FIRST_LOG, position=MAX_SEGMENT_BYTES),
    ],
)

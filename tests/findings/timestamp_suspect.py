"""A producer that sends seconds instead of milliseconds."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import TIMESTAMP
from support.small_log import FIRST, FIRST_LOG, SIZE, batch, write_orders


def broken(directory: Path) -> None:
    seconds = batch(3, timestamp=TIMESTAMP // 1000)
    write_orders(directory, first=[FIRST[0], seconds, FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("timestamp-suspect", "warning", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

"""A log start offset in the middle of a log whose first leader epoch begins with it."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, PARTITION, write_checkpoint, write_orders

LOG_START_OFFSETS = "log-start-offset-checkpoint"


def broken(directory: Path) -> None:
    write_orders(directory)
    (directory / PARTITION / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    write_checkpoint(directory / LOG_START_OFFSETS, {PARTITION: 9})


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("unexplained-log-start", "warning", FIRST_LOG, offsets=(0, 8))],
)

"""A group that has committed an offset whose record is deleted."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import PARTITION, write_checkpoint, write_committed_offset, write_orders


def write(directory: Path, committed: int) -> None:
    write_orders(directory)
    write_checkpoint(directory / "log-start-offset-checkpoint", {PARTITION: 6})
    (directory / PARTITION / "leader-epoch-checkpoint").write_text("0\n1\n0 6\n")
    write_committed_offset(directory, committed)


def clean(directory: Path) -> None:
    write(directory, committed=6)


def broken(directory: Path) -> None:
    write(directory, committed=5)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("commit-below-start", "info", PARTITION, offsets=(5, 5))],
)

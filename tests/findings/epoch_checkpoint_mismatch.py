"""A leader-epoch-checkpoint in which epoch 1 begins at offset 6; in the log it begins at 9."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import PARTITION, batch, write_orders

LEADER_EPOCHS = f"{PARTITION}/leader-epoch-checkpoint"


def write(directory: Path, start_offset: int) -> None:
    write_orders(directory, second=[batch(at, partition_leader_epoch=1) for at in (9, 12, 15)])
    (directory / LEADER_EPOCHS).write_text(f"0\n2\n0 0\n1 {start_offset}\n")


def clean(directory: Path) -> None:
    write(directory, start_offset=9)


def broken(directory: Path) -> None:
    write(directory, start_offset=6)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("epoch-checkpoint-mismatch", "warning", LEADER_EPOCHS, offsets=(6, 8))],
)

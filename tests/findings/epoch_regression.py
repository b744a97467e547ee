"""A zombie: batches of producer epoch 0 after one of epoch 1."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST_LOG, SIZE, batch, write_orders


def write(directory: Path, last: bytes) -> None:
    old, new = (batch(3 * epoch, producer_id=7, producer_epoch=epoch) for epoch in (0, 1))
    write_orders(directory, first=[old, new, last])


def clean(directory: Path) -> None:
    write(directory, last=batch(6, producer_id=7, producer_epoch=1, base_sequence=3))


def broken(directory: Path) -> None:
    write(directory, last=batch(6, producer_id=7, producer_epoch=0, base_sequence=3))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("epoch-regression", "warning", FIRST_LOG, position=2 * SIZE, offsets=(6, 8))],
)

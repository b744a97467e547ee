"""One batch with a later leader epoch than its neighbours."""

from pathlib import Path

from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, batch, write_orders


def broken(directory: Path) -> None:
    write_orders(directory, first=[FIRST[0], batch(3, partition_leader_epoch=4), FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("leader-epoch-fault", "warning", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

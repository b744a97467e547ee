"""A .txnindex in which an aborted transaction begins one offset too late."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import segment_name
from support.small_log import PARTITION, batch, marker, transaction_index, write_orders

TRANSACTION_INDEX = f"{PARTITION}/{segment_name(0, 'txnindex')}"


def write(directory: Path, first_offset: int) -> None:
    data = batch(0, producer_id=7, is_transactional=True)
    write_orders(directory, first=[data, marker("abort", 3, producer_id=7), batch(4, 5)])
    (directory / TRANSACTION_INDEX).write_bytes(
        transaction_index(
            producer_id=7, first_offset=first_offset, last_offset=3, last_stable_offset=4
        )
    )


def clean(directory: Path) -> None:
    write(directory, first_offset=0)


def broken(directory: Path) -> None:
    write(directory, first_offset=1)


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("txnindex-mismatch", "warning", TRANSACTION_INDEX, position=0, offsets=(1, 3))],
)

"""Two gzip members in one batch: librdkafka reads the first alone; the checksum is right."""

from pathlib import Path

from records.crafting import HEADER_SIZE, compress, patched
from support.finding_case import Case, Found
from support.small_log import FIRST, FIRST_LOG, SIZE, write_orders

# Three records of one size.
ONE_RECORD = (SIZE - HEADER_SIZE) // 3


def broken(directory: Path) -> None:
    batch, records = FIRST[1], FIRST[1][HEADER_SIZE:]
    members = [compress("gzip", part) for part in (records[:ONE_RECORD], records[ONE_RECORD:])]
    joined = batch[:HEADER_SIZE] + b"".join(members)
    size = (len(joined) - 12).to_bytes(4, "big")
    odd = patched(joined[:8] + size + joined[12:], 22, b"\x01")
    write_orders(directory, first=[FIRST[0], odd, FIRST[2]])


CASE = Case(
    clean=write_orders,
    broken=broken,
    found=[Found("consumers-differ", "warning", FIRST_LOG, position=SIZE, offsets=(3, 5))],
)

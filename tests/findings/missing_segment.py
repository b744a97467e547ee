"""Three segments, of which the middle one was deleted with its indexes."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import segment_name
from support.small_log import FIRST, PARTITION, SECOND_LOG, batch, write_orders


def middle(directory: Path) -> list[Path]:
    """The files of the segment of offsets 6 to 8."""
    suffixes = ("log", "index", "timeindex")
    return [directory / PARTITION / segment_name(6, suffix) for suffix in suffixes]


def clean(directory: Path) -> None:
    write_orders(directory, first=FIRST[:2])
    for path in middle(directory):
        path.write_bytes(batch(6) if path.suffix == ".log" else b"")


def broken(directory: Path) -> None:
    clean(directory)
    for path in middle(directory):
        path.unlink()


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("missing-segment", "warning", SECOND_LOG, position=0, offsets=(6, 8))],
)

"""Retention deletes the first segment of a log while another log is read."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import segment_name, write_log_directory


def write(directory: Path) -> None:
    """Two logs that a broker writes to, of which the first is read first."""
    write_log_directory(directory / "kafka", ["clicks-0", "orders-0"])
    (directory / "kafka" / ".kafka_cleanshutdown").unlink()


def delete(directory: Path) -> None:
    for suffix in ("log", "index", "timeindex", "snapshot"):
        path = directory / "kafka" / "orders-0" / segment_name(0, suffix)
        path.unlink(missing_ok=True)


CASE = Case(
    clean=write,
    broken=write,
    found=[
        Found(
            "deleted-meanwhile",
            "info",
            f"kafka/orders-0/{segment_name(0)}",
            topic_partition="orders-0",
            offsets=(0, None),
        )
    ],
    meanwhile=delete,
)

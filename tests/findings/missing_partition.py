"""The directory of one partition was removed after the broker had stopped."""

import shutil
from pathlib import Path

from support.finding_case import Case, Found
from support.logs import write_log_directory


def clean(directory: Path) -> None:
    """Two partitions that the high watermarks name."""
    write_log_directory(directory / "kafka", ["orders-0", "orders-1"])


def broken(directory: Path) -> None:
    clean(directory)
    shutil.rmtree(directory / "kafka" / "orders-1")


CASE = Case(
    clean=clean,
    broken=broken,
    found=[
        Found(
            "missing-partition",
            "warning",
            "kafka/replication-offset-checkpoint",
            topic_partition=None,
        )
    ],
)

"""The logs of a broker through the audit.

It is the one place where what speaks Kafka's protocol uses the audit: a test asks one about the
other.
"""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

from ottla.audit import audit, rebuild_side_files
from ottla.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.audit import AuditResult

__all__ = ["audited", "audited_directory"]


def audited(home: str, logs: Iterable[tuple[str, int, bytes]]) -> AuditResult:
    """Returns the audit of logs, each given with its topic and partition.

    Args:
        home: an empty directory for them; tables of the result are read from there on demand.
    """
    folder, side_files = Path(home, "logs"), Path(home, "side-files")
    folder.mkdir()
    for topic, partition, data in logs:
        # The coordinators have a hundred logs, of which most are empty.
        if data or not topic.startswith("__"):
            base_offset = next((batch.base_offset for batch in read_batches(data)), 0)
            log = Path(folder, f"{topic}-{partition}", f"{base_offset:020}.log")
            log.parent.mkdir()
            log.write_bytes(data)
    if any(folder.iterdir()):
        # A log in memory has no files beside it, which an audit would miss in a directory.
        rebuild_side_files(str(folder), side_files)
        copytree(side_files, folder, dirs_exist_ok=True)
    return audit(str(folder))


def audited_directory(path: str) -> AuditResult:
    """Returns the audit of a log directory, whether a broker still writes to it or not."""
    return audit(path)

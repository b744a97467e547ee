"""Which releases of Kafka may have written a log directory, as far as its own files say.

A lower bound: a cluster may be newer than it was formatted for. Commands are held against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.errors import RecordBatchError
from ottla.logs.inventory import FileEntry
from ottla.logs.metadata import read_meta_properties
from ottla.logs.names import BOOTSTRAP_CHECKPOINT
from ottla.logs.releases import Releases
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.records import read_batches
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from ottla.logs.releases import Release
    from ottla.storage import Files

MAX_BOOTSTRAP_BYTES = 1 << 20
"""Of a `bootstrap.checkpoint` with a record of each feature, 1 KiB is much."""


def releases_of(log_directory: bytes, files: Files = ANYWHERE) -> Releases:
    """The releases that may have written a log directory, by the files that its broker wrote."""
    since, before = _engine.release_bounds(read_meta_properties(log_directory, files))
    if before is not None:
        return Releases(since, before)
    found = [] if since is None else [since]
    return Releases(since=max([*found, *_formatted_for(log_directory, files)], default=None))


def _formatted_for(log_directory: bytes, files: Files) -> list[Release]:
    """The release that the cluster was formatted for, if it is said."""
    file = FileEntry(log_directory, BOOTSTRAP_CHECKPOINT, "metadata-snapshot")
    try:
        data = read_side_file(file, files)[:MAX_BOOTSTRAP_BYTES]
        values = [record.value for batch in read_batches(data) for record in batch.records()]
    except (OSError, SideFileError, RecordBatchError):
        return []
    releases = (_engine.least_release(value) for value in values if value is not None)
    return [release for release in releases if release is not None]

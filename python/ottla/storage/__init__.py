"""Files wherever they lie: on this machine, or in an object store.

A path says by its scheme where it leads: ``/var/lib/kafka`` and ``file:///var/lib/kafka`` to this
machine, ``s3://bucket/logs`` to a store. Whoever reads files takes a `Files` and any path.
"""

from ottla.storage.anywhere import ANYWHERE, AnyFiles, files_of
from ottla.storage.files import Entry, Files, LocalFiles, Place, RemotePlace, reason_of
from ottla.storage.paths import Source, common_path, full_path, join, store_of

__all__ = [
    "ANYWHERE",
    "AnyFiles",
    "Entry",
    "Files",
    "LocalFiles",
    "Place",
    "RemotePlace",
    "Source",
    "common_path",
    "files_of",
    "full_path",
    "join",
    "reason_of",
    "store_of",
]

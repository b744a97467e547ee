"""Files wherever they lie: on this machine, or in an object store.

A path says by its scheme where it leads: ``/var/lib/kafka`` and ``file:///var/lib/kafka`` to this
machine, ``s3://bucket/logs`` to a store. Whoever reads files takes a `Files` and any path.
"""

from ottla.storage.files import (
    ANYWHERE,
    AnyFiles,
    Entry,
    Files,
    LocalFiles,
    Place,
    common_path,
    files_of,
    full_path,
    reason_of,
    store_of,
)

__all__ = [
    "ANYWHERE",
    "AnyFiles",
    "Entry",
    "Files",
    "LocalFiles",
    "Place",
    "common_path",
    "files_of",
    "full_path",
    "reason_of",
    "store_of",
]

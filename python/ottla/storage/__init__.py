"""Files, local or in an object store.

The scheme of a path says where it leads: ``/var/lib/kafka`` and ``file:///var/lib/kafka``
are local, ``s3://bucket/logs`` is in a store. Code that reads files takes a `Files` and any path.
"""

from ottla.storage.anywhere import ANYWHERE, AnyFiles, again, files_of, files_within
from ottla.storage.files import Entry, Files, HeldPlace, LocalFiles, LocalPlace, Place, reason_of
from ottla.storage.holding import HeldFiles, brought_ahead
from ottla.storage.paths import Source, common_path, full_path, join, store_of
from ottla.storage.secrets import StorageOptions, sending_secrets

__all__ = [
    "ANYWHERE",
    "AnyFiles",
    "Entry",
    "Files",
    "HeldFiles",
    "HeldPlace",
    "LocalFiles",
    "LocalPlace",
    "Place",
    "Source",
    "StorageOptions",
    "again",
    "brought_ahead",
    "common_path",
    "files_of",
    "files_within",
    "full_path",
    "join",
    "reason_of",
    "sending_secrets",
    "store_of",
]

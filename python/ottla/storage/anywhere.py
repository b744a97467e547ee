"""Files of every kind: each path goes to the file system or the store it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.storage.files import LOCAL
from ottla.storage.paths import full_path, store_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.storage.files import Entry, Files, Place
    from ottla.storage.objects import ObjectFiles
    from ottla.storage.paths import Source


class AnyFiles:
    """Files of every kind: each path goes to the file system or the store it belongs to.

    Args:
        storage_options: settings of object stores; see `files_of`.
    """

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self._storage_options = dict(storage_options or {})
        self._stores: dict[bytes, ObjectFiles] = {}

    def __reduce__(self) -> tuple[type[AnyFiles], tuple[dict[str, str]]]:
        return AnyFiles, (self._storage_options,)

    def of(self, path: bytes) -> Files:
        """Returns the files that a path belongs to."""
        root = store_of(path)
        if root is None:
            return LOCAL
        files = self._stores.get(root)
        if files is None:
            from ottla.storage.objects import ObjectFiles

            files = self._stores.setdefault(root, ObjectFiles(root, self._storage_options))
        return files

    def stat(self, path: bytes) -> Entry:
        """See `Files`."""
        return self.of(path).stat(path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """See `Files`."""
        return self.of(directory).list(directory)

    def exists(self, path: bytes) -> bool:
        """See `Files`."""
        return self.of(path).exists(path)

    def read(self, path: bytes, limit: int) -> bytes:
        """See `Files`."""
        return self.of(path).read(path, limit)

    def place(self, path: bytes, size: int | None = None) -> Place:
        """See `Files`."""
        return self.of(path).place(path, size)

    def under(self, directory: bytes) -> Files:
        """See `Files`."""
        return self.of(directory).under(directory)


ANYWHERE = AnyFiles()
"""Files of every kind; the environment configures the stores."""


def files_of(
    source: Source,
    storage_options: Mapping[str, str] | None = None,
) -> Files:
    """Returns the files that a path or URI belongs to.

    Args:
        source: a local path, or the URI of an object store.
        storage_options: settings of the store under obstore's names, such as ``endpoint``,
            ``access_key_id`` and ``allow_http``. Without them the environment decides, for
            example through ``AWS_ACCESS_KEY_ID``.

    >>> files_of("examples/data").exists(full_path("examples/data/orders-0"))
    True

    Raises:
        StorageError: the scheme is not that of an object store, for example ``hdfs``.
    """
    return AnyFiles(storage_options).of(full_path(source))

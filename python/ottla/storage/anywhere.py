"""Files of every kind: each path goes to the file system or the store it belongs to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ottla.storage.files import LOCAL, LocalFiles
from ottla.storage.paths import full_path, store_of
from ottla.storage.secrets import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.storage.files import Entry, Files, Place
    from ottla.storage.objects import ObjectFiles
    from ottla.storage.paths import Source


class AnyFiles:
    """Files of every kind: each path goes to the file system or the store it belongs to.

    Args:
        storage_options: settings of object stores; see `files_of`.
        within: where symbolic links may lead; see `LocalFiles`.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | None = None,
        *,
        within: Sequence[bytes] | None = None,
    ) -> None:
        self._storage_options = StorageOptions(storage_options or {})
        self._within = None if within is None else tuple(within)
        self._local = LOCAL if within is None else LocalFiles(within)
        self._stores: dict[bytes, ObjectFiles] = {}

    def __reduce__(self) -> tuple[Callable[..., AnyFiles], tuple[Any, ...]]:
        return _any_files, (self._storage_options, self._within)

    def of(self, path: bytes) -> Files:
        """Returns the files that a path belongs to."""
        root = store_of(path)
        if root is None:
            return self._local
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


def _any_files(storage_options: Mapping[str, str], within: Sequence[bytes] | None) -> AnyFiles:
    return AnyFiles(storage_options, within=within)


def again(place: Place, files: Files) -> Place:
    """Returns the same file, read as `files` read it: with their settings of stores."""
    path = getattr(place, "path", None)
    return place if path is None else files.place(path, place.size)


def files_within(
    sources: Iterable[Source],
    storage_options: Mapping[str, str] | None = None,
    *,
    follow_links: bool = False,
) -> AnyFiles:
    """Returns files of every kind, for reading what is below the sources.

    Args:
        sources: paths and URIs; a given path may be a link to anywhere.
        storage_options: see `files_of`.
        follow_links: whether links below the sources may lead out of them, too.

    Raises:
        StorageError: a source is a URI that does not lead to a store.
    """
    paths = [path for path in map(full_path, sources) if store_of(path) is None]
    within = None if follow_links else sorted({os.path.realpath(path) for path in paths})
    return AnyFiles(storage_options, within=within)


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

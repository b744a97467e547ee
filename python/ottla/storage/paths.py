"""Local paths, and URIs of object stores.

A full path is bytes, absolute or with a scheme, and can be joined and split by `os.path`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ottla.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Source = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path or a URI, in any form callers may use."""

STORE_SCHEMES = (b"s3", b"s3a", b"gs", b"az", b"abfs", b"abfss")
"""URI schemes of object stores."""

# Hadoop writes one slash after the colon when there is no host; pathlib turns two into one.
_WITH_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)", re.DOTALL)


def full_path(source: Source) -> bytes:
    """Returns a path or URI in full: absolute, or with scheme and store.

    >>> full_path("s3a://bucket/logs/"), full_path("file:///var/lib/kafka")
    (b's3a://bucket/logs', b'/var/lib/kafka')

    Raises:
        StorageError: the path is empty, or its scheme is not that of an object store.
    """
    path = os.fsencode(source)
    if not path:
        raise StorageError("the path is empty: . is the working directory")
    match = _WITH_SCHEME.fullmatch(path)
    if match is None or os.path.lexists(path):
        return os.path.abspath(path)
    scheme, slash, rest = match[1].lower(), match[2], match[3]
    if scheme == b"file":
        # Importing it takes a good part of this module's import time.
        from urllib.parse import unquote_to_bytes

        host, _, local = rest.partition(b"/") if slash else (b"", b"", rest)
        if host not in (b"", b"localhost"):
            raise StorageError(
                f"{_text(path)}: a file of another machine; write file:/// and its path on this one"
            )
        return os.path.abspath(b"/" + unquote_to_bytes(local))
    if scheme not in STORE_SCHEMES:
        known = ", ".join(f"{known.decode()}://" for known in STORE_SCHEMES)
        hint = "/dbfs/ and the rest of the path" if scheme == b"dbfs" else "its local path"
        raise StorageError(
            f"{_text(path)}: {scheme.decode()}: URIs cannot be read, only {known} and local paths;"
            f" mount the storage and use {hint}"
        )
    store, *key = [part for part in rest.split(b"/") if part] or [b""]
    if not store:
        raise StorageError(f"{_text(path)}: no bucket or container after {scheme.decode()}://")
    return b"/".join((match[1] + b":/", store, *key))


def store_of(path: bytes) -> bytes | None:
    """Returns scheme and bucket or container of an object's path, None for a local path."""
    scheme, separator, rest = path.partition(b"://")
    if not separator or scheme.lower() not in STORE_SCHEMES:
        return None
    return scheme + separator + rest.partition(b"/")[0]


def common_path(paths: Sequence[bytes]) -> bytes:
    """Returns the longest common directory, as `os.path.commonpath`; empty across stores.

    >>> common_path([b"s3://bucket/a/b", b"s3://bucket/a/c"]), common_path([b"s3://a", b"/b"])
    (b's3://bucket/a', b'')
    """
    stores = {store_of(path) for path in paths}
    if stores == {None}:
        return os.path.commonpath(paths)
    (store, *others) = stores
    if store is None or others:
        return b""
    return store + os.path.commonpath([b"/" + path[len(store) :] for path in paths]).rstrip(b"/")


def join(directory: bytes, name: bytes) -> bytes:
    """Joins a full path and a name, as `os.path.join`."""
    return directory + name if directory == b"/" else directory + b"/" + name


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")

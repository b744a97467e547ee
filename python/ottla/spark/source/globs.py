"""Paths with wildcards, of directories and object stores alike."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ottla.errors import SparkError
from ottla.storage import files_of, full_path, store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.storage import Entry, Files

MAX_ALTERNATIVES = 10_000
"""Paths that the braces of one pattern may stand for."""

_WILDCARD = re.compile(rb"[*?\[]")


def expand_globs(paths: Iterable[str], storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the paths, with those that match in place of a pattern, in the order of their names.

    ``*``, ``?`` and ``[…]`` match within a name, but not a dot at its beginning; ``{a,b}`` stands
    for either. A path that exists under a name with such characters is that path.

    >>> expand_globs(["examples/data/{orders,refunds}-[0]"], {})
    ('examples/data/orders-0', 'examples/data/refunds-0')

    Raises:
        SparkError: nothing matches a pattern.
        StorageError: a URI does not lead to a store.
        OSError: a directory cannot be listed.
    """
    found: dict[str, None] = {}
    for path in paths:
        for one in _expand(path, storage_options):
            found[one] = None
    return tuple(found)


def _expand(path: str, storage_options: Mapping[str, str]) -> Sequence[str]:
    if not re.search(r"[*?\[{]", path) or not path:
        return [path]
    files = files_of(path, storage_options)
    if files.exists(full_path(path)):
        return [path]
    matches = sorted(
        {match for one in _alternatives(path) for match in _matches(full_path(one), files)}
    )
    if not matches:
        raise SparkError(f"no path matches {path!r}")
    is_relative = store_of(full_path(path)) is None and not os.path.isabs(path) and ":" not in path
    shown = [os.path.relpath(match) for match in matches] if is_relative else matches
    return [os.fsdecode(match) for match in shown]


def _alternatives(path: str) -> list[str]:
    """Returns the paths that ``{a,b}`` stands for; braces may be within braces."""
    left = [path]
    found: dict[str, None] = {}
    while left:
        if len(left) + len(found) > MAX_ALTERNATIVES:
            raise SparkError(f"{path!r} stands for more than {MAX_ALTERNATIVES:,} paths")
        one = left.pop()
        innermost = re.search(r"\{([^{}]*)\}", one)
        if innermost is None:
            found[one] = None
            continue
        before, after = one[: innermost.start()], one[innermost.end() :]
        left += [before + part + after for part in innermost[1].split(",")]
    return list(found)


def _matches(pattern: bytes, files: Files) -> Iterator[bytes]:
    store = store_of(pattern) or b""
    names = pattern[len(store) :].split(b"/")[1:]
    above = [store]
    for depth, name in enumerate(names):
        is_last = depth == len(names) - 1
        if not _WILDCARD.search(name):
            above = [path + b"/" + name for path in above]
            if is_last:
                above = [path for path in above if files.exists(path)]
            continue
        above = [
            path + b"/" + entry.name
            for path in above
            for entry in _children(path or b"/", files)
            if (is_last or entry.is_directory) and _is_match(entry.name, name)
        ]
    yield from above


def _children(directory: bytes, files: Files) -> Sequence[Entry]:
    try:
        return files.list(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _is_match(name: bytes, pattern: bytes) -> bool:
    if name.startswith(b".") and not pattern.startswith(b"."):
        return False
    return fnmatchcase(name.decode("latin-1"), pattern.decode("latin-1"))

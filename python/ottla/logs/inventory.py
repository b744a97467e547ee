"""The contents of log directories: partitions, their files, and the kind of each file.

Only names, types and sizes: no file is opened. Paths are those of `ottla.storage`: local paths as
bytes, because a name need not be UTF-8, or URIs of an object store. `ottla.logs.listing` creates an
inventory.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ottla.logs.names import FileKind, FileState, PartitionState, Said, classify, display
from ottla.storage import ANYWHERE, Files, join, store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


SEGMENTS: tuple[FileKind, ...] = ("segment",)


class FileEntry(NamedTuple):
    """A file: its path, what its name says, and why it cannot be read, if it cannot."""

    directory: bytes
    name: bytes
    kind: FileKind
    state: FileState = "live"
    size: int = 0
    base_offset: int | None = None
    fault: str | None = None

    @property
    def path(self) -> bytes:
        """The path to open."""
        return join(self.directory, self.name)


class Partition(NamedTuple):
    """One directory of segments, or those segments of one that were given by name.

    A broker may have hundreds of thousands of them, so `files` is derived from names when accessed.
    """

    directory: bytes
    topic: str | None
    partition: int | None
    state: PartitionState
    names: tuple[bytes, ...]
    """Names of the files, in the order of `files`."""
    sizes: tuple[int, ...]
    """Sizes of the files, in bytes."""
    odd_files: tuple[FileEntry, ...]
    """Files that their name and size do not describe completely."""
    live_base_offsets: tuple[int, ...]
    """Of every live segment in the directory, including those that were not given."""
    stopped_cleanly: bool
    """Whether the directory above has the broker's clean shutdown marker."""
    log_directory: bytes | None = None
    is_whole: bool = True
    """False when only some of its files were given."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """The files: segments in the order of offsets, then the rest by name."""
        return tuple(self._entries())

    @property
    def segments(self) -> tuple[FileEntry, ...]:
        """The live segments, in the order of offsets."""
        return tuple(file for file in self.files_of(SEGMENTS) if file.state == "live")

    @property
    def plain_segments(self) -> tuple[int, ...] | None:
        """Which of the names are the segments, if all of these are live and the names tell all.

        None if there are others, or the snapshot of a quorum, or only some files were given.
        """
        return None if self.odd_files or not self.is_whole else _plain_segments(self.names)

    @property
    def has_segments(self) -> bool:
        """Whether there is a live segment."""
        return any(file.state == "live" for file in self.files_of(SEGMENTS))

    def files_of(self, kinds: tuple[FileKind, ...]) -> tuple[FileEntry, ...]:
        """The files of some kinds, in the order of `files`."""
        if self.odd_files:
            return tuple(self._entries(kinds))
        directory, names, sizes = self.directory, self.names, self.sizes
        return tuple(
            FileEntry(directory, names[at], kind, state, sizes[at], base_offset)
            for at, (kind, state, base_offset) in _places_of(names, kinds)
        )

    def _entries(self, kinds: Collection[FileKind] | None = None) -> Iterator[FileEntry]:
        directory = self.directory
        odd = {file.name: file for file in self.odd_files}
        described = zip(self.names, self.sizes, said_by(self.names), strict=True)
        for name, size, (kind, state, base_offset) in described:
            if odd and name in odd:
                if kinds is None or odd[name].kind in kinds:
                    yield odd[name]
            elif kinds is None or kind in kinds:
                yield FileEntry(directory, name, kind, state, size, base_offset)

    def is_of_topics(self, patterns: Sequence[str]) -> bool:
        """Whether the topic matches a pattern such as ``orders-*``; true without patterns."""
        if not patterns:
            return True
        topic = self.topic
        return topic is not None and any(fnmatchcase(topic, pattern) for pattern in patterns)

    def next_base_offset(self, segment: FileEntry) -> int | None:
        """Returns the base offset of the next segment, None for the active segment."""
        if segment.base_offset is None:
            return None
        after = bisect_right(self.live_base_offsets, segment.base_offset)
        return self.live_base_offsets[after] if after < len(self.live_base_offsets) else None


class LogDirectory(NamedTuple):
    """One of a broker's `log.dirs`: the files in it that are not a partition's."""

    path: bytes
    files: tuple[FileEntry, ...]


class Unreadable(NamedTuple):
    """A path that was given but cannot be audited, and the reason."""

    path: bytes
    reason: str


class Inventory(NamedTuple):
    """Everything found, in the order of the sources; partitions by name within a directory."""

    base: bytes
    """The directory that displayed paths are relative to: `/` if the sources have no other in
    common, empty if they are in several stores."""
    log_directories: tuple[LogDirectory, ...]
    partitions: tuple[Partition, ...]
    unreadable: tuple[Unreadable, ...]
    too_deep: tuple[bytes, ...] = ()
    """Directories that hold others which were not looked into, since they are too far below."""
    sources: tuple[tuple[bytes, str | None], ...] = ()
    """The given paths, longest first, each with the replica it was given for."""
    files: Files = ANYWHERE
    """The files to read the paths from."""

    @property
    def is_local(self) -> bool:
        """Whether no source is in an object store, where each request takes its time."""
        return all(store_of(source) is None for source, _ in self.sources)

    def source_of(self, path: bytes) -> tuple[bytes, str | None]:
        """Returns the given path that a path is below, and the replica it was given for."""
        for source, replica in self.sources:
            if path == source or path.startswith(os.path.join(source, b"")):
                return source, replica
        # The path was reached through a symbolic link.
        return self.base, None

    def display(self, path: bytes) -> str:
        """Returns a path as printable text, relative to the base."""
        if self.base in (b"", b"/"):
            return display(path)
        return display(path.removeprefix(self.base + b"/"))


@lru_cache(maxsize=2)
def _places_of(
    names: tuple[bytes, ...], kinds: tuple[FileKind, ...]
) -> tuple[tuple[int, Said], ...]:
    """Returns which of the names are of some kinds, and what they say: mostly those asked last."""
    return tuple((at, said) for at, said in enumerate(said_by(names)) if said[0] in kinds)


@lru_cache(maxsize=2)
def _plain_segments(names: tuple[bytes, ...]) -> tuple[int, ...] | None:
    places = _places_of(names, ("segment", "metadata-snapshot"))
    plain = ("segment", "live")
    if any(said[:2] != plain or said[2] is None for _, said in places):
        return None
    return tuple(at for at, _ in places)


@lru_cache(maxsize=2)
def said_by(names: tuple[bytes, ...]) -> tuple[Said, ...]:
    """Returns what each of the names of a partition's files says.

    It is asked of one partition many times in a row, which may have more names than are remembered
    one by one.
    """
    return tuple(map(classify, names))

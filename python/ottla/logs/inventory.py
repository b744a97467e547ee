"""What lies in log directories: partitions, their files, and what each file is.

Names, types and sizes alone; nothing was opened. Paths are those of `ottla.storage`: bytes from the
operating system that stay bytes, because a name need not be UTF-8, or URIs into an object store.
`ottla.logs.listing` takes an inventory.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from ottla.logs.names import FileKind, FileState, PartitionState, classify, display
from ottla.storage import ANYWHERE, Files, join

if TYPE_CHECKING:
    from collections.abc import Sequence


class FileEntry(NamedTuple):
    """One file: where it is, what its name says it is, and why it cannot be read if it cannot."""

    directory: bytes
    name: bytes
    kind: FileKind
    state: FileState = "live"
    size: int = 0
    base_offset: int | None = None
    fault: str | None = None

    @property
    def path(self) -> bytes:
        """What to open."""
        return join(self.directory, self.name)


@dataclass(frozen=True, slots=True)
class Partition:
    """One directory of segments, or the segments of one that were asked for by name.

    A broker has up to hundreds of thousands of them: what names tell is told anew when asked for.
    """

    directory: bytes
    topic: str | None
    partition: int | None
    state: PartitionState
    names: tuple[bytes, ...]
    """Of the files, in their order."""
    sizes: tuple[int, ...]
    """Of the files, in bytes."""
    odd_files: tuple[FileEntry, ...]
    """Those of which name and size do not tell everything."""
    live_base_offsets: tuple[int, ...]
    """Of every live segment in the directory, asked for or not: a segment's neighbours."""
    stopped_cleanly: bool
    """Whether the broker left its mark of a clean stop in the directory above."""
    log_directory: bytes | None = None
    is_whole: bool = True
    """False when only some files were asked for."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """The files: segments by offset, the rest by name."""
        directory = self.directory
        odd = {file.name: file for file in self.odd_files} if self.odd_files else None
        return tuple(
            odd[name] if odd and name in odd else plain_file(directory, name, size)
            for name, size in zip(self.names, self.sizes, strict=True)
        )

    @property
    def segments(self) -> tuple[FileEntry, ...]:
        """The live segments, in the order of their offsets."""
        return tuple(f for f in self.files if f.kind == "segment" and f.state == "live")

    def is_of_topics(self, patterns: Sequence[str]) -> bool:
        """Whether the topic matches a pattern (``orders-*``), or there is none."""
        if not patterns:
            return True
        topic = self.topic
        return topic is not None and any(fnmatchcase(topic, pattern) for pattern in patterns)

    def next_base_offset(self, segment: FileEntry) -> int | None:
        """The base offset of the segment after this one, None for the active segment."""
        if segment.base_offset is None:
            return None
        after = bisect_right(self.live_base_offsets, segment.base_offset)
        return self.live_base_offsets[after] if after < len(self.live_base_offsets) else None


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One of a broker's `log.dirs`: its own files, without the partitions'."""

    path: bytes
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something asked for that cannot be audited, and why."""

    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that was found, in the order of the sources; partitions by name within a directory."""

    base: bytes
    """The directory that displayed names are relative to; `/` when the sources share no other, and
    empty when they are of several stores."""
    log_directories: tuple[LogDirectory, ...]
    partitions: tuple[Partition, ...]
    unreadable: tuple[Unreadable, ...]
    sources: tuple[tuple[bytes, str | None], ...] = ()
    """The paths that were given, the longest first, and the replica each was said to be of."""
    files: Files = field(default=ANYWHERE, compare=False)
    """Where the paths are read."""

    def source_of(self, path: bytes) -> tuple[bytes, str | None]:
        """The given path under which another one lies, and the replica it was said to be of."""
        for source, replica in self.sources:
            if path == source or path.startswith(os.path.join(source, b"")):
                return source, replica
        # Reached through a link.
        return self.base, None

    def display(self, path: bytes) -> str:
        """A path as shown to people: relative to the audited directory, printable."""
        if self.base in (b"", b"/"):
            return display(path)
        return display(path.removeprefix(self.base + b"/"))


def plain_file(directory: bytes, name: bytes, size: int) -> FileEntry:
    """A file of which name and size tell everything."""
    kind, state, base_offset = classify(name)
    return FileEntry(directory, name, kind, state, size, base_offset)

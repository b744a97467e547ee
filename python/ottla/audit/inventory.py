"""What lies under the given paths: log directories, partitions, files, and what each file is.

Only names, types and sizes are looked at here; nothing is opened. Paths are those of
`ottla.storage`: bytes from the operating system that stay bytes, because a name need not be UTF-8,
or URIs into an object store; `display` makes text of them.
What a broker's log directory holds, and how its names are built, is Kafka's `LogManager` and
`LocalLog`; a name that fits none of it is listed as unknown and never stops anything.

A directory is known by what it holds, not by its name alone: `broker-1` may be partition 1 of topic
`broker` or a broker's log directory.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from ottla.storage import ANYWHERE, Entry, Files, common_path, full_path, reason_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

Source = str | bytes | os.PathLike[str] | os.PathLike[bytes]

FileKind = Literal[
    "segment",
    "offset-index",
    "time-index",
    "transaction-index",
    "producer-snapshot",
    "leader-epoch-checkpoint",
    "partition-metadata",
    "metadata-snapshot",
    "quorum-state",
    "offset-checkpoint",
    "meta-properties",
    "clean-shutdown",
    "lock",
    "directory",
    "unknown",
]
FileState = Literal["live", "deleted", "swap", "cleaned", "temporary"]
PartitionState = Literal["live", "delete", "future", "stray"]

MAX_OFFSET = 2**63 - 1
MAX_PARTITION = 2**31 - 1

# Directories between a given path and a log directory under it: /data → host → disk → kafka-logs.
MAX_DEPTH = 3

RECOVERY_POINTS = b"recovery-point-offset-checkpoint"
LOG_START_OFFSETS = b"log-start-offset-checkpoint"
HIGH_WATERMARKS = b"replication-offset-checkpoint"
CLEANER_OFFSETS = b"cleaner-offset-checkpoint"
META_PROPERTIES = b"meta.properties"
CLEAN_SHUTDOWN = b".kafka_cleanshutdown"

LEADER_EPOCHS = b"leader-epoch-checkpoint"
PARTITION_METADATA = b"partition.metadata"

_LOG_DIRECTORY_FILES: dict[bytes, FileKind] = {
    META_PROPERTIES: "meta-properties",
    CLEAN_SHUTDOWN: "clean-shutdown",
    RECOVERY_POINTS: "offset-checkpoint",
    LOG_START_OFFSETS: "offset-checkpoint",
    HIGH_WATERMARKS: "offset-checkpoint",
    CLEANER_OFFSETS: "offset-checkpoint",
    b"bootstrap.checkpoint": "metadata-snapshot",
    b".lock": "lock",
}
# A `.lock` alone says nothing: other programs leave such files too.
_MARKS = frozenset(_LOG_DIRECTORY_FILES) - {b".lock"}
_PARTITION_FILES: dict[bytes, FileKind] = {
    LEADER_EPOCHS: "leader-epoch-checkpoint",
    PARTITION_METADATA: "partition-metadata",
    b"quorum-state": "quorum-state",
}
_SEGMENT_FILES: dict[bytes, FileKind] = {
    b"log": "segment",
    b"index": "offset-index",
    b"timeindex": "time-index",
    b"txnindex": "transaction-index",
    b"snapshot": "producer-snapshot",
}
_SUFFIXES: dict[bytes, FileState] = {
    b"": "live",
    b".deleted": "deleted",
    b".swap": "swap",
    b".cleaned": "cleaned",
    b".part": "temporary",
}
_SEGMENT_FILE = re.compile(
    rb"(\d{1,20})\.(log|index|timeindex|txnindex|snapshot)(|\.deleted|\.swap|\.cleaned)", re.ASCII
)
_METADATA_SNAPSHOT = re.compile(rb"(\d{1,20})-\d{1,10}\.checkpoint(|\.deleted|\.part)", re.ASCII)
# Kafka writes 20 digits and reads any number. A directory is known by the former: a `2024.log` is
# nobody's segment.
_AS_KAFKA_WRITES = re.compile(rb"\d{20}(-\d{10})?\.[a-z]", re.ASCII)
_PARTITION_DIRECTORY = re.compile(
    rb"(.+)-(\d{1,10})(?:\.[0-9a-f]{32}-(delete|future|stray))?", re.ASCII | re.DOTALL
)
_PARTITION_STATES: dict[bytes | None, PartitionState] = {
    None: "live",
    b"delete": "delete",
    b"future": "future",
    b"stray": "stray",
}
# In `-delete` and `-stray` names Kafka cuts the topic so that the whole fits 255 characters.


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
        return _join(self.directory, self.name)


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
            odd[name] if odd and name in odd else _plain_file(directory, name, size)
            for name, size in zip(self.names, self.sizes, strict=True)
        )

    @property
    def segments(self) -> tuple[FileEntry, ...]:
        """The live segments, in the order of their offsets."""
        return tuple(f for f in self.files if f.kind == "segment" and f.state == "live")

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


def display(name: bytes) -> str:
    r"""A file name as printable text: what is no UTF-8, or no printable character, as ``\xNN``.

    >>> display(b"orders-0"), display(b"caf\xe9\n")
    ('orders-0', 'caf\\xe9\\x0a')
    """
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text
    )


def parse_partition_name(name: bytes) -> tuple[str, int, PartitionState] | None:
    """Topic, partition and state that a directory name tells, None when it is no partition's.

    >>> parse_partition_name(b"page-views-12")
    ('page-views', 12, 'live')
    >>> parse_partition_name(b"lost+found") is None
    True
    """
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or int(match[2]) > MAX_PARTITION:
        return None
    # The partitions of a topic share its name.
    return sys.intern(display(match[1])), int(match[2]), _PARTITION_STATES[match[3]]


@lru_cache(maxsize=4096)
def classify(name: bytes) -> tuple[FileKind, FileState, int | None]:
    """Kind, state and base offset that a file name tells.

    >>> classify(b"00000000000000000042.log.deleted")
    ('segment', 'deleted', 42)
    """
    if (match := _SEGMENT_FILE.fullmatch(name)) and int(match[1]) <= MAX_OFFSET:
        return _SEGMENT_FILES[match[2]], _SUFFIXES[match[3]], int(match[1])
    if (match := _METADATA_SNAPSHOT.fullmatch(name)) and int(match[1]) <= MAX_OFFSET:
        return "metadata-snapshot", _SUFFIXES[match[2]], int(match[1])
    stem = name.removesuffix(b".tmp")
    kind = _PARTITION_FILES.get(stem) or _LOG_DIRECTORY_FILES.get(stem) or "unknown"
    return kind, "live" if stem == name else "temporary", None


def take_inventory(
    sources: Sequence[Source],
    replicas: Sequence[tuple[str, Source]] = (),
    *,
    files: Files = ANYWHERE,
) -> Inventory:
    """Lists everything under the sources: log directories, partitions, files, in any mixture.

    `replicas` are further sources, each said to be of a copy of that name. `files` are asked for
    all of them.

    A source that is missing or unreadable, or holds nothing of Kafka's, is in `unreadable`; the
    others are listed all the same.

    >>> take_inventory(["nowhere"]).unreadable[0].reason
    'no such file or directory'

    Raises:
        StorageError: a source is a URI that leads to no store.
        MissingDependencyError: a source is in an object store, and obstore is not installed.
    """
    listing = _Listing(files)
    given = [(None, source) for source in sources] + list(replicas)
    named = [(full_path(source), name) for name, source in given]
    paths = [path for path, _ in named]
    # Directories first: a file named beside its directory is then known to be listed.
    listing.add_files([path for path in paths if not listing.add_directory(path)])
    return Inventory(
        base=common_path(listing.bases) if listing.bases else b"/",
        log_directories=tuple(listing.log_directories),
        partitions=tuple(listing.partitions),
        unreadable=tuple(listing.unreadable),
        sources=tuple(sorted(named, key=lambda source: len(source[0]), reverse=True)),
        files=files,
    )


@dataclass(slots=True)
class _Listing:
    """The inventory while it grows."""

    files: Files
    log_directories: list[LogDirectory] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    bases: list[bytes] = field(default_factory=list)
    # Identities of every directory listed, so that links cannot lead in circles and a directory
    # given twice is audited once.
    seen: set[Hashable] = field(default_factory=set)
    # Most partitions have files of the same names.
    names: dict[tuple[bytes, ...], tuple[bytes, ...]] = field(default_factory=dict)
    clean_stops: dict[bytes, bool] = field(default_factory=dict)

    def add_directory(self, path: bytes) -> bool:
        """Lists a source; False for a regular file, whose turn comes later."""
        try:
            files = self.files.under(path)
            entry = files.stat(path)
        except OSError as error:
            self._cannot_read(path, reason_of(error))
            return True
        if not entry.is_directory:
            if entry.fault is None:
                return False
            self._cannot_read(path, f"{entry.fault} or a directory")
            return True
        given, self.files = self.files, files
        try:
            self._add_source(path, entry)
        finally:
            self.files = given
        return True

    def _add_source(self, path: bytes, entry: Entry) -> None:
        is_repeated = entry.identity in self.seen
        partition_count = len(self.partitions)
        others = len(self.log_directories) + len(self.unreadable)
        children = self._list(path, entry.identity)
        if children is not None:
            if not children and parse_partition_name(os.path.basename(path)):
                self._add_partition(path, children, None)
            else:
                self._walk(path, children, depth=0)
        if (
            not is_repeated
            and partition_count == len(self.partitions)
            and others == len(self.log_directories) + len(self.unreadable)
        ):
            holds = "no log directory, partition or segment file" if children else "nothing"
            self._cannot_read(path, f"the directory holds {holds}")
            return
        is_partition = any(p.directory == path for p in self.partitions[partition_count:])
        self.bases.append(os.path.dirname(path) if is_partition else path)

    def add_files(self, paths: Sequence[bytes]) -> None:
        """Lists files asked for by name, those of one directory as one partition."""
        by_directory: dict[bytes, dict[bytes, None]] = {}
        for path in paths:
            directory, name = os.path.split(path)
            by_directory.setdefault(directory, {})[name] = None
        for directory, names in by_directory.items():
            self._add_named(directory, list(names))

    def _add_named(self, directory: bytes, names: Sequence[bytes]) -> None:
        parsed = parse_partition_name(os.path.basename(directory))
        if any(p.directory == directory for p in self.partitions):
            return
        files = []
        for name in names:
            entry = _file_entry(directory, self._stat(directory, name))
            if entry.kind == "unknown":
                # Bytes of any name may be records: a copied segment, captured batches.
                entry = FileEntry(directory, name, "segment", size=entry.size, fault=entry.fault)
            if entry.kind in ("segment", "metadata-snapshot"):
                files.append(entry)
            else:
                kind = entry.kind.replace("-", " ")
                self._cannot_read(
                    entry.path, f"{kind}, not a segment: name its .log file or the directory"
                )
        if not files:
            return
        self.bases.append(os.path.dirname(directory) if parsed else directory)
        try:
            siblings = [_file_entry(directory, c) for c in self.files.list(directory)]
        except OSError:
            siblings = files
        topic, partition, state = parsed or (None, None, "live")
        names, sizes, odd = self._condensed(_in_order(files))
        self.partitions.append(
            Partition(
                directory=directory,
                topic=topic,
                partition=partition,
                state=state,
                names=names,
                sizes=sizes,
                odd_files=odd,
                live_base_offsets=_live_base_offsets(siblings),
                stopped_cleanly=self._stopped_cleanly(directory),
                is_whole=False,
            )
        )

    def _stat(self, directory: bytes, name: bytes) -> Entry:
        try:
            return self.files.stat(_join(directory, name))
        except OSError as error:
            return Entry(name, is_directory=False, size=0, fault=reason_of(error))

    def _walk(self, path: bytes, children: Sequence[Entry], depth: int) -> None:
        """Lists a directory by what it holds: a partition, a log directory, or some of those."""
        is_log_directory = any(c.name in _MARKS for c in children if not c.is_directory)
        if not is_log_directory and _holds_partition(children):
            self._add_partition(path, children, None)
            return
        partition_count = len(self.partitions)
        others = [
            child
            for child in children
            if not (child.is_directory and self._add_child(path, child, is_log_directory, depth))
        ]
        has_partitions = any(p.log_directory == path for p in self.partitions[partition_count:])
        if is_log_directory or has_partitions:
            files = _in_order([_file_entry(path, child) for child in others])
            self.log_directories.append(LogDirectory(path, files))

    def _add_child(self, parent: bytes, child: Entry, is_log_directory: bool, depth: int) -> bool:
        """Lists a directory inside another; False when it is nothing of Kafka's."""
        is_partition = parse_partition_name(child.name) is not None
        if child.identity in self.seen:
            return True
        path = _join(parent, child.name)
        try:
            children = self.files.list(path)
        except OSError as error:
            if is_partition or not (is_log_directory or child.name == b"lost+found"):
                self._cannot_read(path, reason_of(error))
                return True
            return False
        self.seen.add(child.identity)
        if any(c.name in _MARKS for c in children if not c.is_directory):
            self._walk(path, children, depth + 1)
        elif _holds_partition(children) or (is_log_directory and is_partition):
            self._add_partition(path, children, parent)
        elif not is_log_directory and depth < MAX_DEPTH:
            self._walk(path, children, depth + 1)
        else:
            return False
        return True

    def _add_partition(
        self, path: bytes, children: Sequence[Entry], log_directory: bytes | None
    ) -> None:
        topic, partition, state = parse_partition_name(os.path.basename(path)) or (
            None,
            None,
            "live",
        )
        files = _in_order([_file_entry(path, child) for child in children])
        names, sizes, odd = self._condensed(files)
        self.partitions.append(
            Partition(
                directory=path,
                topic=topic,
                partition=partition,
                state=state,
                names=names,
                sizes=sizes,
                odd_files=odd,
                live_base_offsets=_live_base_offsets(files),
                stopped_cleanly=self._stopped_cleanly(path),
                log_directory=log_directory,
            )
        )

    def _condensed(
        self, files: Sequence[FileEntry]
    ) -> tuple[tuple[bytes, ...], tuple[int, ...], tuple[FileEntry, ...]]:
        """Names, sizes, and the files that these do not tell everything of."""
        names = tuple(file.name for file in files)
        odd = tuple(f for f in files if f != _plain_file(f.directory, f.name, f.size))
        return self.names.setdefault(names, names), tuple(file.size for file in files), odd

    def _stopped_cleanly(self, partition_directory: bytes) -> bool:
        above = os.path.dirname(partition_directory)
        known = self.clean_stops.get(above)
        if known is None:
            known = self.clean_stops[above] = self.files.exists(_join(above, CLEAN_SHUTDOWN))
        return known

    def _list(self, path: bytes, identity: Hashable) -> Sequence[Entry] | None:
        if identity in self.seen:
            return None
        self.seen.add(identity)
        try:
            return self.files.list(path)
        except OSError as error:
            self._cannot_read(path, reason_of(error))
            return None

    def _cannot_read(self, path: bytes, reason: str) -> None:
        self.unreadable.append(Unreadable(path, reason))


def _file_entry(directory: bytes, child: Entry) -> FileEntry:
    kind, state, base_offset = classify(child.name)
    if child.is_directory and kind == "unknown":
        return FileEntry(directory, child.name, "directory")
    return FileEntry(directory, child.name, kind, state, child.size, base_offset, child.fault)


def _holds_partition(children: Sequence[Entry]) -> bool:
    return any(
        child.name in _PARTITION_FILES or _AS_KAFKA_WRITES.match(child.name)
        for child in children
        if not child.is_directory
    )


def _in_order(files: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
    """Segments by offset, however many digits their names have; the rest by name."""
    return tuple(sorted(files, key=lambda f: (f.base_offset is None, f.base_offset or 0, f.name)))


def _live_base_offsets(files: Sequence[FileEntry]) -> tuple[int, ...]:
    return tuple(
        sorted(
            {
                f.base_offset
                for f in files
                if f.kind == "segment" and f.state == "live" and f.base_offset is not None
            }
        )
    )


def _plain_file(directory: bytes, name: bytes, size: int) -> FileEntry:
    """A file of which name and size tell everything."""
    kind, state, base_offset = classify(name)
    return FileEntry(directory, name, kind, state, size, base_offset)


def _join(directory: bytes, name: bytes) -> bytes:
    """`os.path.join` of an absolute path and a name."""
    return directory + name if directory == b"/" else directory + b"/" + name

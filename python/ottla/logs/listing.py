"""Lists log directories, partitions and files below given paths.

A directory is recognised by its content, not by its name alone: `broker-1` may be partition 1 of
topic `broker`, or a broker's log directory.
"""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from ottla import _engine
from ottla.logs.inventory import (
    FileEntry,
    Inventory,
    LogDirectory,
    Partition,
    Unreadable,
    said_by,
)
from ottla.logs.names import (
    CLEAN_SHUTDOWN,
    classify,
    directory_kind,
    listed_order,
    live_base_offsets,
    parse_partition_name,
    topic_name,
)
from ottla.storage import ANYWHERE, Entry, Files, common_path, full_path, join, reason_of, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ottla.logs.names import PartitionState
    from ottla.storage import Source

# Levels between a given path and a log directory below it: /data → host → disk → kafka-logs.
MAX_DEPTH = 3

NameOfPartition: TypeAlias = "tuple[bytes, int, PartitionState] | None"
"""Topic, partition and state that the name of a directory says, if it is a partition's."""

Plain: TypeAlias = tuple[
    "Hashable", NameOfPartition, tuple[bytes, ...], tuple[int, ...], tuple[int, ...]
]
"""What tells a partition's directory from others, what its name says, names and sizes of the files
in it, and the base offsets of its live segments."""


def take_inventory(
    sources: Sequence[Source],
    replicas: Sequence[tuple[str, Source]] = (),
    *,
    files: Files = ANYWHERE,
    threads: int = 1,
    each: Callable[[Partition], object] | None = None,
) -> Inventory:
    """Lists everything below the sources, which may mix log directories, partitions and files.

    `replicas` are further sources, each with the name of the replica it belongs to. `files` reads
    all of them; so many `threads` list the partitions on this machine. `each` is called with every
    partition in order, while the next ones are listed.

    A source that is missing, unreadable or holds no files of Kafka is in `unreadable`; the others
    are listed nevertheless.

    >>> take_inventory(["nowhere"]).unreadable[0].reason
    'no such file or directory'

    Raises:
        StorageError: a source is a URI that does not lead to a store.
        MissingDependencyError: a source is in an object store, and obstore is not installed.
    """
    listing = _Listing(files, threads, each)
    given = [(None, source) for source in sources] + list(replicas)
    named = [(full_path(source), name) for name, source in given]
    paths = [path for path, _ in named]
    # Directories first: a file given along with its directory is then already listed.
    listing.add_files([path for path in paths if not listing.add_directory(path)])
    return Inventory(
        base=common_path(listing.bases) if listing.bases else b"/",
        log_directories=tuple(listing.log_directories),
        partitions=tuple(listing.partitions),
        unreadable=tuple(listing.unreadable.values()),
        too_deep=tuple(listing.too_deep),
        sources=tuple(sorted(named, key=lambda source: len(source[0]), reverse=True)),
        files=files,
    )


class _Listing:
    """An inventory being built."""

    def __init__(
        self, files: Files, threads: int, each: Callable[[Partition], object] | None
    ) -> None:
        self.files = files
        self.threads = threads
        self.each = each
        self.log_directories: list[LogDirectory] = []
        self.partitions: list[Partition] = []
        self.unreadable: dict[bytes, Unreadable] = {}
        self.bases: list[bytes] = []
        self.too_deep: list[bytes] = []
        # Identities of all directories listed, so that links cannot lead in circles and a directory
        # that is given twice is audited once.
        self.seen: set[Hashable] = set()
        # Most partitions have files of the same names.
        self.names: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        self.clean_stops: dict[bytes, bool] = {}

    def add_directory(self, path: bytes) -> bool:
        """Lists a source. Returns false for a regular file, which is listed later."""
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
        previous, self.files = self.files, files
        try:
            self._add_source(path, entry)
        finally:
            self.files = previous
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
        # One that is a partition itself holds no others.
        is_partition = any(
            p.directory == path for p in self.partitions[partition_count : partition_count + 1]
        )
        self.bases.append(os.path.dirname(path) if is_partition else path)

    def add_files(self, paths: Sequence[bytes]) -> None:
        """Lists files given by name, those of one directory as one partition."""
        by_directory: dict[bytes, dict[bytes, None]] = {}
        for path in paths:
            directory, name = os.path.split(path)
            by_directory.setdefault(directory, {})[name] = None
        listed = {partition.directory for partition in self.partitions}
        for directory, names in by_directory.items():
            if directory not in listed:
                self._add_named(directory, list(names))

    def _add_named(self, directory: bytes, names: Sequence[bytes]) -> None:
        files = []
        for name in names:
            entry = _file_entry(directory, self._stat(directory, name))
            if entry.kind == "unknown":
                # A file of any name may hold records: a copied segment, captured batches.
                entry = FileEntry(directory, name, "segment", size=entry.size, fault=entry.fault)
            if entry.kind in ("segment", "metadata-snapshot"):
                files.append(entry)
            else:
                kind = entry.kind.replace("-", " ")
                self._cannot_read(
                    entry.path, f"{kind}, not a segment: give its .log file or the directory"
                )
        if files and not any(file.size or file.fault for file in files):
            for file in files:
                self._cannot_read(file.path, "the file is empty")
            return
        if not files:
            return
        is_partition = parse_partition_name(os.path.basename(directory)) is not None
        self.bases.append(os.path.dirname(directory) if is_partition else directory)
        try:
            siblings = [_file_entry(directory, c) for c in self.files.list(directory)]
        except OSError:
            siblings = files
        described = (*self._condensed(_in_order(files)), _live_base_offsets(siblings))
        self._append(directory, *described, log_directory=None, is_whole=False)

    def _stat(self, directory: bytes, name: bytes) -> Entry:
        try:
            return self.files.stat(join(directory, name))
        except OSError as error:
            return Entry(name, is_directory=False, size=0, fault=reason_of(error))

    def _walk(self, path: bytes, children: Sequence[Entry], depth: int) -> None:
        """Lists a directory by its content: a partition, a log directory, or several of those."""
        kind = _kind_of(children)
        if kind == "partition":
            self._add_partition(path, children, None)
            return
        is_log_directory = kind == "log-directory"
        partition_count = len(self.partitions)
        others: list[Entry] = []
        for child, plain in self._with_plain(path, children):
            if plain is not None:
                self._add_plain(path, child, *plain)
            elif not (child.is_directory and self._add_child(path, child, is_log_directory, depth)):
                others.append(child)
        for child in others:
            is_partition = is_log_directory and parse_partition_name(child.name) is not None
            if child.fault is not None and (is_partition or child.leads_nowhere):
                self._cannot_read(join(path, child.name), child.fault)
        has_partitions = any(p.log_directory == path for p in self.partitions[partition_count:])
        if is_log_directory or has_partitions:
            files = _in_order([_file_entry(path, child) for child in others])
            self.log_directories.append(LogDirectory(path, files))

    def _with_plain(
        self, parent: bytes, children: Sequence[Entry]
    ) -> Iterator[tuple[Entry, tuple[bytes, Plain] | None]]:
        """Yields the children of a directory, plain partitions with their paths and what they hold.

        These are most of what a broker has. Threads of the engine list them while those before are
        looked at here.
        """
        if store_of(parent) is not None:
            yield from ((child, None) for child in children)
            return
        paths = [join(parent, child.name) for child in children if child.is_directory]
        pieces = _engine.list_plain_partitions(paths, threads=self.threads)
        listed = zip(paths, chain.from_iterable(pieces), strict=True)
        for child in children:
            path, plain = next(listed) if child.is_directory else (b"", None)
            yield child, None if plain is None else (path, plain)

    def _add_child(self, parent: bytes, child: Entry, is_log_directory: bool, depth: int) -> bool:
        """Lists a directory inside another. Returns false if it holds no files of Kafka."""
        path = join(parent, child.name)
        identity = self._identity(path, child)
        if identity in self.seen:
            return True
        is_partition = parse_partition_name(child.name) is not None
        try:
            children = self.files.list(path)
        except OSError as error:
            if is_partition or not (is_log_directory or child.name == b"lost+found"):
                self._cannot_read(path, reason_of(error))
                return True
            return False
        self.seen.add(identity)
        kind = _kind_of(children)
        if kind == "log-directory":
            self._walk(path, children, depth + 1)
        elif kind == "partition" or (is_log_directory and is_partition):
            self._add_partition(path, children, parent)
        elif not is_log_directory and depth < MAX_DEPTH:
            self._walk(path, children, depth + 1)
        else:
            if not is_log_directory and any(inner.is_directory for inner in children):
                self.too_deep.append(path)
            return False
        return True

    def _add_plain(self, parent: bytes, child: Entry, path: bytes, plain: Plain) -> None:
        identity, said, names, sizes, offsets = plain
        if identity is None:
            identity = self._identity(path, child)
        if identity in self.seen:
            return
        self.seen.add(identity)
        topic, number, state = said or (None, None, "live")
        # In the order of the fields: by name it takes twice as long, and a broker has many.
        partition = Partition(
            path,
            None if topic is None else topic_name(topic),
            number,
            state,
            self.names.setdefault(names, names),
            sizes,
            (),
            offsets,
            self._stopped_cleanly(parent),
            parent,
        )
        self._add(partition)

    def _add(self, partition: Partition) -> None:
        self.partitions.append(partition)
        if self.each is not None:
            self.each(partition)

    def _identity(self, path: bytes, child: Entry) -> Hashable:
        """Returns what tells a directory from others."""
        if child.identity is not None:
            return child.identity
        try:
            return self.files.stat(path).identity
        except OSError:
            # Whoever lists it is told why.
            return path

    def _add_partition(
        self, path: bytes, children: Sequence[Entry], log_directory: bytes | None
    ) -> None:
        files = _in_order([_file_entry(path, child) for child in children])
        described = (*self._condensed(files), _live_base_offsets(files))
        self._append(path, *described, log_directory=log_directory)

    def _append(
        self,
        path: bytes,
        names: tuple[bytes, ...],
        sizes: tuple[int, ...],
        odd_files: tuple[FileEntry, ...],
        live_base_offsets: tuple[int, ...],
        *,
        log_directory: bytes | None,
        is_whole: bool = True,
    ) -> None:
        # A name that is no partition's tells nothing of it.
        said = parse_partition_name(os.path.basename(path))
        topic, partition, state = said or (None, None, "live")
        self._add(
            Partition(
                directory=path,
                topic=topic,
                partition=partition,
                state=state,
                names=names,
                sizes=sizes,
                odd_files=odd_files,
                live_base_offsets=live_base_offsets,
                stopped_cleanly=self._stopped_cleanly(log_directory or os.path.dirname(path)),
                log_directory=log_directory,
                is_whole=is_whole,
            )
        )

    def _condensed(
        self, files: Sequence[FileEntry]
    ) -> tuple[tuple[bytes, ...], tuple[int, ...], tuple[FileEntry, ...]]:
        """Returns names, sizes, and the files that these do not describe completely."""
        names = tuple(file.name for file in files)
        odd = tuple(
            file
            for file, said in zip(files, said_by(names), strict=True)
            if file.fault is not None or (file.kind, file.state, file.base_offset) != said
        )
        return self.names.setdefault(names, names), tuple(file.size for file in files), odd

    def _stopped_cleanly(self, above: bytes) -> bool:
        known = self.clean_stops.get(above)
        if known is None:
            known = self.clean_stops[above] = self.files.exists(join(above, CLEAN_SHUTDOWN))
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
        self.unreadable.setdefault(path, Unreadable(path, reason))


def _file_entry(directory: bytes, child: Entry) -> FileEntry:
    kind, state, base_offset = classify(child.name)
    if child.is_directory and kind == "unknown":
        return FileEntry(directory, child.name, "directory")
    return FileEntry(directory, child.name, kind, state, child.size, base_offset, child.fault)


def _kind_of(children: Sequence[Entry]) -> str:
    return directory_kind([child.name for child in children if not child.is_directory])


def _in_order(files: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
    return tuple(files[index] for index in listed_order([file.name for file in files]))


def _live_base_offsets(files: Iterable[FileEntry]) -> tuple[int, ...]:
    return tuple(live_base_offsets([file.name for file in files]))

"""The partitions that `ottla read` was asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.terminal import complain
from ottla.errors import NotAPartitionError
from ottla.logs.listing import take_inventory
from ottla.logs.names import display
from ottla.storage import files_within, full_path
from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.logs.inventory import Inventory, Partition

__all__ = ["Source", "find"]

NAMES_SHOWN = 3


class Source(NamedTuple):
    """A partition directory, or one of its segments."""

    path: bytes
    name: str
    """As it was given, or relative to what was."""
    topic: str | None
    partition: int | None

    @property
    def title(self) -> str:
        """Topic and partition, or what it is called without them."""
        return self.name if self.topic is None else f"{self.topic}-{self.partition}"


def find(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    storage_options: dict[str, str],
) -> tuple[list[Source], bool]:
    """Returns the partitions at or below some paths, and whether all of them could be listed.

    What cannot be listed, and directories that are none of a live partition, are told.

    Raises:
        NotAPartitionError: there is none, or none of these topics and numbers.
        OSError: a path is not there.
    """
    found: list[Source] = []
    known: set[tuple[str | None, int | None]] = set()
    is_whole = True
    for path in paths:
        for source in _at(path, storage_options):
            if source is None:
                is_whole = False
                continue
            known.add((source.topic, source.partition))
            if _is_asked_for(source, topics, partitions):
                found.append(source)
    if not found:
        raise NotAPartitionError(_nothing_matches(topics, partitions, known))
    return found, is_whole


def _at(path: str, storage_options: dict[str, str]) -> Iterator[Source | None]:
    """Yields what is at a path, None for each place that cannot be listed."""
    (files := files_within([path], storage_options)).stat(full_path(path))
    inventory = take_inventory([path], files=files)
    there = inventory.partitions
    shown, full = display(os.fsencode(path)), full_path(path)
    if not there or (len(there) == 1 and there[0].directory in (full, os.path.dirname(full))):
        # Whoever reads it says what it is if it is no partition.
        topic, number = (there[0].topic, there[0].partition) if there else (None, None)
        yield Source(os.fsencode(path), shown, topic, number)
        return
    left_out = [partition for partition in there if partition.state != "live"]
    if left_out:
        names = listed([inventory.display(p.directory) for p in left_out], NAMES_SHOWN)
        complain(f"{shown}: left out, as no broker reads it from there: {names}")
    for partition in sorted(there, key=_place):
        if partition.state == "live":
            yield _below(path, partition)
    yield from _unlisted(inventory)


def _below(path: str, partition: Partition) -> Source:
    relative = os.path.relpath(partition.directory, full_path(path))
    name = display(os.path.join(os.fsencode(path), relative))
    return Source(partition.directory, name, partition.topic, partition.partition)


def _place(partition: Partition) -> tuple[str, int, bytes]:
    number = -1 if partition.partition is None else partition.partition
    return partition.topic or "", number, partition.directory


def _unlisted(inventory: Inventory) -> Iterator[None]:
    for unreadable in inventory.unreadable:
        complain(f"{display(unreadable.path)}: {unreadable.reason}")
        yield None
    for path in inventory.too_deep:
        complain(f"{display(path)}: too many directories inside each other to look into")
        yield None


def _is_asked_for(source: Source, topics: Sequence[str], partitions: Sequence[int]) -> bool:
    if partitions and source.partition not in partitions:
        return False
    if not topics:
        return True
    # It is loaded for a pattern alone.
    from fnmatch import fnmatchcase

    return source.topic is not None and any(fnmatchcase(source.topic, glob) for glob in topics)


def _nothing_matches(
    topics: Sequence[str],
    partitions: Sequence[int],
    known: set[tuple[str | None, int | None]],
) -> str:
    names = {topic for topic, _ in known if topic is not None}
    if topics and not _matching(names, topics):
        from ottla.logs.near import near_names

        wanted = ", ".join(repr(glob) for glob in topics)
        return f"no topic matches {wanted}{near_names(topics[0], names, 'topics')}"
    if partitions:
        of = _matching(names, topics) if topics else names
        numbers = sorted({number for topic, number in known if topic in of and number is not None})
        wanted = ", ".join(map(str, partitions))
        there = listed(list(map(str, numbers)), 10) if numbers else "none"
        return f"no partition has the number {wanted}; those here: {there}"
    return "no partition is there to read"


def _matching(names: set[str], topics: Sequence[str]) -> set[str]:
    from fnmatch import fnmatchcase

    return {name for name in names if any(fnmatchcase(name, glob) for glob in topics)}

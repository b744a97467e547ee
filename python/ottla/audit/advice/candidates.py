"""What can be done to a partition's directory before a start.

Nothing here says that it is any good: each candidate is tried, alone and beside others.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple

from ottla.logs.inventory import said_by
from ottla.logs.names import LEADER_EPOCHS, classify, lacks_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.audit.advice.deed import DeedName
    from ottla.audit.advice.trial import Directory, Trial
    from ottla.logs.inventory import FileEntry

INDEX_FINDINGS = ("index-mismatch", "timeindex-mismatch", "txnindex-mismatch")
"""Findings about files that a start makes anew where the `.index` of the segment is missing."""

SNAPSHOT_FINDING = "snapshot-mismatch"

MAX_SEGMENTS_MOVED = 8
"""Segments that are tried without, one after the other."""


class Named(NamedTuple):
    """A finding, and the file of the partition's directory that it is about."""

    finding: str
    file: bytes


class FileOperation(NamedTuple):
    """What is done to one file of a partition's directory, or to the directory (no name)."""

    operation: Literal["delete", "move"]
    name: bytes = b""


class Candidate(NamedTuple):
    """Something that can be done to a partition's directory."""

    deed: DeedName
    operations: frozenset[FileOperation]

    @property
    def gone(self) -> frozenset[bytes]:
        """The files that are not there any more."""
        return frozenset(operation.name for operation in self.operations)

    def beside(self, other: Candidate) -> Candidate:
        """Both."""
        if not (self.operations and other.operations):
            return self if self.operations else other
        operations = self.operations | other.operations
        deed = self.deed if self.deed == other.deed else "several"
        if deed == "several" and all(o.operation == "delete" for o in operations):
            deed = "delete-side-files"
        return Candidate(deed, operations)


NOTHING = Candidate("nothing", frozenset())
MOVE_PARTITION = Candidate("move-partition", frozenset([FileOperation("move")]))


def candidates(directory: Directory, nothing: Trial, named: Sequence[Named]) -> list[Candidate]:
    """What may help where a start refuses a partition, cuts its log, or exposes aborted records.

    Args:
        directory: the partition's.
        nothing: the start over the directory as it is.
        named: findings, each with the file it is about.
    """
    names = directory.partition.names
    found = dict.fromkeys(_candidates(names, directory.partition.segments, nothing, named))
    return [candidate for candidate in found if candidate.operations]


def wrong_side_files(names: Sequence[bytes], named: Sequence[Named]) -> tuple[bytes, ...]:
    """The files that findings say are wrong, and that a start can make anew or do without."""
    there = frozenset(names)
    wrong = [n.file for n in named if n.finding in INDEX_FINDINGS]
    wrong += [n.file for n in named if n.finding == SNAPSHOT_FINDING and n.file in there]
    return tuple(dict.fromkeys(wrong))


def mends(
    names: Sequence[bytes], segments: Sequence[FileEntry], wrong: Sequence[bytes]
) -> list[Candidate]:
    """What may have a start make wrong side files anew.

    Whether it does has to be tried: without any snapshot, a start after a clean stop forgets all
    producers, but one that reads the last segment from its beginning takes a snapshot of them.
    """
    snapshots = [name for name in wrong if _is_snapshot(name)]
    others = [name for name in wrong if not _is_snapshot(name)]
    indexes = _indexes(names, {_stem(file) for file in others}, also=others)
    without = _deletes("delete-snapshot", snapshots)
    last = _indexes(names, [_stem(file.name) for file in segments][-1:])
    found = [indexes, without, without.beside(last), indexes.beside(without)]
    found.append(indexes.beside(without).beside(last))
    return [candidate for candidate in dict.fromkeys(found) if candidate.operations]


def _candidates(
    names: Sequence[bytes],
    segments: Sequence[FileEntry],
    nothing: Trial,
    named: Sequence[Named],
) -> Iterator[Candidate]:
    stems = [_stem(file.name) for file in segments]
    last = stems[-1:]
    wrong = [n.file for n in named if n.finding in INDEX_FINDINGS]
    exposing = _holding((offset for _, _, offset in nothing.exposed), segments)
    yield _indexes(names, last)
    yield _indexes(names, {_stem(file) for file in wrong}, also=wrong)
    yield _indexes(names, {*last, *map(_stem, wrong)}, also=wrong)
    yield _indexes(names, exposing)
    yield _indexes(names, {*last, *exposing})
    yield _indexes(names, stems)
    snapshots = _deletes("delete-snapshot", _of_kind(names, "producer-snapshot"))
    if not nothing.effect.opens or any(n.finding == SNAPSHOT_FINDING for n in named):
        yield snapshots
    if not nothing.effect.opens and LEADER_EPOCHS in names:
        epochs = _deletes("delete-leader-epochs", [LEADER_EPOCHS])
        yield epochs
        # A segment that is read from its beginning shows its epochs again.
        yield epochs.beside(_indexes(names, stems))
    odd = [name for name in names if lacks_offset(name)]
    yield Candidate("move-file", frozenset(FileOperation("move", name) for name in odd))
    suspects = {_stem(n.file) for n in named if n.finding not in INDEX_FINDINGS}
    moved = [stem for stem in reversed(stems) if stem in suspects or stem in last]
    for stem in moved[:MAX_SEGMENTS_MOVED]:
        files = [name for name in names if _stem(name) == stem and not _is_snapshot(name)]
        yield Candidate("move-segment", frozenset(FileOperation("move", name) for name in files))


def _indexes(
    names: Sequence[bytes], stems: Iterable[bytes], also: Sequence[bytes] = ()
) -> Candidate:
    """Without the `.index` of some segments: a start reads them from their beginning."""
    of = frozenset(stems)
    # Of a `.timeindex` that is wrong nothing should be left to be believed.
    wanted = {file for file in (*_of_kind(names, "offset-index"), *also) if _stem(file) in of}
    return _deletes("delete-index", [name for name in names if name in wanted])


def _deletes(deed: DeedName, names: Sequence[bytes]) -> Candidate:
    return Candidate(deed, frozenset(FileOperation("delete", name) for name in names))


def _of_kind(names: Sequence[bytes], wanted: str) -> list[bytes]:
    said = zip(names, said_by(tuple(names)), strict=True)
    return [name for name, (kind, state, _) in said if kind == wanted and state == "live"]


def _is_snapshot(name: bytes) -> bool:
    return classify(name)[0] == "producer-snapshot"


def _stem(name: bytes) -> bytes:
    return name.split(b".", 1)[0]


def _holding(offsets: Iterable[int], segments: Sequence[FileEntry]) -> set[bytes]:
    """The segments that offsets are in."""
    based = [(f.base_offset, f.name) for f in segments if f.base_offset is not None]
    bases = [base_offset for base_offset, _ in based]
    after = {bisect_right(bases, offset) for offset in offsets}
    return {_stem(based[number - 1][1]) for number in after if number}

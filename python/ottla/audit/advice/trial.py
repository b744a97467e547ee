"""One start, tried on a partition's directory as a deed would leave it, and what it costs.

Readable are the offsets that `ottla read` gives before the start. They are lost when they are
outside the log after it, and cut when they are inside, in bytes that the start cuts off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.logs.names import classify, display, file_name
from ottla.logs.packed import PackedRows
from ottla.logs.recovery import places_of
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from ottla.logs.inventory import FileEntry, Partition
    from ottla.logs.names import FileKind
    from ottla.storage import Files, Place

    Progress: TypeAlias = Callable[[int], bool]
    Remainder: TypeAlias = tuple[int, int, tuple[int, ...]]

ALL_BYTES = 2**64 - 1
"""Of a segment that a start leaves as it is."""


class Start(NamedTuple):
    """How a broker comes to start."""

    clean: bool
    """It finds `.kafka_cleanshutdown`."""
    recovery_point: int
    """The first offset that it takes for not flushed."""


class Effect(NamedTuple):
    """What a start makes of a partition."""

    opens: bool | None
    """False: the broker gives up its start. None: the partition is not there."""
    error: str | None
    """The exception with which it gives up, and its message."""
    is_put_aside: bool
    """The directory has no topic id, and becomes a stray one."""
    log_start_offset: int | None
    log_end_offset: int | None
    readable: int
    """Readable offsets before."""
    inside: int
    """Of these, those between the start and the end of the log."""
    left: int
    """Of these in turn, those in bytes that are left."""
    exposed_transactions: int
    """Aborted transactions whose records read_committed consumers get."""
    leader_epochs: int
    """Leader epochs that are known."""
    producers: int | None
    """Producers whose sequence numbers and open transactions are known; None: not tried."""
    mended: tuple[bytes, ...]
    """Of the side files that are wrong, those that the start makes anew or does without."""

    @property
    def refuses(self) -> bool:
        """The broker does not start."""
        return self.opens is False

    @property
    def readable_offsets_lost(self) -> int:
        """Readable offsets outside the log after the start."""
        return self.readable - self.inside if self._is_there else self.readable

    @property
    def readable_offsets_cut(self) -> int:
        """Readable offsets inside that log, in bytes that are cut off before its end."""
        return self.inside - self.left if self._is_there else 0

    @property
    def _is_there(self) -> bool:
        return self.opens is True and not self.is_put_aside

    @property
    def gone(self) -> int:
        """Readable offsets that the log does not have any more."""
        return self.readable_offsets_lost + self.readable_offsets_cut

    @property
    def is_perfect(self) -> bool:
        """Nothing is lost, and nothing is in the way."""
        return self._is_there and not self.gone and not self.exposed_transactions


class Trial(NamedTuple):
    """What is kept of a prediction, which may hold any number of producers."""

    effect: Effect
    """Its price, as yet without any offsets."""
    left: tuple[Remainder, Remainder]
    """What is left of the log by its bytes, and by its offsets alone."""
    exposed: Sequence[tuple[int, int, int]]
    """As in a prediction."""
    keeps_producers: bool
    """All are known that the same start knows of the directory as it is."""


@dataclass(slots=True)
class Directory:
    """A partition's directory, on which starts are tried.

    Args:
        partition: a whole one.
        log_start_offset: of its checkpoint, or 0.
        aborted: its aborted transactions.
        files: where it is read.
        progress: stops by returning false.
        wrong: side files that are wrong, which a start may make anew.
    """

    partition: Partition
    log_start_offset: int
    aborted: Sequence[tuple[int, int, int]]
    files: Files
    progress: Progress | None
    wrong: tuple[bytes, ...] = ()
    bytes_read: int = 0
    """By all that was done."""
    _places: Mapping[bytes, Place] | None = None
    """Its files by name, once they are known."""
    _offsets: _engine.ReadableOffsets | None = None
    _readable: int = 0
    _kept: dict[Remainder, int] = field(default_factory=dict)
    """Readable offsets of each remainder that was counted."""
    _segments: list[FileEntry] = field(init=False)
    """Those that can be read."""
    _producers: dict[Start, bytes] = field(default_factory=dict)
    """Known after each start over the directory as it is."""

    def __post_init__(self) -> None:
        self._segments = [file for file in self.partition.segments if file.fault is None]

    def predict(self, start: Start, gone: frozenset[bytes] = frozenset()) -> Trial:
        """The start over the directory without some files; first over the directory as it is.

        Raises:
            OSError: a file cannot be read.
            AuditCancelledError: `progress` said so.
        """
        if self._places is None:
            self._places = places_of(self.partition, self.files)
        after = _engine.predict_recovery(
            {name: place for name, place in self._places.items() if name not in gone},
            partition=display(os.path.basename(self.partition.directory)),
            clean=start.clean,
            recovery_point=start.recovery_point,
            log_start_offset=self.log_start_offset,
            aborted=PackedRows.of(self.aborted).data,
            progress=self._after_what_is_read(),
        )
        opens = after.error is None
        exposed: PackedRows[tuple[int, int, int]] = PackedRows(after.exposed)
        effect = Effect(
            opens=opens,
            error=None if opens else _error(after),
            is_put_aside=opens and after.is_stray,
            log_start_offset=after.log_start_offset if opens else None,
            log_end_offset=after.log_end_offset if opens else None,
            readable=0,
            inside=0,
            left=0,
            exposed_transactions=len(exposed),
            leader_epochs=len(after.leader_epochs),
            producers=after.producer_count,
            mended=_mended(self.wrong, after, gone),
        )
        if start not in self._producers:
            self._producers[start] = after.producer_ids()
        keeps_producers = after.knows_producers(self._producers[start])
        names = [file.name for file in self._segments]
        return Trial(effect, _remainders(after, names), exposed, keeps_producers)

    def effects(self, trials: Sequence[Trial]) -> list[Effect]:
        """The effect of each start; reads the partition once, for all that it is asked.

        Raises:
            OSError: a file cannot be read.
            AuditCancelledError: `progress` said so.
        """
        remainders = dict.fromkeys(r for trial in trials for r in trial.left if r not in self._kept)
        if remainders:
            if self._offsets is None:
                self._offsets = _engine.ReadableOffsets(
                    [(self.files.place(f.path, f.size), f.base_offset) for f in self._segments],
                    start_offset=self.log_start_offset,
                    stopped_cleanly=self.partition.stopped_cleanly,
                )
            progress = self._after_what_is_read()
            self._readable, kept = self._offsets.count(list(remainders), progress)
            self._kept.update(zip(remainders, kept, strict=True))
        effects = []
        for trial in trials:
            left, inside = (self._kept[remainder] for remainder in trial.left)
            effect = trial.effect._replace(readable=self._readable, inside=inside, left=left)
            effects.append(effect)
        return effects

    def _after_what_is_read(self) -> Progress:
        """`progress` of one more reading, whose bytes come on top of those before."""
        before = self.bytes_read

        def advance(read: int) -> bool:
            self.bytes_read = before + read
            return self.progress is None or self.progress(self.bytes_read)

        return advance


def moved_away(readable: int) -> Effect:
    """What becomes of a partition whose directory is not there at the start."""
    return Effect(
        opens=None,
        error=None,
        is_put_aside=False,
        log_start_offset=None,
        log_end_offset=None,
        readable=readable,
        inside=0,
        left=0,
        exposed_transactions=0,
        leader_epochs=0,
        producers=0,
        mended=(),
    )


def _remainders(after: _engine.Recovery, names: Sequence[bytes]) -> tuple[Remainder, Remainder]:
    """What is left of the log by its bytes, and by its offsets alone."""
    opens = after.error is None
    start, end = (after.log_start_offset, after.log_end_offset) if opens else (0, 0)
    by_offsets = (ALL_BYTES,) * len(names)
    # A segment that was split is in other files, all of it.
    if any(_kind(file) == "segment" for file in after.files_created):
        return (start, end, by_offsets), (start, end, by_offsets)
    left, before = dict(after.segments), dict(after.bytes_before)
    bytes_left = tuple(
        ALL_BYTES if left.get(name) == before.get(name, -1) else left.get(name, 0) for name in names
    )
    return (start, end, bytes_left), (start, end, by_offsets)


def _mended(
    wrong: Sequence[bytes], after: _engine.Recovery, gone: frozenset[bytes]
) -> tuple[bytes, ...]:
    """The wrong side files that a start does not go on with."""
    if not wrong:
        return ()
    deleted = {*after.files_deleted, *after.snapshots_rewritten}
    rebuilt = {file for file, _ in after.rebuilt}

    def is_mended(name: bytes) -> bool:
        kind, _, base_offset = classify(name)
        if kind == "producer-snapshot":
            return name in gone or name in deleted
        if base_offset is None or after.error is not None:
            return False
        return file_name("segment", base_offset) in rebuilt

    return tuple(filter(is_mended, wrong))


def _kind(name: bytes) -> FileKind:
    return classify(name)[0]


def _error(after: _engine.Recovery) -> str:
    name = (after.error or "").rpartition(".")[2]
    return f"{name}: {visible(after.message or '')}".rstrip(". ")

"""What a checkpoint of a stream holds: how far each partition was read, and what was planned.

A checkpoint of version 2 is ``{"version": 2, "partitions": {directory: {…}}}``. Checkpoints of
version 1 have no version: directories with base offset, position and next offset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import SparkError
from ottla.logs.names import MAX_OFFSET

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2

MAX_HOLES = 8
"""Holes between segments that a checkpoint remembers of a partition, the newest."""

Json = dict[str, Any]


class LastBatch(NamedTuple):
    """The last batch that was read, by which its log is known again."""

    position: int
    digest: int
    """Of its header."""


class Planned(NamedTuple):
    """What was planned to be read of a partition: a replay is proved to read the same."""

    first_offset: int
    digest: int
    """A sum of hashes of the headers of all batches, modulo 2^64."""
    begins_anew: bool = False
    """Whether this is another log than the one read before, and read from its start."""
    aborted: int = 0
    """A hash of the aborted transactions with records there, with `read_committed`; 0 without."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a partition has been read."""

    segment: int
    """Base offset of the segment."""
    position: int
    """Position in the segment, a hint: compaction moves it."""
    next_offset: int
    """All records from `first_offset` to before this offset have been read."""
    first_offset: int | None = None
    """Where reading the partition began; None in a checkpoint of version 1."""
    has_earlier: bool = False
    """Whether reading began behind the start of the log, as asked."""
    leader_epoch: int = -1
    topic_id: str | None = None
    last_batch: LastBatch | None = None
    passed_offsets: int = 0
    """Offsets that were lost, and passed over as `fail_on_data_loss=false` asks."""
    holes: tuple[tuple[int, int], ...] = ()
    """First and last offset of holes between segments that were passed as lawful: if a segment of
    one comes later, it is not passed over."""
    planned: Planned | None = None
    """None if nothing was planned in this trigger."""

    @property
    def place(self) -> tuple[int, int, int]:
        """Where reading stands."""
        return self.segment, self.position, self.next_offset


def to_json(reached: Mapping[str, Reached]) -> Json:
    """Returns the content of a checkpoint.

    >>> to_json({"/logs/orders-0": Reached(0, 120, 3, first_offset=0)})["partitions"]
    {'/logs/orders-0': {'segment': 0, 'position': 120, 'next_offset': 3, 'first_offset': 0}}
    """
    partitions = {name: _entry(one) for name, one in reached.items()}
    return {"version": VERSION, "partitions": partitions}


def _entry(reached: Reached) -> Json:
    entry: Json = {
        "segment": reached.segment,
        "position": reached.position,
        "next_offset": reached.next_offset,
    }
    if reached.first_offset is not None:
        entry["first_offset"] = reached.first_offset
    if reached.has_earlier:
        entry["has_earlier"] = True
    if reached.leader_epoch >= 0:
        entry["leader_epoch"] = reached.leader_epoch
    if reached.topic_id is not None:
        entry["topic_id"] = reached.topic_id
    if reached.last_batch is not None:
        entry["last_batch"] = [reached.last_batch.position, f"{reached.last_batch.digest:016x}"]
    if reached.passed_offsets:
        entry["passed_offsets"] = reached.passed_offsets
    if reached.holes:
        entry["holes"] = [list(hole) for hole in reached.holes]
    if reached.planned is not None:
        planned: Json = {
            "first_offset": reached.planned.first_offset,
            "digest": f"{reached.planned.digest:016x}",
        }
        if reached.planned.begins_anew:
            planned["begins_anew"] = True
        if reached.planned.aborted:
            planned["aborted"] = f"{reached.planned.aborted:016x}"
        entry["planned"] = planned
    return entry


def from_json(content: object) -> dict[str, Reached]:
    """Returns how far partitions have been read.

    Raises:
        SparkError: it is of a newer version of Ottla, of another source, or not whole.
    """
    if not isinstance(content, dict):
        raise _broken(f"it is {content!r}, not an object")
    if not content:
        return {}
    version = content.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _broken(f"its version is {version!r}, not a number")
    if version > VERSION:
        raise SparkError(
            f"the checkpoint is of version {version}, this Ottla reads up to {VERSION}: go on with"
            " the Ottla that wrote it, or a newer one"
        )
    partitions = content if "version" not in content else content.get("partitions")
    if not isinstance(partitions, dict):
        raise _broken(f"its partitions are {partitions!r}, not an object")
    return {name: _reached(name, entry) for name, entry in partitions.items()}


def _broken(what: str) -> SparkError:
    return SparkError(
        f"the checkpoint is not one of format ottla: {what}; give the checkpointLocation of this"
        " query, or a new one to read from the start"
    )


def _reached(name: str, entry: object) -> Reached:
    if not isinstance(entry, dict):
        raise _broken(f"{name} has {entry!r}, not an object")
    fields = _Fields(name, entry)
    last = fields.optional("last_batch", list)
    planned = fields.optional("planned", dict)
    first = entry.get("first_offset")
    reached = Reached(
        segment=fields.number("segment"),
        position=fields.number("position"),
        next_offset=fields.number("next_offset"),
        first_offset=None if first is None else fields.number("first_offset"),
        has_earlier=fields.flag("has_earlier"),
        leader_epoch=fields.number("leader_epoch", -1),
        topic_id=fields.optional("topic_id", str),
        last_batch=None if last is None else fields.last_batch(last),
        passed_offsets=fields.number("passed_offsets", 0),
        holes=fields.holes(),
        planned=None if planned is None else _planned(name, planned),
    )
    if reached.first_offset is not None and reached.first_offset > reached.next_offset:
        raise _broken(
            f"{name} has first_offset {reached.first_offset}, which is above its next_offset"
            f" {reached.next_offset}"
        )
    return reached


def _planned(name: str, entry: Json) -> Planned:
    fields = _Fields(f"{name} planned", entry)
    return Planned(
        fields.number("first_offset"),
        fields.digest(entry.get("digest")),
        fields.flag("begins_anew"),
        fields.digest(entry["aborted"]) if "aborted" in entry else 0,
    )


class _Fields:
    """The fields of an entry, checked."""

    def __init__(self, name: str, entry: Json) -> None:
        self._name = name
        self._entry = entry

    def number(self, field: str, default: int | None = None) -> int:
        value = self._entry.get(field, default)
        if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= MAX_OFFSET:
            raise self._wrong(field, value, f"a number up to {MAX_OFFSET}")
        if value < 0 and default != value:
            raise self._wrong(field, value, "at least 0")
        return value

    def flag(self, field: str) -> bool:
        value = self._entry.get(field, False)
        if not isinstance(value, bool):
            raise self._wrong(field, value, "true or false")
        return value

    def optional(self, field: str, kind: type) -> Any:
        value = self._entry.get(field)
        if value is not None and not isinstance(value, kind):
            expected = "a list" if kind is list else "an object" if kind is dict else "text"
            raise self._wrong(field, value, expected)
        return value

    def holes(self) -> tuple[tuple[int, int], ...]:
        value = self.optional("holes", list) or []
        for hole in value:
            if not isinstance(hole, list) or [type(offset) for offset in hole] != [int, int]:
                raise self._wrong("holes", hole, "pairs of offsets")
        return tuple((first, last) for first, last in value)

    def last_batch(self, value: list[Any]) -> LastBatch:
        if [type(part) for part in value] != [int, str] or not 0 <= value[0] <= MAX_OFFSET:
            raise self._wrong("last_batch", value, "a position and a digest")
        return LastBatch(value[0], self.digest(value[1]))

    def digest(self, value: object) -> int:
        if isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value):
            return int(value, 16)
        raise self._wrong("digest", value, "16 hexadecimal digits")

    def _wrong(self, field: str, found: object, expected: str) -> SparkError:
        return _broken(f"{self._name} has {field} {found!r}, expected {expected}")

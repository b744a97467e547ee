"""What the files beside segments hold, entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla import _engine
from ottla.errors import ProducerSnapshotError
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.logs.columns import Row

__all__ = ["KINDS", "SideEntries", "side_entries"]


class SideEntries(NamedTuple):
    """The entries of a file."""

    columns: tuple[str, ...]
    rows: list[Row]
    unused: int = 0
    """Bytes behind the entries that are zeros, as a broker preallocates them."""
    fault: str | None = None
    """What cannot be read, and where."""


def side_entries(kind: str, data: bytes, base_offset: int | None) -> SideEntries:
    """Returns the entries of a file of one of `KINDS`.

    Args:
        kind: of the file, as `ottla.logs.names.classify` says it.
        data: its bytes.
        base_offset: of its segment; without it, the offsets of indexes are relative to that.
    """
    return KINDS[kind](data, base_offset)


def _of_index(kind: str, *columns: str) -> Callable[[bytes, int | None], SideEntries]:
    def entries(data: bytes, base_offset: int | None) -> SideEntries:
        rows, end = _engine.parse_side_entries(kind, data, base_offset or 0)
        named = columns
        if base_offset is None:
            named = tuple(f"relative_{name}" if name == "offset" else name for name in columns)
        rest = data[end:]
        if kind != "transaction-index" and not rest.strip(b"\0"):
            return SideEntries(named, rows, unused=len(rest))
        if not rest:
            return SideEntries(named, rows)
        verb = "is" if len(rest) == 1 else "are"
        fault = f"{count(len(rest), 'byte')} at position {end} {verb} no entry"
        return SideEntries(named, rows, fault=fault)

    return entries


def _of_snapshot(data: bytes, _base_offset: int | None) -> SideEntries:
    columns = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "last_timestamp",
        "coordinator_epoch",
        "transaction_first_offset",
    )
    try:
        rows, _ = _engine.parse_side_entries("producer-snapshot", data, 0)
    except ProducerSnapshotError as error:
        return SideEntries(columns, [], fault=str(error))
    return SideEntries(columns, rows)


def _of_leader_epochs(data: bytes, _base_offset: int | None) -> SideEntries:
    return _of_text(("epoch", "start_offset"), *_engine.parse_leader_epochs(data))


def _of_checkpoint(data: bytes, _base_offset: int | None) -> SideEntries:
    entries, fault = _engine.parse_offset_checkpoint(data)
    return _of_text(("topic", "partition", "offset"), [(*key, at) for key, at in entries], fault)


def _of_partition_metadata(data: bytes, _base_offset: int | None) -> SideEntries:
    topic_id, fault = _engine.parse_partition_metadata(data)
    return _of_text(("topic_id",), [] if topic_id is None else [(topic_id,)], fault)


def _of_meta_properties(data: bytes, _base_offset: int | None) -> SideEntries:
    properties, fault = _engine.parse_meta_properties(data)
    return _of_text(("name", "value"), [*properties.items()], fault)


def _of_text(
    columns: tuple[str, ...], rows: list[Any], fault: tuple[str, str, str] | None
) -> SideEntries:
    if fault is None:
        return SideEntries(columns, rows)
    message, expected, found = fault
    return SideEntries(columns, rows, fault=f"{message}: {found} where {expected} is expected")


KINDS: dict[str, Callable[[bytes, int | None], SideEntries]] = {
    "offset-index": _of_index("offset-index", "offset", "position"),
    "time-index": _of_index("time-index", "timestamp", "offset"),
    "transaction-index": _of_index(
        "transaction-index", "producer_id", "first_offset", "last_offset", "last_stable_offset"
    ),
    "producer-snapshot": _of_snapshot,
    "leader-epoch-checkpoint": _of_leader_epochs,
    "offset-checkpoint": _of_checkpoint,
    "partition-metadata": _of_partition_metadata,
    "meta-properties": _of_meta_properties,
}
"""The kinds of files that have entries."""

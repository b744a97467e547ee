"""Snapshots of the cluster's metadata: values of records between a head and a foot (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.plane import build_quorum_batch, metadata_snapshot_fault
from ottla.errors import LogDirectoryError, MalformedFrameError
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.quorum_records import SnapshotFooterRecord, SnapshotHeaderRecord
from ottla.protocol.messages.voters_record import VotersRecord
from ottla.records import NewRecord, build_batch, read_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.records import RecordBatch

__all__ = ["QuorumRecords", "snapshot_bytes", "snapshot_values"]

_SNAPSHOT_HEADER: Final = 3
_SNAPSHOT_FOOTER: Final = 4
_VOTERS: Final = 6
_OF_QUORUM: Final = {"KRAFT_VERSION": 5, "KRAFT_VOTERS": _VOTERS}
_RECORDS_A_BATCH: Final = 1000


class QuorumRecords:
    """What a quorum has to know of itself, such as its voters (KIP-853): the newest of each kind.

    Attributes:
        values: of control records, by their type.
    """

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}

    def take(self, batch: RecordBatch) -> None:
        """Takes the records of a control batch."""
        for record in batch.records():
            kind = _OF_QUORUM.get(record.control or "")
            if kind is not None and record.value is not None:
                self.values[kind] = record.value

    @property
    def voters(self) -> frozenset[int]:
        """Nodes that elect its leader; none where the log does not say.

        Raises:
            LogDirectoryError: the record of them cannot be read.
        """
        value = self.values.get(_VOTERS)
        if value is None:
            return frozenset()
        try:
            record, _ = decode(VotersRecord, 0)(value, 0)
        except MalformedFrameError as error:
            raise LogDirectoryError(
                f"the record of voters in __cluster_metadata cannot be read: {error}"
            ) from None
        return frozenset(voter.voter_id for voter in record.voters)


def snapshot_bytes(
    values: Iterable[bytes],
    now_ms: int,
    *,
    epoch: int = 0,
    last_contained_timestamp: int = 0,
    quorum: QuorumRecords | None = None,
) -> bytes:
    """Returns a snapshot of records.

    Args:
        values: of the records, in order.
        now_ms: the time of its batches.
        epoch: of the last batch that it stands for.
        last_contained_timestamp: of that batch.
        quorum: what else belongs to it.
    """
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp)
    head = b"".join(encode(SnapshotHeaderRecord, 0)(header))
    foot = b"".join(encode(SnapshotFooterRecord, 0)(SnapshotFooterRecord()))
    parts: list[bytes] = []
    offset = 0

    def control(kind: int, value: bytes) -> None:
        nonlocal offset
        parts.append(
            build_quorum_batch(
                kind, value, timestamp=now_ms, base_offset=offset, partition_leader_epoch=epoch
            )
        )
        offset += 1

    control(_SNAPSHOT_HEADER, head)
    for kind, value in sorted((quorum or QuorumRecords()).values.items()):
        control(kind, value)
    for group in _groups(values):
        rows = [NewRecord(value=value, timestamp=now_ms) for value in group]
        parts.append(build_batch(rows, base_offset=offset, partition_leader_epoch=epoch))
        offset += len(rows)
    control(_SNAPSHOT_FOOTER, foot)
    return b"".join(parts)


def snapshot_values(
    snapshot: bytes, path: str, quorum: QuorumRecords | None = None
) -> Iterator[bytes]:
    """Yields the values of the records of a snapshot; what else is in it goes to `quorum`.

    Raises:
        LogDirectoryError: it is not whole.
    """
    fault = metadata_snapshot_fault(snapshot)
    if fault is not None:
        raise LogDirectoryError(f"{path} is no snapshot: {fault}")
    for batch in read_batches(snapshot):
        if not batch.is_control:
            yield from (record.value for record in batch.records() if record.value is not None)
        elif quorum is not None:
            quorum.take(batch)


def _groups(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    for value in values:
        group.append(value)
        if len(group) == _RECORDS_A_BATCH:
            yield group
            group = []
    if group:
        yield group

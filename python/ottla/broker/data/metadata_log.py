"""`__cluster_metadata-0`: the log of a controller that is the only voter of its quorum (KIP-595).

Its loader is not that of a topic's partitions. The newest snapshot,
``<end offset>-<epoch>.checkpoint``, says what all batches below its end offset amount to; the
batches behind it follow. What is appended is synced before it counts. Each term of the only voter
begins with a change of the leader, and the file ``quorum-state`` has its epoch.
"""

from __future__ import annotations

import json
import os
import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.data.small_files import (
    read_text,
    sync_directory,
    write_checkpoint,
    write_file,
)
from ottla.broker.plane import build_quorum_batch
from ottla.errors import LogDirectoryError, RecordBatchError
from ottla.protocol.codec import encode
from ottla.protocol.messages.quorum_records import LeaderChangeMessage, Voter
from ottla.records import NewRecord, build_batch, read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["METADATA_DIRECTORY", "MetadataLog", "read_snapshot"]

METADATA_DIRECTORY: Final = "__cluster_metadata-0"

_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEADER_CHANGE: Final = 2
_MAX_EPOCH: Final = (1 << 31) - 1
_BATCH_HEAD = struct.Struct(">qiib")
"""Base offset, size of what follows, leader epoch, magic."""
_MAX_SEGMENT_BYTES: Final = 1 << 30
"""A segment that is larger is not read: Kafka's own roll at this size."""
_MAX_STATE_CHARACTERS: Final = 1 << 20
_ROLL_BYTES: Final = 64 << 20
"""Each start reads what there is, a segment at a time."""


class _Segment(NamedTuple):
    base_offset: int
    name: str


class MetadataLog:
    """The log, open at its end.

    Args:
        path: of the directory, which is made where there is none.
        node_id: of the only voter.
        say: takes a line about what was found.
        was_clean: whether the broker before was stopped cleanly.

    Attributes:
        epoch: of the term that `begin_term` began.
        end_offset: where the next record goes.
    """

    def __init__(
        self, path: str, node_id: int, say: Callable[[str], None], *, was_clean: bool = False
    ) -> None:
        self._was_clean = was_clean
        self.epoch = 0
        self.end_offset = 0
        self._path = path
        self._node_id = node_id
        self._say = say
        self._file = -1
        self._size = 0
        self._is_broken = False
        self._has_records = False
        self._known_epochs: list[tuple[int, int]] = []
        self._state: dict[str, Any] = {
            "clusterId": "",
            "leaderId": node_id,
            "leaderEpoch": 0,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id}],
            "data_version": 0,
        }

    @property
    def is_empty(self) -> bool:
        """Whether it has no records: the first term may have begun, and a crash ended it there."""
        return not self._has_records

    def load(self) -> Iterator[bytes]:
        """Opens it and yields the values of all records that count, in order.

        Bytes behind its last whole batch are what a crash has left, and are cut off. A crash tears
        the last append alone: damage with a whole batch behind it is something else, and refused.

        Raises:
            LogDirectoryError: it cannot be read as what it should be.
            OSError: the system cannot read or write it.
        """
        if not os.path.isdir(self._path):
            os.mkdir(self._path)
            write_file(
                os.path.join(self._path, "partition.metadata"),
                f"version: 0\ntopic_id: {_TOPIC_ID}".encode(),
            )
            sync_directory(os.path.dirname(self._path))
        self._check_quorum()
        names = sorted(os.listdir(self._path))
        segments = [
            _Segment(int(found[1]), name) for name in names if (found := _SEGMENT.fullmatch(name))
        ]
        start_offset, snapshot = self._newest_snapshot(names)
        if snapshot is not None:
            self._has_records = True
            yield from read_snapshot(snapshot)
        self.end_offset = max(start_offset, segments[0].base_offset if segments else 0)
        if self.end_offset > start_offset:
            raise LogDirectoryError(
                f"{self._path} begins at offset {self.end_offset}, and no snapshot says what was "
                f"before it"
            )
        for number, segment in enumerate(segments, 1):
            yield from self._load_segment(segment, start_offset, is_last=number == len(segments))
        last = segments[-1] if segments else _Segment(self.end_offset, "")
        self._open(last.name or f"{last.base_offset:020}.log")

    def begin_term(self, now_ms: int) -> None:
        """Becomes the leader of an epoch that nobody has been in.

        Raises:
            LogDirectoryError: there is no epoch behind the last one.
            OSError: the system could not write it.
        """
        if not 0 <= self.epoch < _MAX_EPOCH:
            raise LogDirectoryError(
                f"{self._path} is in epoch {self.epoch}; expected 0 to {_MAX_EPOCH - 1}"
            )
        self.epoch += 1
        # Of a quorum whose voters are in its log (KIP-853), the file has other fields, which stay.
        self._state |= {"leaderId": self._node_id, "leaderEpoch": self.epoch, "votedId": -1}
        text = json.dumps(self._state, separators=(",", ":"))
        write_file(os.path.join(self._path, "quorum-state"), text.encode())
        self._known_epochs = [
            (epoch, offset)
            for epoch, offset in self._known_epochs
            if offset < self.end_offset and epoch < self.epoch
        ]
        self._known_epochs.append((self.epoch, self.end_offset))
        lines = [f"{epoch} {offset}" for epoch, offset in self._known_epochs]
        write_checkpoint(os.path.join(self._path, "leader-epoch-checkpoint"), lines)
        voter = Voter(voter_id=self._node_id)
        change = LeaderChangeMessage(
            leader_id=self._node_id, voters=[voter], granting_voters=[voter]
        )
        batch = build_quorum_batch(
            _LEADER_CHANGE,
            b"".join(encode(LeaderChangeMessage, 0)(change)),
            timestamp=now_ms,
            base_offset=self.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._write(batch, 1)

    def append(self, values: Sequence[bytes], now_ms: int) -> None:
        """Adds records as one batch, all of them or none, and syncs it.

        Raises:
            OSError: the system could not, and the log is as it was.
        """
        batch = build_batch(
            [NewRecord(value=value, timestamp=now_ms) for value in values],
            base_offset=self.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._write(batch, len(values))

    def close(self) -> None:
        """Closes it; everything is synced already."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _check_quorum(self) -> None:
        """Takes the epoch of the last term; refuses a log with voters elsewhere."""
        path = os.path.join(self._path, "quorum-state")
        text = read_text(path, _MAX_STATE_CHARACTERS)
        if text is None:
            return
        try:
            state = json.loads(text)
            self.epoch = int(state["leaderEpoch"])
            voters = {int(voter["voterId"]) for voter in state.get("currentVoters") or ()}
            self._state = {**state}
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise LogDirectoryError(
                f"{path} is no state of a quorum: expected JSON with leaderEpoch and currentVoters"
            ) from None
        self._state.pop("votedDirectoryId", None)
        others = sorted(voters - {self._node_id})
        if others:
            raise LogDirectoryError(
                f"{path} names the voters {', '.join(map(str, others))} beside node "
                f"{self._node_id}: a directory can be served whose cluster has one node"
            )

    def _newest_snapshot(self, names: Sequence[str]) -> tuple[int, str | None]:
        found = [hit for name in names if (hit := _SNAPSHOT.fullmatch(name))]
        if not found:
            return 0, None
        newest = found[-1]
        self.epoch = max(self.epoch, int(newest[2]))
        return int(newest[1]), os.path.join(self._path, newest[0])

    def _load_segment(
        self, segment: _Segment, start_offset: int, *, is_last: bool
    ) -> Iterator[bytes]:
        path = os.path.join(self._path, segment.name)
        data = _read(path)
        position = 0
        try:
            for batch in read_batches(data):
                batch.verify()
                self._note_epoch(batch.partition_leader_epoch, batch.base_offset)
                if batch.base_offset < start_offset:
                    position = batch.position + batch.size
                    self.end_offset = max(self.end_offset, batch.last_offset + 1)
                    continue
                if batch.base_offset != self.end_offset:
                    raise LogDirectoryError(
                        f"{path} has offset {batch.base_offset} at position {batch.position}, "
                        f"where {self.end_offset} is expected"
                    )
                values = [] if batch.is_control else [r.value for r in batch.records()]
                position = batch.position + batch.size
                self.end_offset = batch.last_offset + 1
                self._has_records = self._has_records or bool(values)
                yield from (value for value in values if value is not None)
            # What is too short for a batch ends it without a word.
            fault = f"{len(data) - position} bytes are left" if position < len(data) else ""
        except RecordBatchError as error:
            fault = str(error)
        if not fault:
            return
        if not is_last:
            raise LogDirectoryError(f"{path} is damaged, and a segment follows it: {fault}")
        behind = _batch_behind(data, position, self.end_offset)
        if behind >= 0:
            raise LogDirectoryError(
                f"{path} is damaged at position {position}, and no crash did it, since a whole "
                f"batch follows at {behind} ({fault}): take the file from a copy; to cut it there "
                f"would lose the topics and settings behind it"
            )
        whence = "as a crash leaves them"
        if self._was_clean:
            whence = (
                "though the broker was stopped cleanly (if topics or settings are missing, take "
                "the file from a copy)"
            )
        self._say(
            f"{path}: {len(data) - position} bytes behind position {position} are no whole batch, "
            f"{whence}, and are cut off"
        )
        os.truncate(path, position)

    def _note_epoch(self, epoch: int, base_offset: int) -> None:
        if not self._known_epochs or epoch > self._known_epochs[-1][0]:
            self._known_epochs.append((epoch, base_offset))
        self.epoch = max(self.epoch, epoch)

    def _open(self, name: str) -> None:
        path = os.path.join(self._path, name)
        is_new = not os.path.exists(path)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._file).st_size
        if is_new:
            # No index is ever made of it, and every start of Kafka makes its own.
            for suffix in (".index", ".timeindex"):
                with open(path.removesuffix(".log") + suffix, "ab"):
                    pass
            sync_directory(self._path)

    def _write(self, batch: bytes, count: int) -> None:
        if self._is_broken:
            raise OSError(f"{self._path} is closed since it could not be written")
        if self._size and self._size + len(batch) > _ROLL_BYTES:
            self.close()
            self._open(f"{self.end_offset:020}.log")
        try:
            left = memoryview(batch)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            # What is behind the end would be taken for a batch that counts.
            self._is_broken = True
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
                self._is_broken = False
            raise
        self._size += len(batch)
        self.end_offset += count


def _batch_behind(data: bytes, position: int, end_offset: int) -> int:
    """Returns where behind a damage the next whole batch is; -1 for none."""
    magic_at = _BATCH_HEAD.size - 1
    found = data.find(b"\2", position + 1 + magic_at)
    while found >= 0:
        begin = found - magic_at
        base_offset, size, _, _ = _BATCH_HEAD.unpack_from(data, begin)
        end = begin + 12 + size
        if end_offset <= base_offset < end_offset + len(data) and found < end <= len(data):
            with suppress(RecordBatchError):
                for batch in read_batches(data[begin:end]):
                    batch.verify()
                    return begin
        found = data.find(b"\2", found + 1)
    return -1


def read_snapshot(path: str) -> Iterator[bytes]:
    """Yields the values of the records of a snapshot.

    Raises:
        LogDirectoryError: it is not whole.
        OSError: it cannot be read.
    """
    is_whole = False
    try:
        for batch in read_batches(_read(path)):
            batch.verify()
            if batch.is_control:
                kinds = {record.control for record in batch.records()}
                is_whole = is_whole or "SNAPSHOT_FOOTER" in kinds
                continue
            yield from (r.value for r in batch.records() if r.value is not None)
    except RecordBatchError as error:
        raise LogDirectoryError(f"{path} is no snapshot: {error}") from None
    if not is_whole:
        raise LogDirectoryError(f"{path} ends without the foot of a snapshot")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_SEGMENT_BYTES:
            raise LogDirectoryError(
                f"{path} has {size:,} bytes; at most {_MAX_SEGMENT_BYTES:,} are read"
            )
        return file.read()

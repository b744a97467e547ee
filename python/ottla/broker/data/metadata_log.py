"""`__cluster_metadata-0`: the log of a controller that is the only voter of its quorum (KIP-595).

The engine has the log and its snapshots: what a start does to them, what is on the disk, what is
deleted. Here are the values of records. The newest snapshot says what all batches below its end
offset amount to, and the batches behind it follow. Each term of the only voter begins with a change
of the leader, and the file ``quorum-state`` has its epoch.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.data.metadata_snapshot import QuorumRecords, snapshot_bytes, snapshot_values
from ottla.broker.data.small_files import read_text, write_file
from ottla.broker.plane import QuorumLog, build_quorum_batch
from ottla.errors import LogDirectoryError
from ottla.protocol.codec import encode
from ottla.protocol.messages.quorum_records import LeaderChangeMessage, Voter
from ottla.records import NewRecord, build_batch, read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from ottla.broker.data.disk import Disk

__all__ = ["METADATA_DIRECTORY", "MetadataLog"]

METADATA_DIRECTORY: Final = "__cluster_metadata-0"

_LEADER_CHANGE: Final = 2
_MAX_EPOCH: Final = (1 << 31) - 1
_MAX_STATE_CHARACTERS: Final = 1 << 20
_SEGMENT_BYTES: Final = 64 << 20
"""Segments are deleted whole, so they are no larger than what is kept of them."""


class MetadataLog:
    """The log, open at its end.

    Args:
        path: of the directory, which is made where there is none.
        node_id: of the only voter.
        say: takes a line about what was found.
        was_clean: whether the broker before was stopped cleanly.
        segment_bytes: where a segment is full.

    Attributes:
        epoch: of the term that `begin_term` began.
        bytes_behind_snapshot: of batches behind the newest snapshot.
        disk: what a test has it do.
    """

    def __init__(
        self,
        path: str,
        node_id: int,
        say: Callable[[str], None],
        *,
        was_clean: bool = False,
        segment_bytes: int = _SEGMENT_BYTES,
    ) -> None:
        self.epoch = 0
        self.bytes_behind_snapshot = 0
        self.disk: Disk | None = None
        self._was_clean = was_clean
        self._path = path
        self._node_id = node_id
        self._say = say
        self._segment_bytes = segment_bytes
        self._log: QuorumLog | None = None
        self._has_records = False
        self._timestamp = -1
        self._quorum = QuorumRecords()
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

    @property
    def end_offset(self) -> int:
        """Where the next record goes."""
        return self._open.end_offset

    @property
    def start_offset(self) -> int:
        """Where it begins."""
        return self._open.start_offset

    @property
    def _open(self) -> QuorumLog:
        if self._log is None:
            raise ValueError(f"{self._path} is not open: call load() first")
        return self._log

    def load(self) -> Iterator[bytes]:
        """Opens it and yields the values of all records that count, in order.

        Raises:
            LogDirectoryError: it cannot be read as what it should be.
            OSError: the system cannot read or write it.
        """
        self._check_quorum()
        log = self._log = QuorumLog(self._path, segment_bytes=self._segment_bytes)
        self._say_what_was_found(log)
        self.epoch = max(self.epoch, log.epoch or 0)
        snapshot = log.read_snapshot()
        if snapshot is not None:
            for value in snapshot_values(snapshot, self._path, self._quorum):
                self._has_records = True
                yield value
        at = log.snapshot_offset
        while data := log.read(at):
            self.bytes_behind_snapshot += len(data)
            for batch in read_batches(data):
                at = batch.last_offset + 1
                self._timestamp = batch.max_timestamp
                if batch.is_control:
                    self._quorum.take(batch)
                    continue
                values = [record.value for record in batch.records()]
                self._has_records = self._has_records or bool(values)
                yield from (value for value in values if value is not None)
        # A quorum whose voters change has them in its log (KIP-853), and not in its file.
        self._refuse_other_voters(self._quorum.voters, self._path)

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
        self._open.begin_epoch(self.epoch)
        voter = Voter(voter_id=self._node_id)
        change = LeaderChangeMessage(
            leader_id=self._node_id, voters=[voter], granting_voters=[voter]
        )
        value = b"".join(encode(LeaderChangeMessage, 0)(change))
        self._append(build_quorum_batch(_LEADER_CHANGE, value, timestamp=now_ms), now_ms)

    def append(self, values: Sequence[bytes], now_ms: int) -> None:
        """Adds records as one batch, all of them or none, and syncs it.

        Raises:
            OSError: the system could not. Where there was no room, the log is as it was.
        """
        self._append(
            build_batch([NewRecord(value=value, timestamp=now_ms) for value in values]), now_ms
        )

    def write_snapshot(self, values: Iterable[bytes], now_ms: int) -> None:
        """Writes what all records amount to, whole or not at all.

        Raises:
            OSError: the system could not.
        """
        snapshot = snapshot_bytes(
            values,
            now_ms,
            epoch=self.epoch,
            last_contained_timestamp=self._timestamp,
            quorum=self._quorum,
        )
        self._open.write_snapshot(snapshot)
        self.bytes_behind_snapshot = 0

    def delete_old(self, max_bytes: int) -> None:
        """Deletes old snapshots and segments, as long as all of them together have more bytes.

        The newest snapshot and what is behind it stay.

        Raises:
            OSError: the system could not.
        """
        self._open.delete_old(max_bytes)

    def close(self) -> None:
        """Closes it; everything is synced already."""
        if self._log is not None:
            self._log.close()

    def _append(self, batch: bytes, now_ms: int) -> None:
        if self.disk is not None:
            self.disk.before_write()
            self.disk.before_sync(None)
        self._open.append(batch, now_ms)
        self._timestamp = now_ms
        self.bytes_behind_snapshot += len(batch)

    def _say_what_was_found(self, log: QuorumLog) -> None:
        for path, fault in log.faulty_snapshots:
            self._say(
                f"{os.fspath(path)} is no whole snapshot ({fault}), and is passed over: what it "
                f"should hold is read from the snapshot before it and from the log"
            )
        if log.torn is None:
            return
        path, position, size = log.torn
        whence = "as a crash leaves them"
        if self._was_clean:
            whence = (
                "though the broker was stopped cleanly (if topics or settings are missing, take "
                "the file from a copy)"
            )
        self._say(
            f"{os.fspath(path)}: {size} bytes behind position {position} are no whole batch, "
            f"{whence}, and are cut off"
        )

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
        self._refuse_other_voters(voters, path)

    def _refuse_other_voters(self, voters: AbstractSet[int], where: str) -> None:
        others = sorted(voters - {self._node_id})
        if others:
            raise LogDirectoryError(
                f"{where} names the voters {', '.join(map(str, others))} beside node "
                f"{self._node_id}: a directory can be served whose cluster has one node"
            )

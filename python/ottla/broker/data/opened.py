"""A broker's data from its start to its stop.

Start: directory and lock, metadata, partitions in a leader epoch of their own, coordinators.
Stop: logs as a clean stop leaves them, checkpoints, the mark of a clean stop, the lock.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.broker.data.belonging import missing_partitions, refuse_part_of_a_cluster
from ottla.broker.data.cluster_state import ClusterState
from ottla.broker.data.directory import DataDirectory
from ottla.broker.data.keeper import MetadataKeeper
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.data.metadata_snapshot import snapshot_values
from ottla.broker.data.new_cluster import bootstrap_snapshot
from ottla.broker.data.small_files import write_file
from ottla.broker.data.storage import DirectoryStorage, Past
from ottla.broker.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.uuids import base64_of
from ottla.broker.waiting import Waiting
from ottla.errors import KafkaError, LogDirectoryError
from ottla.logs.checkpoints import read_offsets
from ottla.logs.metadata import parse_partition_metadata
from ottla.logs.names import (
    BOOTSTRAP_CHECKPOINT,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_partition_name,
    stray_name,
)
from ottla.logs.side_files import SideFileError
from ottla.protocol.messages.cluster_metadata import AbortTransactionRecord
from ottla.protocol.metadata_record import record_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.log_partitions import LogPartitions
    from ottla.broker.plane import DataPlane

__all__ = ["OpenedData"]

_ROLLED_CHECK_MS: Final = 1000
"""How often segments that are full are looked for, to be synced."""
_ROOM_CHECK_MS: Final = 10_000
_LEAST_FREE_BYTES: Final = 1 << 20
"""Below which producers are, or soon will be, refused."""
ROOM: Final = "room"
"""What is wrong (`Broker.wrong`) where the disk of a log directory is full."""
_ID_BYTES: Final = 16
_CUT = re.compile(r"cut \d+\.log ")
"""How the engine says that the batches of a log end earlier than before."""
_MAX_BOOTSTRAP_BYTES: Final = 1 << 30
_MAX_METADATA_BYTES: Final = 1 << 16


class OpenedData:
    """A log directory that this process has.

    Args:
        path: of the directory.
        plane: what serves its partitions.
        cluster_id, node_id: whose it has to be; `None` takes those of the directory.
        default_node_id: of a new directory.
        release: of Kafka, which a new directory is for; `None` for the newest.
        random_bits: where ids come from.
        clock: the broker's time.
        say: takes a line about what was found.

    Attributes:
        directory: whose it is.
        keeper: what was kept, and what keeps changes.
        storage: the logs.

    Raises:
        LogDirectoryError: it cannot be had, or not be read; the message says why.
    """

    def __init__(
        self,
        path: str,
        plane: DataPlane,
        *,
        cluster_id: str | None,
        node_id: int | None,
        default_node_id: int,
        release: tuple[int, int] | None,
        random_bits: Callable[[int], int],
        clock: Callable[[], int],
        say: Callable[[str], None],
    ) -> None:
        self._say = say
        self._clock = clock
        self.directory = DataDirectory(
            path,
            cluster_id=cluster_id,
            node_id=node_id,
            default_node_id=default_node_id,
            random_bits=random_bits,
        )
        self._log = MetadataLog(
            os.path.join(path, METADATA_DIRECTORY),
            self.directory.node_id,
            say,
            was_clean=self.directory.was_clean,
        )
        self._state = ClusterState()
        self.storage = DirectoryStorage(plane, path, say)
        self._log.disk = self.storage.disk
        try:
            with _said(path):
                self._load_metadata(release)
                self.keeper = MetadataKeeper(
                    self._log,
                    self._state,
                    node_id=self.directory.node_id,
                    directory_id=self.directory.directory_id,
                    random_bits=random_bits,
                    clock=clock,
                    say=say,
                )
                self.keeper.lead_all()
                self.keeper.say_what_is_left_out()
                self._say_what_is_missing()
        except BaseException:
            self.abandon()
            raise

    def restore(self, broker: Broker) -> None:
        """Opens partitions and loads the coordinators of a broker that has just been made.

        Raises:
            LogDirectoryError: a partition cannot be opened.
        """
        now_ms = self._clock()
        path, storage = self.directory.path, self.storage
        broker.log_dir = os.path.abspath(path)
        storage.wrong = broker.wrong
        storage.disk.look = self._look_for_room
        storage.write_log_starts = self._write_log_starts
        storage.flusher.later = lambda delay_ms, action: broker.waiting.do_at(
            self._clock() + delay_ms, action
        )
        broker.cleaner.say = self._say
        # Gaps that compaction leaves are explained by it to an audit behind a crash.
        broker.cleaner.keep = self._keep_cleaned
        self.keeper.snapshot_bytes = broker.config.number(
            "metadata.log.max.record.bytes.between.snapshots"
        )
        self.keeper.retention_bytes = broker.config.number("metadata.max.retention.bytes")
        self.keeper.write_snapshot_if_due()
        with _said(path):
            self._put_strays_aside()
            directory = os.fsencode(path)
            cleaner_offsets = read_offsets(directory, CLEANER_OFFSETS)
            storage.past = Past(
                self.directory.was_clean,
                read_offsets(directory, RECOVERY_POINTS),
                read_offsets(directory, LOG_START_OFFSETS),
                cleaner_offsets,
            )
            self.directory.take_clean_mark()
            broker.topics.restore(self.keeper.topics(), now_ms)
            if storage.past.is_clean:
                self._say_what_was_cut(broker)
            storage.past = None
            self._restore_cleaner(broker, cleaner_offsets)
            self.checkpoint()
        if CONSUMER_OFFSETS in broker.image.topics:
            self._say_what_is_unreadable(broker, CONSUMER_OFFSETS, broker.groups.partitions)
        if TRANSACTION_STATE in broker.image.topics:
            self._say_what_is_unreadable(broker, TRANSACTION_STATE, broker.transactions.partitions)
        interval_ms = broker.config.number("log.flush.offset.checkpoint.interval.ms")
        _repeat(broker, interval_ms, self._checkpoint_or_say)
        _repeat(broker, _ROLLED_CHECK_MS, storage.flusher.sync_sealed)
        _repeat(broker, _ROOM_CHECK_MS, self._look_for_room)

    def _say_what_is_missing(self) -> None:
        if self._missing:
            self._say(
                f"{len(self._missing):,} partitions of the cluster are not in "
                f"{self.directory.path} ({', '.join(self._missing[:3])}), and begin empty: if "
                f"records are missing, stop the broker and take them from a copy"
            )

    def _say_what_was_cut(self, broker: Broker) -> None:
        """Behind a crash that is what it leaves; a clean stop leaves nothing to cut off."""
        for topic in broker.image.topics.values():
            for partition in topic.partitions:
                changes = self.storage.plane.changes(partition.handle)
                cut = [change for change in changes if _CUT.match(change)]
                if cut:
                    self._say(
                        f"{self.directory.path}/{topic.name}-{partition.partition_index}: "
                        f"{', '.join(cut)}, since no whole batch is there, though the broker was "
                        f"stopped cleanly: if records are missing, take the partition from a copy"
                    )

    def _say_what_is_unreadable(
        self, broker: Broker, topic: str, partitions: LogPartitions
    ) -> None:
        for index, why in sorted(partitions.unreadable.items()):
            name = f"{topic}-{index}"
            broker.wrong[name] = f"{name} cannot be loaded, and has no coordinator: {why}"
            self._say(
                f"{broker.wrong[name]}; `ottla audit {self.directory.path}` tells what is damaged: "
                f"take {name} from a copy, or delete the topic and lose what is in it"
            )

    def _restore_cleaner(self, broker: Broker, offsets: Mapping[tuple[str, int], int]) -> None:
        for (topic, index), offset in offsets.items():
            partition = broker.image.partition(topic, index)
            if partition is not None:
                self.storage.plane.set_cleaner_offset(partition.handle, offset)

    def checkpoint(self) -> None:
        """Writes where recovery begins, where logs begin, and what was committed.

        Raises:
            OSError: the system could not.
        """
        logs = self._logs()
        write = self.directory.write_checkpoint
        write(_text(RECOVERY_POINTS), [(topic, index, at) for topic, index, at, _, _ in logs])
        self._write_log_starts()
        self._write_cleaner_offsets()
        write(_text(HIGH_WATERMARKS), [(topic, index, at) for topic, index, _, _, at in logs])

    def close(self, _broker: Broker) -> None:
        """Leaves everything as a clean stop does, and gives the directory back."""
        try:
            if self.storage.is_offline:
                return
            plane = self.storage.plane
            for handle in self.storage.handles:
                self.storage.disk.before_sync(handle)
                plane.shut_down(handle)
            self.checkpoint()
            for handle in self.storage.handles:
                self.storage.forget(handle)
                plane.close(handle)
            epochs = self._state.broker_epochs
            self.directory.leave_clean(epochs.get(self.directory.node_id, -1))
        except (OSError, KafkaError) as error:
            self._say(f"{self.directory.path} is not left as a clean stop leaves it: {error}")
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Gives the directory back as it is."""
        self._log.close()
        self.directory.release()

    def _load_metadata(self, release: tuple[int, int] | None) -> None:
        self._state.replay_all(self._log.load())
        is_new = self._log.is_empty
        path, directory = self.directory.path, self.directory
        if is_new:
            self._refuse_partitions_of_nobody()
        refuse_part_of_a_cluster(self._state, path, directory.node_id, directory.directory_id)
        directory.complete_meta()
        self._missing = [*missing_partitions(self._state, path, was_clean=directory.was_clean)]
        bootstrap = os.path.join(self.directory.path, _text(BOOTSTRAP_CHECKPOINT))
        if is_new and not os.path.exists(bootstrap):
            write_file(bootstrap, bootstrap_snapshot(release, self._clock()))
        self._log.begin_term(self._clock())
        if is_new:
            values = [*snapshot_values(_read(bootstrap), bootstrap)]
            self._log.append(values, self._clock())
            self._state.replay_all(values)
        elif self._state.is_in_transaction:
            self._log.append([record_bytes(AbortTransactionRecord())], self._clock())
            self._state.abort()

    def _refuse_partitions_of_nobody(self) -> None:
        """Where the controller's log was lost, all topics would be put aside and begin anew."""
        path = self.directory.path
        found = [
            name
            for name in sorted(os.listdir(path))
            if name != METADATA_DIRECTORY
            and (parsed := parse_partition_name(os.fsencode(name))) is not None
            and parsed[2] == "live"
            and os.path.isdir(os.path.join(path, name))
        ]
        if found:
            raise LogDirectoryError(
                f"{path} has partitions ({', '.join(found[:3])}), and {METADATA_DIRECTORY} has no "
                f"records that say of which topics: take {METADATA_DIRECTORY} from a copy, or give "
                f"an empty directory"
            )

    def _logs(self) -> list[tuple[str, int, int, int, int]]:
        return sorted(self.storage.plane.checkpoints())

    def _write_log_starts(self) -> None:
        starts = [(topic, index, at) for topic, index, _, at, _ in self._logs() if at]
        self.directory.write_checkpoint(_text(LOG_START_OFFSETS), starts)

    def _write_cleaner_offsets(self) -> None:
        offsets = sorted(self.storage.plane.cleaner_offsets())
        self.directory.write_checkpoint(_text(CLEANER_OFFSETS), offsets)

    def _keep_cleaned(self) -> None:
        try:
            self._write_cleaner_offsets()
        except OSError as error:
            self._say(f"checkpoints cannot be written: {error.strerror or error}")

    def _look_for_room(self) -> None:
        """Says once that the disk is full, and that it is no longer."""
        system = os.statvfs(self.directory.path)
        left_bytes = 0 if self.storage.disk.is_full else system.f_bavail * system.f_frsize
        wrong = self.storage.wrong
        if left_bytes >= _LEAST_FREE_BYTES:
            if wrong.pop(ROOM, None) is not None:
                self._say(f"{self.directory.path} has room again")
        elif ROOM not in wrong:
            wrong[ROOM] = f"{self.directory.path} has {left_bytes:,} bytes of room left"
            self._say(f"{wrong[ROOM]}: producers get KAFKA_STORAGE_ERROR until there is more")

    def _checkpoint_or_say(self) -> None:
        if self.storage.is_offline:
            return
        try:
            self.checkpoint()
        except OSError as error:
            self._say(f"checkpoints cannot be written: {error.strerror or error}")

    def _put_strays_aside(self) -> None:
        """Renames partitions of no topic, as a start of Kafka does; removes what was deleted."""
        known = {
            (topic.name, index): topic.topic_id
            for topic in self._state.topics.values()
            for index in topic.partitions
        }
        for name in sorted(os.listdir(self.directory.path)):
            path = os.path.join(self.directory.path, name)
            parsed = parse_partition_name(os.fsencode(name))
            if parsed is None or name == METADATA_DIRECTORY or not os.path.isdir(path):
                continue
            topic, index, state = parsed
            if state == "delete":
                shutil.rmtree(path)
            elif state == "live" and not _is_of(path, known.get((topic, index))):
                aside = stray_name(name, os.urandom(_ID_BYTES))
                os.rename(path, os.path.join(self.directory.path, aside))
                self._say(f"{path} is of no topic that the cluster has, and is now {aside}")


def _is_of(path: str, topic_id: bytes | None) -> bool:
    """Whether a partition's directory is that of a topic; one that was never opened is of any."""
    if topic_id is None:
        return False
    try:
        with open(os.path.join(path, _text(PARTITION_METADATA)), "rb") as file:
            return parse_partition_metadata(file.read(_MAX_METADATA_BYTES)) == base64_of(topic_id)
    except FileNotFoundError:
        return not os.listdir(path)
    except SideFileError as error:
        raise LogDirectoryError(f"{path}/{_text(PARTITION_METADATA)}: {error}") from None


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_BOOTSTRAP_BYTES:
            raise LogDirectoryError(
                f"{path} has {size:,} bytes; at most {_MAX_BOOTSTRAP_BYTES:,} are read"
            )
        return file.read()


def _text(name: bytes | str) -> str:
    return os.fsdecode(name)


@contextmanager
def _said(path: str) -> Iterator[None]:
    """Says what the system or the engine could not do as an error of the directory."""
    try:
        yield
    except OSError as error:
        raise LogDirectoryError(f"{error.filename or path}: {error.strerror or error}") from None
    except KafkaError as error:
        raise LogDirectoryError(f"{path}: {error}") from None


def _repeat(broker: Broker, interval_ms: int, action: Callable[[], None]) -> None:
    """Has something done at intervals of the broker's time."""

    def attempt(is_due: bool, now_ms: int) -> bool:
        if is_due:
            action()
            waiting.deadline_ms = now_ms + interval_ms
        return False

    waiting = Waiting(broker.began_ms + interval_ms, attempt)
    broker.waiting.add(waiting)

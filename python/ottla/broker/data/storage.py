"""Logs in a log directory: where each is, how it is opened, and when it is synced."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.configs.setting import MAX_LONG
from ottla.broker.data.disk import Disk
from ottla.broker.data.flusher import Flusher
from ottla.broker.storage import STORAGE, Storage
from ottla.broker.topics import INTERNAL_TOPICS
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from ottla.broker.data.disk import DiskFault
    from ottla.broker.faults import Names
    from ottla.broker.plane import DataPlane

__all__ = ["DirectoryStorage", "Past"]

_AT_ONCE: Final = 1
"""Records after which a log is synced whose records nobody may lose: those of coordinators."""


class Past(NamedTuple):
    """How logs were left.

    Attributes:
        is_clean: by a clean stop.
        recovery_points, log_start_offsets: by topic and partition.
        compacted: topics and partitions that were.
    """

    is_clean: bool
    recovery_points: Mapping[tuple[str, int], int]
    log_start_offsets: Mapping[tuple[str, int], int]
    compacted: Container[tuple[str, int]]


class DirectoryStorage(Storage):
    """Logs below a directory.

    Args:
        plane: what opens them.
        path: of the log directory.
        say: takes a line about what cannot be read or written any more.

    Attributes:
        disk: what a test has it do.
        flusher: what is synced, and when.
        past: how the logs were left that are opened; `None` for logs that are new.
        is_offline: whether a sync has failed: what is on the disk is not known any more.
        wrong: has a line where that is so (`Broker.wrong`).
        write_log_starts: writes where logs begin to the directory.
    """

    is_kept = True

    def __init__(self, plane: DataPlane, path: str, say: Callable[[str], None]) -> None:
        super().__init__(plane)
        self.path = path
        self.disk = Disk(plane)
        self.flusher = Flusher(plane, self._take_offline, self.disk.before_sync)
        self.past: Past | None = None
        self.is_offline = False
        self.wrong: dict[str, str] = {}
        self._say = say
        self.write_log_starts: Callable[[], None] = _nothing
        self._open: dict[int, None] = {}

    @property
    def handles(self) -> tuple[int, ...]:
        """Of the logs that are open."""
        return tuple(self._open)

    def open(self, topic: str, topic_id: bytes, index: int, **options: Any) -> int:
        """See `Storage`."""
        if self.is_offline:
            raise _storage_error(f"{self.path} is offline since it could not be synced")
        try:
            handle = super().open(
                topic,
                topic_id,
                index,
                directory=os.path.join(self.path, f"{topic}-{index}"),
                **options | self._past(topic, index, is_dense=options["is_dense"]),
            )
        except OSError as error:
            # What cannot be loaded is an error of the directory, which a start tells as it is.
            raise _storage_error(
                f"{error.filename or f'partition {topic}-{index}'} cannot be opened: "
                f"{error.strerror or error}"
            ) from None
        self._open[handle] = None
        self.disk.opened(handle, topic, index)
        return handle

    def configure(self, topic: str, handle: int, texts: Mapping[str, str]) -> None:
        """See `Storage`."""
        messages = int(texts["flush.messages"])
        if topic in INTERNAL_TOPICS:
            messages = _AT_ONCE
        if messages < MAX_LONG:
            self.flusher.set_interval(handle, messages)
        else:
            self.flusher.forget_interval(handle)
        age_ms = int(texts["flush.ms"])
        if age_ms < MAX_LONG:
            self.flusher.set_age(handle, age_ms)
        else:
            self.flusher.forget_age(handle)

    def remove(self, handle: int) -> None:
        """See `Storage`."""
        self.forget(handle)
        try:
            self.plane.remove(handle)
        except KafkaError as error:
            # It is in no image any more, and the next start puts it aside.
            self._say(f"a deleted partition cannot be removed: {error}")

    def forget(self, handle: int) -> None:
        """A log is closed by somebody else."""
        self.flusher.forget(handle)
        self.disk.closed(handle)
        self._open.pop(handle, None)

    def _past(self, topic: str, index: int, *, is_dense: bool) -> dict[str, Any]:
        past = self.past
        if past is None:
            return {}
        return {
            "is_clean": past.is_clean,
            "is_dense": is_dense and (topic, index) not in past.compacted,
            "recovery_point": past.recovery_points.get((topic, index), 0),
            "log_start_offset": past.log_start_offsets.get((topic, index), 0),
        }

    # What a test has the disk do.

    @property
    def disk_faults(self) -> Sequence[DiskFault]:
        """See `Storage`."""
        return self.disk.faults

    def fail_disk(self, kind: str, names: Names) -> DiskFault:
        """See `Storage`."""
        return self.disk.fail(kind, names)

    def mend_disk(self, fault: DiskFault) -> None:
        """See `Storage`."""
        self.disk.mend(fault)

    # What must be on the disk.

    def begin(self) -> None:
        """See `Storage`."""
        self.flusher.begin()

    def moved(self, handles: tuple[int, ...]) -> None:
        """See `Storage`."""
        self.flusher.moved(handles)

    def repeated(self, handles: tuple[int, ...]) -> None:
        """See `Storage`."""
        self.flusher.repeated(handles)

    def keep_log_starts(self) -> None:
        """See `Storage`."""
        try:
            self.write_log_starts()
        except OSError as error:
            raise _storage_error(
                f"where logs begin cannot be written: {error.strerror or error}"
            ) from None

    def must_hold(self, api_key: int) -> bool:
        """See `Storage`."""
        return self.flusher.must_wait(api_key)

    def hold(self, release: Callable[[bool], None]) -> None:
        """See `Storage`."""
        self.flusher.hold(release)

    def unsynced(self, handles: Iterable[int]) -> tuple[int, ...]:
        """See `Storage`."""
        return self.flusher.unsynced(handles)

    def when_synced(self, handles: Iterable[int], then: Callable[[bool], None]) -> None:
        """See `Storage`."""
        self.flusher.when_synced(handles, then)

    def end(self) -> None:
        """See `Storage`."""
        self.flusher.end()

    def _take_offline(self, error: BaseException) -> None:
        self.is_offline = True
        why = (isinstance(error, OSError) and error.strerror) or error
        self.wrong[STORAGE] = f"{self.path} is offline: it cannot be synced ({why})"
        self._say(
            f"{self.wrong[STORAGE]}, so what is on the disk is not known; every partition answers "
            f"KAFKA_STORAGE_ERROR"
        )
        for handle in self._open:
            self.plane.take_offline(handle)


def _nothing() -> None:
    """Has no directory yet."""


def _storage_error(message: str) -> KafkaError:
    return KafkaError(message, ErrorCode.KAFKA_STORAGE_ERROR, "KAFKA_STORAGE_ERROR")

"""Where the logs of partitions are: in memory, which is this class, or in a directory.

One with a directory is `ottla.broker.data.storage.DirectoryStorage`, which also decides what has to
be on the disk before an answer leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.broker.data.disk import DiskFault
    from ottla.broker.faults import Names
    from ottla.broker.plane import DataPlane

__all__ = ["STORAGE", "Storage"]

STORAGE: Final = "storage"
"""What is wrong (`Broker.wrong`) where a log directory is offline."""


class Storage:
    """Logs in memory, on a data plane."""

    is_kept = False
    """Whether they are on a disk."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane

    def open(self, topic: str, topic_id: bytes, index: int, **options: Any) -> int:
        """Opens a partition; returns its handle.

        Raises:
            KafkaError: the system could not.
        """
        return self.plane.open(topic, topic_id, index, **options)

    def configure(self, topic: str, handle: int, texts: Mapping[str, str]) -> None:
        """Takes all settings of a partition's topic."""

    def remove(self, handle: int) -> None:
        """Closes a partition, and its log is gone."""
        self.plane.close(handle)

    # What a test has the disk do.

    @property
    def disk_faults(self) -> Sequence[DiskFault]:
        """Those that are set."""
        return ()

    def fail_disk(self, _kind: str, _names: Names) -> DiskFault:
        """Sets a fault of the disk.

        Raises:
            ValueError: there is no such fault, or no disk.
        """
        raise ValueError(
            "the logs of this broker are in memory, so there is no disk that can fail: give it a "
            "directory by data=, or have requests fail with KAFKA_STORAGE_ERROR"
        )

    def mend_disk(self, fault: DiskFault) -> None:
        """Takes a fault of the disk away."""

    # What must be on the disk.

    def begin(self) -> None:
        """A request, or what is due, is about to be served."""

    def moved(self, handles: tuple[int, ...]) -> None:
        """Logs have got records, or lost some."""

    def repeated(self, handles: tuple[int, ...]) -> None:
        """Logs were sent what they have had before."""

    def keep_log_starts(self) -> None:
        """Has logs begin where they begin now also behind a crash.

        Raises:
            KafkaError: that cannot be written.
        """

    def must_hold(self, _api_key: int) -> bool:
        """Whether an answer has to wait."""
        return False

    def hold(self, release: Callable[[bool], None]) -> None:
        """Has an answer wait; `release` is called then, with whether it may leave."""
        release(True)  # noqa: FBT003 - in memory nothing is waited for

    def unsynced(self, _handles: Iterable[int]) -> tuple[int, ...]:
        """Returns those of these logs that are not known to be on the disk as they are now."""
        return ()

    def when_synced(self, _handles: Iterable[int], then: Callable[[bool], None]) -> None:
        """Calls back once logs are on the disk as they are now, with whether they are."""
        then(True)  # noqa: FBT003 - as above

    def end(self) -> None:
        """The request is served, or what was due."""

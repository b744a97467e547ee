"""Groups and offsets, and the one way in which what survives a restart changes.

`keep` writes records to the log and, if the log has taken them, applies them; `replay` applies
those of a log that is loaded. What a classic group knows beyond its record (who waits, who was
promised a place) is lost in a restart, as its clients expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.coordinator_errors import error_of_log
from ottla.broker.groups.classic_group import ClassicGroup
from ottla.broker.groups.consumer_group import ConsumerGroup
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import MAX_GROUPS
from ottla.broker.groups.offsets import Offsets
from ottla.broker.groups.records import ClassicGroupRecord, OffsetCommit, Record
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.groups.config import GroupConfig
    from ottla.broker.groups.timers import Timers
    from ottla.broker.image import Image
    from ottla.broker.log_partitions import LogPartitions
    from ottla.records import VerificationGuard

NONE = ErrorCode.NONE


class Producer(NamedTuple):
    """Whose transaction records are part of, and what shows that it is under way (KIP-890)."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None = None


# Writes records of one group as one batch. Returns the error code of the append.
Write = Callable[[Sequence[Record], int, "Producer | None"], int]


class GroupStore:
    """All groups and their offsets.

    Attributes:
        partitions: of the log, and which of them are led.
    """

    def __init__(
        self,
        config: Callable[[], GroupConfig],
        timers: Timers,
        image: Callable[[], Image],
        *,
        partitions: LogPartitions,
        write: Write,
        settings_of: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._config = config
        self._settings_of = settings_of
        self.partitions = partitions
        self.timers = timers
        self.groups: dict[str, ClassicGroup | ConsumerGroup] = {}
        self.offsets = Offsets()
        self._image = image
        self._write = write

    @property
    def config(self) -> GroupConfig:
        """The settings of groups as of now."""
        return self._config()

    def config_of(self, group_id: str) -> GroupConfig:
        """Returns the settings of one group as of now."""
        return self.config.of_group(self._settings_of(group_id))

    @property
    def image(self) -> Image:
        """The cluster as of now."""
        return self._image()

    def keep(self, records: Sequence[Record], now_ms: int, producer: Producer | None = None) -> int:
        """Writes records of one group and applies them. Returns an error code."""
        code = self.write(records, now_ms, producer)
        if code != NONE:
            return code
        for record in records:
            # A classic group is ahead of its record, which is written of it.
            if not isinstance(record, ClassicGroupRecord) or record.value is None:
                self.replay(record, now_ms, -1 if producer is None else producer.producer_id)
        return NONE

    def write(
        self, records: Sequence[Record], now_ms: int, producer: Producer | None = None
    ) -> int:
        """Writes records of one group alone. Returns an error code."""
        code = self._write(records, now_ms, producer) if records else NONE
        return error_of_log(code)

    def replay(self, record: Record, now_ms: int, producer_id: int = -1) -> None:
        """Applies a record of the log."""
        if isinstance(record, OffsetCommit):
            self.offsets.replay(record, producer_id)
            return
        group = self.groups.get(record.group_id)
        if isinstance(record, ClassicGroupRecord):
            if record.value is not None:
                if not isinstance(group, ClassicGroup):
                    group = self.groups[record.group_id] = ClassicGroup(record.group_id, now_ms)
                group.restore(record.value)
            elif isinstance(group, ClassicGroup):
                del self.groups[record.group_id]
            return
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = self.groups[record.group_id] = ConsumerGroup(record.group_id)
        group.replay(record)
        if group.is_deleted:
            del self.groups[record.group_id]

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Adds a classic group, of which nothing is kept yet."""
        self.require_place(group_id)
        group = ClassicGroup(group_id, now_ms)
        self.groups[group_id] = group
        return group

    def require_coordinator(self, group_id: str) -> None:
        """Refuses a group whose partition of the log is not led here (16)."""
        error = self.partitions.error(group_id)
        if error:
            raise GroupError(error)

    def require_place(self, group_id: str) -> None:
        """Refuses a group beyond the bound."""
        if len(self.groups) >= MAX_GROUPS and group_id not in self.groups:
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)

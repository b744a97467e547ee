"""What a consumer raises besides the errors of every client.

Errors about positions name their partitions and last: each `poll` raises them again until the
application seeks, or the partition is no longer assigned.

    KafkaError
    ├─ PositionError               of partitions that cannot go on where they are
    │   ├─ InvalidPartitionEpochError    the topic was deleted and created again (KIP-232)
    │   ├─ LogTruncationError            records before the position are gone (KIP-320)
    │   ├─ OffsetOutOfRangeError         no record has the position, and there is no policy
    │   └─ NoOffsetForPartitionError     nothing is committed, and there is no policy
    ├─ RecordDeserializationError  of one record (KIP-334)
    ├─ CorruptFetchError           of a batch that cannot be read
    └─ WakeupError                 of a call that `wakeup` ended
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ottla.client.errors import Category
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.partitions import TopicPartition

__all__ = [
    "INVALID_PARTITION_EPOCH",
    "CorruptFetchError",
    "InvalidPartitionEpochError",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "OffsetOutOfRangeError",
    "PositionError",
    "RecordDeserializationError",
    "WakeupError",
]

INVALID_PARTITION_EPOCH = 12320
"""The error code of Ottla's own that says that a partition is another of the same name."""

_NAMED = 3


class PositionError(KafkaError):
    """Partitions cannot go on where they are; other partitions are not affected.

    Attributes:
        partitions: a number of each, which the class says the meaning of.
    """

    category: ClassVar[Category] = Category.OTHER
    retriable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False
    code: ClassVar[int] = ErrorCode.UNKNOWN_SERVER_ERROR
    code_name: ClassVar[str] = "UNKNOWN_SERVER_ERROR"

    _said: ClassVar[str]
    _advice: ClassVar[str]

    def __init__(self, partitions: Mapping[TopicPartition, int]) -> None:
        self.partitions = dict(partitions)
        named = [
            f"{topic}-{partition} ({self._number(number)})"
            for (topic, partition), number in sorted(self.partitions.items())
        ]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        super().__init__(
            f"{self._said}: {', '.join(named[:_NAMED])}{more}: {self._advice}",
            self.code,
            self.code_name,
        )

    def _number(self, number: int) -> str:
        return f"position {number}"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.partitions,))


class InvalidPartitionEpochError(PositionError):
    """The topic was deleted and created again: the position is one of the earlier topic.

    Its `partitions` have the epoch of the partition as it is now; -1 where only the topic's id
    tells.
    """

    code = INVALID_PARTITION_EPOCH
    code_name = "INVALID_PARTITION_EPOCH"
    _said = "the topic was deleted and created again since the position was set"
    _advice = "seek to where the new one shall be read from, as by seek_to_beginning()"

    def _number(self, number: int) -> str:
        return f"partition epoch {number}" if number >= 0 else "another topic id"


class LogTruncationError(PositionError):
    """Records before the position are no longer in the log (KIP-320).

    Its `partitions` have the offset from which on the log differs from what was read.
    """

    code = ErrorCode.OFFSET_OUT_OF_RANGE
    code_name = "OFFSET_OUT_OF_RANGE"
    _said = "the log was truncated below the position"
    _advice = "seek to the offset named to read what took the place of the lost records"

    def _number(self, number: int) -> str:
        return f"differs from offset {number} on"


class OffsetOutOfRangeError(PositionError):
    """No log has the position, and ``auto_offset_reset`` is ``none``."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE
    code_name = "OFFSET_OUT_OF_RANGE"
    _said = "the position is outside of the log, and auto_offset_reset is none"
    _advice = "seek, or set auto_offset_reset to earliest or latest"


class NoOffsetForPartitionError(PositionError):
    """The group has no committed offset, and ``auto_offset_reset`` is ``none``."""

    _said = "there is no committed offset, and auto_offset_reset is none"
    _advice = "seek, commit an offset, or set auto_offset_reset to earliest or latest"

    def _number(self, number: int) -> str:  # noqa: ARG002 - as the base says
        return "no position"


class RecordDeserializationError(KafkaError):
    """A deserializer raised; the position stays at the record, so seek past it to go on.

    Attributes:
        topic, partition, offset: of the record.
        origin: ``key`` or ``value``.
        root: what the deserializer raised; also its ``__cause__``.
    """

    category: ClassVar[Category] = Category.OTHER
    retriable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False

    def __init__(
        self, topic: str, partition: int, offset: int, origin: str, root: BaseException
    ) -> None:
        super().__init__(
            f"the {origin}_deserializer raised {type(root).__name__} for offset {offset} of "
            f"{topic}-{partition}: {root}; seek to offset {offset + 1} to go on behind it",
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "UNKNOWN_SERVER_ERROR",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.origin = origin
        self.root = root
        self.__cause__ = root

    def __reduce__(self) -> tuple[object, ...]:
        found: tuple[Any, ...] = (self.topic, self.partition, self.offset, self.origin, self.root)
        return (type(self), found)


class CorruptFetchError(KafkaError):
    """A batch cannot be read; the position stays before it.

    Attributes:
        topic, partition, offset: where it begins.
        root: what is wrong with it; also its ``__cause__``.
    """

    category: ClassVar[Category] = Category.RETRIABLE
    retriable: ClassVar[bool] = True
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False

    def __init__(self, topic: str, partition: int, offset: int, root: BaseException) -> None:
        super().__init__(
            f"the batch at offset {offset} of {topic}-{partition} cannot be read: {root}; poll "
            "again to fetch it anew, or seek behind it",
            ErrorCode.CORRUPT_MESSAGE,
            "CORRUPT_MESSAGE",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.root = root
        self.__cause__ = root

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.topic, self.partition, self.offset, self.root))


class WakeupError(KafkaError):
    """Another thread called `wakeup`: nothing is wrong, and the call may be made again."""

    category: ClassVar[Category] = Category.OTHER
    retriable: ClassVar[bool] = True
    fatal: ClassVar[bool] = False
    restartable: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__("wakeup() ended the call", ErrorCode.NONE, "NONE")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

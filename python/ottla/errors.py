"""Every exception Ottla raises, in one tree.

Exceptions carry what they know as attributes and can be pickled, so that they cross processes.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuditCancelledError",
    "CorruptRecordBatchError",
    "DamageWarning",
    "FindingsError",
    "InvalidRecordError",
    "KafkaError",
    "LimitExceededError",
    "MissingDependencyError",
    "NotAPartitionError",
    "OttlaError",
    "ProducerSnapshotError",
    "RecordBatchError",
    "SparkError",
    "StorageError",
    "TruncatedBatchError",
    "UnsupportedCompressionError",
]


class OttlaError(Exception):
    """Base of everything Ottla raises on purpose."""


class RecordBatchError(OttlaError, ValueError):
    """Bytes that cannot be read or checked as record batches.

    Attributes:
        kind: stable kebab-case name of the fault, such as ``crc-mismatch``.
        position: where it shows, in bytes from the start of the data.
        error_code: Kafka's code for this family of faults: 2 CORRUPT_MESSAGE, 87 INVALID_RECORD,
            10 MESSAGE_TOO_LARGE, -1 UNKNOWN_SERVER_ERROR for payloads their codec refuses.
        record_index: the record to blame within its batch, or ``None``.
    """

    def __init__(
        self,
        message: str,
        kind: str = "",
        position: int = 0,
        error_code: int = -1,
        record_index: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.position = position
        self.error_code = error_code
        self.record_index = record_index

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            type(self),
            (str(self), self.kind, self.position, self.error_code, self.record_index),
        )


class CorruptRecordBatchError(RecordBatchError):
    """Length, magic, checksum or structure is damaged."""


class TruncatedBatchError(CorruptRecordBatchError):
    """The data end inside a batch: usual for the last batch of a fetch response or an open file."""


class InvalidRecordError(RecordBatchError):
    """Well framed and summed, but against the rules of the format."""


class UnsupportedCompressionError(RecordBatchError):
    """A codec that does not exist or is not allowed here, or a payload its codec refuses."""


class LimitExceededError(RecordBatchError):
    """Input that asks for more than a bound allows."""


class ProducerSnapshotError(OttlaError, ValueError):
    """Bytes that are no producer snapshot.

    Attributes:
        kind: stable kebab-case name: ``snapshot-version``, ``snapshot-cut``, ``snapshot-count`` or
            ``snapshot-crc``.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.kind))


class KafkaError(OttlaError):
    """An error a broker answers, where no record set is judged.

    Attributes:
        error_code: its number on the wire.
        error: its name, such as ``OFFSET_OUT_OF_RANGE``.
    """

    def __init__(self, message: str, error_code: int = -1, error: str = "") -> None:
        super().__init__(message)
        self.error_code = error_code
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.error_code, self.error))


class AuditCancelledError(OttlaError):
    """An audit was told to stop before it was done."""


class FindingsError(OttlaError):
    """An audit found what its caller wanted to be told of.

    Attributes:
        findings: the findings, as dictionaries.
    """

    def __init__(self, message: str, findings: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.findings = findings or []

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.findings))


class MissingDependencyError(OttlaError, ImportError):
    """A call that needs an optional package which is not installed; says which to install."""


class SparkError(OttlaError):
    """A Spark session that does not start, or a job of Ottla's on Spark that failed, and why."""


class StorageError(OttlaError, ValueError):
    """A URI that leads to no object store, or a setting that no store has; says what to do."""


class NotAPartitionError(OttlaError, ValueError):
    """A path that leads to no partition directory and no segment, or to several partitions."""


class DamageWarning(UserWarning):
    """Damage in a log that was passed over.

    Attributes:
        damage: what `ottla.read_partition` tells about it, an `ottla.Damage`.
    """

    def __init__(self, message: str, damage: Any = None) -> None:
        super().__init__(message)
        self.damage = damage

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.damage)

"""All exceptions that Ottla raises.

Exceptions have attributes for what is known about the error, and can be pickled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AuditCancelledError",
    "CorruptRecordBatchError",
    "DamageWarning",
    "DataLossWarning",
    "EngineError",
    "FindingsError",
    "InvalidRecordError",
    "KafkaError",
    "LimitExceededError",
    "ListenError",
    "LogDirectoryError",
    "MalformedFrameError",
    "MissingDependencyError",
    "NotAPartitionError",
    "OttlaError",
    "OutOfRangeError",
    "ProducerSnapshotError",
    "RecordBatchError",
    "RecordsRefusedError",
    "SchemaError",
    "ServerBusyError",
    "ServerError",
    "ServerStoppedError",
    "SparkError",
    "StorageError",
    "TruncatedBatchError",
    "UnsupportedCompressionError",
    "UnwritableMessageError",
]


class OttlaError(Exception):
    """Base class of all exceptions of Ottla."""


class EngineError(OttlaError, RuntimeError):
    """The engine has met a state that cannot be: a fault of Ottla's, whatever the input.

    What it worked on is dropped; other calls are not affected.
    """

    def __str__(self) -> str:
        return f"a fault in Ottla itself, please report it: {super().__str__()}"


class OutOfRangeError(OttlaError, ValueError, OverflowError):
    """An integer argument beyond the range of those that a function takes."""

    def add_note(self, note: str) -> None:
        """Takes the argument's name from the engine's first note on it, `while processing 'name'`.

        Notes are shown below a message, and not at all before Python 3.11.
        """
        said = str(self)
        before, quote, name = note.rstrip("'").partition("while processing '")
        if quote and not before and " is " not in said:
            self.args = (f"{name} is {said}",)
        elif hasattr(super(), "add_note"):
            super().add_note(note)


class RecordBatchError(OttlaError, ValueError):
    """Bytes that cannot be read, or are not valid, as record batches.

    Attributes:
        kind: stable kebab-case name of the fault, such as ``crc-mismatch``.
        position: where the fault is, in bytes from the start of the data.
        error_code: Kafka's code for this family of faults: 2 CORRUPT_MESSAGE, 87 INVALID_RECORD,
            10 MESSAGE_TOO_LARGE, -1 UNKNOWN_SERVER_ERROR for payloads that do not decompress.
        record_index: index of the faulty record within its batch, or ``None``.
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

    def __reduce__(self) -> tuple[object, ...]:
        return (
            type(self),
            (str(self), self.kind, self.position, self.error_code, self.record_index),
        )


class CorruptRecordBatchError(RecordBatchError):
    """The length, magic, checksum or structure of a batch is damaged."""


class TruncatedBatchError(CorruptRecordBatchError):
    """The data ends inside a batch, as fetch responses and open files usually do."""


class InvalidRecordError(RecordBatchError):
    """A batch with valid framing and checksum that violates the rules of the format."""


class UnsupportedCompressionError(RecordBatchError):
    """An unknown codec, one not allowed here, or a payload that does not decompress."""


class LimitExceededError(RecordBatchError):
    """Input that exceeds a limit."""


class ProducerSnapshotError(OttlaError, ValueError):
    """Bytes that are not a valid producer snapshot.

    Attributes:
        kind: stable kebab-case name of the fault: ``snapshot-version``, ``snapshot-cut``,
            ``snapshot-count`` or ``snapshot-crc``.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.kind))


class KafkaError(OttlaError):
    """An error that a broker returns for a request other than a record set.

    Attributes:
        error_code: Kafka's error code.
        error: the code's name, such as ``OFFSET_OUT_OF_RANGE``.
    """

    def __init__(self, message: str, error_code: int = -1, error: str = "") -> None:
        super().__init__(message)
        self.error_code = error_code
        self.error = error

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.error_code, self.error))


class RecordsRefusedError(OttlaError, ValueError):
    """A leader refuses a record set; `Verdict.raise_for_error` raises it.

    Attributes:
        error_code: Kafka's error code.
        error: the code's name, such as ``INVALID_RECORD``.
        record_errors: the records to blame, ascending, as `ottla.RecordError`.
    """

    def __init__(
        self,
        message: str,
        error_code: int = -1,
        error: str = "",
        record_errors: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.error = error
        self.record_errors = record_errors

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.error_code, self.error, self.record_errors))


class MalformedFrameError(OttlaError, ValueError):
    """Bytes of a connection that are no message of Kafka's protocol.

    Attributes:
        position: where the fault is, in bytes from the start of the frame.
        what: the fault, without its position.
    """

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"{what} (position {position})")
        self.position = position
        self.what = what

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.position, self.what))


class UnwritableMessageError(OttlaError, ValueError):
    """A message of Kafka's protocol with a value that its version cannot hold."""


class AuditCancelledError(OttlaError):
    """An audit was cancelled before it completed."""


class FindingsError(OttlaError):
    """An audit has findings at or above the severity its caller asked to fail on.

    Attributes:
        findings: those findings, as dictionaries.
    """

    def __init__(self, message: str, findings: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.findings))


class MissingDependencyError(OttlaError, ImportError):
    """A call needs an optional package that is not installed; the message names it."""


class ServerError(OttlaError):
    """A server cannot do what it is asked to; the message says why."""


class ListenError(ServerError, OSError):
    """A server cannot have an address, or speak TLS with the certificates it was given."""


class ServerStoppedError(ServerError):
    """A server has stopped, or runs in another process: it does no jobs."""


class ServerBusyError(ServerError):
    """More jobs wait than a server holds."""


class SparkError(OttlaError):
    """A Spark session failed to start, or an Ottla job on Spark failed; the message says why."""


class SchemaError(OttlaError, ValueError):
    """A schema that is none or not known, or a key or a value that does not fit it."""


class StorageError(OttlaError, ValueError):
    """A URI that does not lead to an object store, or an unknown setting of a store."""


class LogDirectoryError(OttlaError, ValueError):
    """A directory that a broker cannot have its logs in; the message names it and says why."""


class NotAPartitionError(OttlaError, ValueError):
    """A path to something other than one partition directory or segments of one partition."""


class DataLossWarning(UserWarning):
    """A stream passed over records that are lost, as ``fail_on_data_loss=false`` asks."""


class DamageWarning(UserWarning):
    """Damage in a log was skipped.

    Attributes:
        damage: the damage as `ottla.read_partition` reports it, an `ottla.Damage`.
    """

    def __init__(self, message: str, damage: Any = None) -> None:
        super().__init__(message)
        self.damage = damage

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.damage)

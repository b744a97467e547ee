"""Ottla: a record-batch engine for Kafka.

Reading and checking::

    import ottla

    for batch in ottla.read_batches(data):        # headers only, any magic
        batch.verify()                            # the checksum
        for record in batch.records():            # inflates and parses
            print(record.offset, record.key, record.value)

    ottla.check_batches(data)                     # every rule of the format
    columns = ottla.read_columns(data)            # NumPy and Arrow, without copying
    result = ottla.audit("/var/lib/kafka")        # a broker's log directory

The audit, and whatever reads logs, is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from ottla._engine import __version__
from ottla.audit import audit
from ottla.errors import (
    AuditCancelledError,
    CorruptRecordBatchError,
    DamageWarning,
    EngineError,
    FindingsError,
    InvalidRecordError,
    KafkaError,
    LimitExceededError,
    MissingDependencyError,
    NotAPartitionError,
    OttlaError,
    OutOfRangeError,
    ProducerSnapshotError,
    RecordBatchError,
    RecordsRefusedError,
    SparkError,
    TruncatedBatchError,
    UnsupportedCompressionError,
)
from ottla.records import (
    AbortedTransaction,
    Columns,
    Leader,
    ProducerState,
    Record,
    RecordBatch,
    RecordError,
    RememberedBatch,
    Verdict,
    VerificationGuard,
    build_batch,
    build_batch_from_columns,
    build_control_batch,
    build_message_set,
    check_batches,
    columns,
    decode_record,
    read,
    read_batches,
    read_columns,
    validate,
)

if TYPE_CHECKING:
    from ottla.audit import (
        AuditResult,
        Damage,
        RebuiltPartition,
        RecoveryPrediction,
        Table,
        predict_recovery,
        read_partition,
        rebuild_side_files,
    )
    from ottla.logs.reading import PartitionRecords
    from ottla.records import NewRecord, TopicConfig
else:
    from ottla.on_demand import on_demand

    __getattr__ = on_demand(
        __name__,
        {
            "AuditResult": "ottla.audit",
            "Damage": "ottla.audit",
            "NewRecord": "ottla.records",
            "PartitionRecords": "ottla.logs.reading",
            "RebuiltPartition": "ottla.audit",
            "RecoveryPrediction": "ottla.audit",
            "Table": "ottla.audit",
            "TopicConfig": "ottla.records",
            "predict_recovery": "ottla.audit",
            "read_partition": "ottla.audit",
            "rebuild_side_files": "ottla.audit",
            # Packages, which were always there behind a plain `import ottla`.
            "logs": "ottla.logs",
            "severity": "ottla.severity",
            "storage": "ottla.storage",
            "text": "ottla.text",
            "words": "ottla.words",
        },
    )

__all__ = [
    "AbortedTransaction",
    "AuditCancelledError",
    "AuditResult",
    "Columns",
    "CorruptRecordBatchError",
    "Damage",
    "DamageWarning",
    "EngineError",
    "FindingsError",
    "InvalidRecordError",
    "KafkaError",
    "Leader",
    "LimitExceededError",
    "MissingDependencyError",
    "NewRecord",
    "NotAPartitionError",
    "OttlaError",
    "OutOfRangeError",
    "PartitionRecords",
    "ProducerSnapshotError",
    "ProducerState",
    "RebuiltPartition",
    "Record",
    "RecordBatch",
    "RecordBatchError",
    "RecordError",
    "RecordsRefusedError",
    "RecoveryPrediction",
    "RememberedBatch",
    "SparkError",
    "Table",
    "TopicConfig",
    "TruncatedBatchError",
    "UnsupportedCompressionError",
    "Verdict",
    "VerificationGuard",
    "__version__",
    "audit",
    "build_batch",
    "build_batch_from_columns",
    "build_control_batch",
    "build_message_set",
    "check_batches",
    "columns",
    "decode_record",
    "predict_recovery",
    "read",
    "read_batches",
    "read_columns",
    "read_partition",
    "rebuild_side_files",
    "validate",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

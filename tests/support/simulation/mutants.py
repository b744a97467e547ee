"""Changes of the broker that break what it promises; a simulation that misses one is of no use.

Each is a line of the code as it is, and what it is changed to. A line that is not there any more is
an error: the mutant wants a new place.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change of one place."""

    breaks: str
    module: str
    before: str
    after: str


_COORDINATOR = "broker/transactions/coordinator.py"
_DECISIONS = "broker/transactions/decisions.py"
_METADATA = "broker/transactions/metadata.py"
_SERVICE = "broker/transactions/service.py"
_VERIFICATION = "broker/transactions/verification.py"
_OFFSETS = "broker/groups/offsets.py"

MUTANTS = (
    Mutant(
        "an abort commits",
        _COORDINATOR,
        "commit=commit,\n                next_producer_id",
        "commit=True,\n                next_producer_id",
    ),
    Mutant(
        "a transaction never times out",
        _COORDINATOR,
        "self._set_timer(ongoing.transactional_id, deadline_ms, self._time_out)",
        "assert deadline_ms",
    ),
    Mutant(
        "a transaction times out at once",
        _COORDINATOR,
        "deadline_ms = ongoing.start_ms + ongoing.timeout_ms",
        "deadline_ms = ongoing.start_ms + 1",
    ),
    Mutant(
        "a partition that is in no transaction can be written to",
        _COORDINATOR,
        "if partition in known.partitions",
        "if partition is not None",
    ),
    Mutant(
        "whoever was followed can act",
        _DECISIONS,
        "if known.producer_epoch != producer_epoch:\n        return ErrorCode.PRODUCER_FENCED\n"
        "    if known.is_prepared:",
        "if known.is_prepared:",
    ),
    Mutant(
        "the retry of a commit is refused",
        _DECISIONS,
        "return ErrorCode.CONCURRENT_TRANSACTIONS if known.is_prepared else ErrorCode.NONE",
        "return ErrorCode.INVALID_TXN_STATE",
    ),
    Mutant(
        "the retry of an end that raises the epoch is refused",
        _DECISIONS,
        "is_retry = is_retry_with_new_id or known.producer_epoch == producer_epoch + 1",
        "is_retry = is_retry_with_new_id",
    ),
    Mutant(
        "the retry of an abort is the end of the next transaction",
        _DECISIONS,
        "if not is_current:\n        return ErrorCode.PRODUCER_FENCED\n    # Nothing",
        "# Nothing",
    ),
    Mutant(
        "a start fences nobody",
        _METADATA,
        "producer_epoch=self.producer_epoch + 1,\n            last_producer_epoch=self",
        "producer_epoch=max(self.producer_epoch, 0),\n            last_producer_epoch=self",
    ),
    Mutant(
        "the end of a transaction raises no epoch",
        _METADATA,
        "producer_epoch=min(self.producer_epoch + bumps, MAX_EPOCH)",
        "producer_epoch=min(self.producer_epoch, MAX_EPOCH)",
    ),
    Mutant(
        "a commit is remembered as an abort",
        _METADATA,
        "is_commit = self.state == TransactionState.PREPARE_COMMIT",
        "is_commit = self.state == TransactionState.PREPARE_ABORT",
    ),
    Mutant(
        "only the last partition of a transaction is ended",
        _METADATA,
        "partitions=self.partitions.union(added)",
        "partitions=frozenset(added)",
    ),
    Mutant(
        "markers say the opposite",
        _SERVICE,
        "commit=marker.is_commit,",
        "commit=not marker.is_commit,",
    ),
    Mutant(
        "the first partition gets no marker",
        _SERVICE,
        "self.write_marker(marker, name, now_ms) for name in sorted(partitions)",
        "self.write_marker(marker, name, now_ms) if name > min(partitions) else 0 "
        "for name in sorted(partitions)",
    ),
    Mutant(
        "offsets of transactions are never decided",
        _SERVICE,
        "if topic == CONSUMER_OFFSETS:",
        "if not topic:",
    ),
    Mutant(
        "what a producer of version 2 writes to does not join its transaction",
        _VERIFICATION,
        "if not adds:",
        "if adds:",
    ),
    Mutant(
        "offsets of aborted transactions count",
        _OFFSETS,
        "if is_commit and (known is None or known.order < entry.order):",
        "if known is None or known.order < entry.order:",
    ),
    Mutant(
        "offsets of open transactions count",
        _OFFSETS,
        "elif producer_id < 0:",
        "elif producer_id is not None:",
    ),
    Mutant(
        "a committed offset is not kept",
        _OFFSETS,
        "of_group[key] = entry\n\n    def _remove",
        "of_group.setdefault(key, entry)\n\n    def _remove",
    ),
    Mutant(
        "producers share an id",
        "broker/transactions/producer_ids.py",
        "self._next += 1",
        "self._next += taken % 2",
    ),
)

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
    shows: str
    """What a seed fails with, as a regular expression: a broken promise, or what follows."""
    needs_power_cuts: bool = False


_COORDINATOR = "broker/transactions/coordinator.py"
_DECISIONS = "broker/transactions/decisions.py"
_METADATA = "broker/transactions/metadata.py"
_SERVICE = "broker/transactions/service.py"
_VERIFICATION = "broker/transactions/verification.py"
_OFFSETS = "broker/groups/offsets.py"
_CLASSIC = "broker/groups/classic.py"
_FLUSHER = "broker/data/flusher.py"
_DELETE_RECORDS = "broker/handlers/delete_records.py"

MUTANTS = (
    Mutant(
        "an abort commits",
        _COORDINATOR,
        "commit=commit,\n                next_producer_id",
        "commit=True,\n                next_producer_id",
        "records are committed",
    ),
    Mutant(
        "a transaction never times out",
        _COORDINATOR,
        "self._set_timer(ongoing.transactional_id, deadline_ms, self._time_out)",
        "assert deadline_ms",
        "open for ever",
    ),
    Mutant(
        "a transaction times out at once",
        _COORDINATOR,
        "deadline_ms = ongoing.start_ms + ongoing.timeout_ms",
        "deadline_ms = ongoing.start_ms + 1",
        "payments: error (90|47) ",
    ),
    Mutant(
        "a partition that is in no transaction can be written to",
        _COORDINATOR,
        "if partition in known.partitions",
        "if partition is not None",
        "open for ever",
    ),
    Mutant(
        "whoever was followed can act",
        _DECISIONS,
        "if known.producer_epoch != producer_epoch:\n        return ErrorCode.PRODUCER_FENCED\n"
        "    if known.is_prepared:",
        "if known.is_prepared:",
        "records are committed",
    ),
    Mutant(
        "the retry of a commit is refused",
        _DECISIONS,
        "return ErrorCode.CONCURRENT_TRANSACTIONS if known.is_prepared else ErrorCode.NONE",
        "return ErrorCode.INVALID_TXN_STATE",
        "payments: error 48 ",
    ),
    Mutant(
        "the retry of an end that raises the epoch is refused",
        _DECISIONS,
        "is_retry = is_retry_with_new_id or known.producer_epoch == producer_epoch + 1",
        "is_retry = is_retry_with_new_id",
        "payments: error 90 ",
    ),
    Mutant(
        "the retry of an abort is the end of the next transaction",
        _DECISIONS,
        "if not is_current:\n        return ErrorCode.PRODUCER_FENCED\n    # Nothing",
        "# Nothing",
        "was ended, and Start",
    ),
    Mutant(
        "a start fences nobody",
        _METADATA,
        "producer_epoch=self.producer_epoch + 1,\n            last_producer_epoch=self",
        "producer_epoch=max(self.producer_epoch, 0),\n            last_producer_epoch=self",
        r"is at \[\]",
    ),
    Mutant(
        "the end of a transaction raises no epoch",
        _METADATA,
        "producer_epoch=min(self.producer_epoch + bumps, MAX_EPOCH)",
        "producer_epoch=min(self.producer_epoch, MAX_EPOCH)",
        r"is at \[\]|payments: error 48 ",
    ),
    Mutant(
        "a commit is remembered as an abort",
        _METADATA,
        "is_commit = self.state == TransactionState.PREPARE_COMMIT",
        "is_commit = self.state == TransactionState.PREPARE_ABORT",
        "payments: error 48 ",
    ),
    Mutant(
        "only the last partition of a transaction is ended",
        _METADATA,
        "partitions=self.partitions.union(added)",
        "partitions=frozenset(added)",
        "records are committed",
    ),
    Mutant(
        "markers say the opposite",
        _SERVICE,
        "commit=marker.is_commit,",
        "commit=not marker.is_commit,",
        "records are committed",
    ),
    Mutant(
        "the first partition gets no marker",
        _SERVICE,
        "self.write_marker(marker, name, now_ms) for name in sorted(partitions)",
        "self.write_marker(marker, name, now_ms) if name > min(partitions) else 0 "
        "for name in sorted(partitions)",
        "records are committed",
    ),
    Mutant(
        "offsets of transactions are never decided",
        _SERVICE,
        "if topic == CONSUMER_OFFSETS:",
        "if not topic:",
        "the group of payments is at None",
    ),
    Mutant(
        "what a producer of version 2 writes to does not join its transaction",
        _VERIFICATION,
        "if not adds:",
        "if adds:",
        "payments: error 120 ",
    ),
    Mutant(
        "offsets of aborted transactions count",
        _OFFSETS,
        "if is_commit and (known is None or known.order < entry.order):",
        "if known is None or known.order < entry.order:",
        "the group of payments is at",
    ),
    Mutant(
        "offsets of open transactions count",
        _OFFSETS,
        "elif producer_id < 0:",
        "elif producer_id is not None:",
        "the group of payments is at",
    ),
    Mutant(
        "a committed offset is not kept",
        _OFFSETS,
        "of_group[key] = entry\n\n    def _remove",
        "of_group.setdefault(key, entry)\n\n    def _remove",
        "was committed before|the group of payments is at",
    ),
    Mutant(
        "producers share an id",
        "broker/transactions/producer_ids.py",
        "self._next += 1",
        "self._next += taken % 2",
        r"is at \[\]|: error \d+ ",
    ),
    Mutant(
        "a fetch that waits is never woken",
        "broker/state.py",
        'self.waiting.wake(("partition", handle))',
        "assert handle >= 0",
        "nobody has answered .*FetchRequest",
    ),
    Mutant(
        "a marker wakes no fetch",
        _SERVICE,
        "is_commit=marker.is_commit)\n        state.moved((partition.handle,))",
        "is_commit=marker.is_commit)",
        "nobody has answered .*FetchRequest",
    ),
    Mutant(
        "the leader's sync is answered alone",
        _CLASSIC,
        "if member.sync_reply is None:\n                continue",
        "if member.sync_reply is None or member.member_id != request.member_id:\n"
        "                continue",
        "nobody has answered .*SyncGroupRequest",
    ),
    Mutant(
        "a member of an earlier generation commits",
        "broker/groups/classic_group.py",
        "            if generation_id != self.generation_id:\n"
        "                raise GroupError(ErrorCode.ILLEGAL_GENERATION)\n"
        "        elif not is_transactional",
        "        elif not is_transactional",
        "was committed before|was taken",
    ),
    Mutant(
        "a member gets the assignment of another",
        _CLASSIC,
        'given.get(member.member_id, b"")',
        'next(iter(given.values()), b"")',
        "classic-1 and classic-0 have|classic-0 and classic-1 have",
    ),
    Mutant(
        "a partition is given that another has yet to give up",
        "broker/groups/reconciliation.py",
        "if is_free(partition)}",
        "if is_free}",
        "was taken|while Ownership",
    ),
    Mutant(
        "what is to be synced is answered at once",
        _FLUSHER,
        "return self._is_touched\n",
        "return False\n",
        r"is at \[\]",
        needs_power_cuts=True,
    ),
    Mutant(
        "coordinators answer before a sync",
        _FLUSHER,
        "return api_key in _WRITERS and (self._is_running or bool(self._due))",
        "return False",
        "while Ownership|was committed before|was taken",
        needs_power_cuts=True,
    ),
    Mutant(
        "an answer leaves when a sync begins",
        _FLUSHER,
        "            self._held.append(release)\n        elif",
        "            release(not self._has_failed)\n        elif",
        "was committed before|was taken|is at",
        needs_power_cuts=True,
    ),
    Mutant(
        "a file is renamed before it is synced",
        "broker/data/small_files.py",
        "os.fsync(file.fileno())",
        "pass",
        "LogDirectoryError",
        needs_power_cuts=True,
    ),
    Mutant(
        "what a client deletes is there",
        _DELETE_RECORDS,
        "low_watermark = broker.plane.delete_records(partition.handle, offset)",
        "low_watermark = offset",
        "events begins at .* is deleted up to",
    ),
    Mutant(
        "what a client deletes comes back",
        _DELETE_RECORDS,
        "broker.storage.keep_log_starts()",
        "assert broker.storage",
        "events begins at",
        needs_power_cuts=True,
    ),
)

"""The transaction coordinator (KIP-98, KIP-360, KIP-664, KIP-890).

It keeps metadata of transactional ids, writes each change to its log before it holds, has markers
written where a transaction has ended, ends transactions that take too long, and forgets ids that
nobody uses. The states are those of `metadata.py`; what is refused is decided in `decisions.py`.

Invariants:

- What is known is what the log says: a change that the log did not take has not happened.
- A transaction is complete when each of its partitions has taken its marker, each of them once as
  long as the coordinator runs. Until then nothing else can happen to its id.
- An Ongoing transaction has a timer, a prepared one with markers missing has a retry, never both.
- `_known` is ordered by the last change, so ids expire from its front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.coordinator_errors import error_of_log
from ottla.broker.log_partitions import LogPartitions
from ottla.broker.transactions.decisions import (
    PROCEED,
    decide_add,
    decide_end,
    decide_init,
    decide_producer,
)
from ottla.broker.transactions.log import key_of, read_record, value_of
from ottla.broker.transactions.metadata import (
    EPOCH_BUMPS,
    NO_PRODUCER,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from ottla.broker.transactions.settings import (
    EXPIRY_RETRY_MS,
    MARKER_RETRY_MS,
    MAX_TRANSACTIONAL_IDS,
)
from ottla.broker.waiting import Waiting
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.broker.transactions.producer_ids import ProducerIds
    from ottla.broker.transactions.settings import TransactionSettings
    from ottla.broker.waiting import WaitingList

__all__ = [
    "Append",
    "Marker",
    "ProducerAnswer",
    "TransactionCoordinator",
    "WhenSynced",
    "WriteMarkers",
]


class ProducerAnswer(NamedTuple):
    """An error, or the producer id and epoch to go on with."""

    error_code: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER


class Marker(NamedTuple):
    """What ends a transaction in each of its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


Append = Callable[[int, bytes, bytes | None, int], int]
"""Adds a key and value to a partition of ``__transaction_state`` at a time; returns an error."""

WriteMarkers = Callable[[Marker, frozenset[TopicPartition], int], Mapping[TopicPartition, int]]
"""Writes a marker to partitions at a time; returns an error for each."""

WhenSynced = Callable[[int, frozenset[TopicPartition], Callable[[bool], None]], None]
"""Calls back once a partition of the log, and others, are on the disk, with whether they are."""

_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        # The topic was deleted, or is of a format without transactions: there is nothing to end.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        # The partition has seen a later epoch, so nothing of this one is open there.
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class TransactionCoordinator:
    """Coordinates the transactions of the partitions of ``__transaction_state`` that it leads.

    Args:
        settings: of this broker.
        producer_ids: where ids come from.
        append: adds a record to the log.
        write_markers: ends a transaction in partitions.
        when_synced: calls back once a partition of the log, and others, are on the disk, with
            whether they are.
        waiting: the broker's list; transactions end, retries and expiry come by it.

    Attributes:
        partitions: of the log: which are led, and what belongs to which.
    """

    def __init__(
        self,
        *,
        settings: TransactionSettings,
        producer_ids: ProducerIds,
        append: Append,
        write_markers: WriteMarkers,
        waiting: WaitingList,
        when_synced: WhenSynced | None = None,
    ) -> None:
        self.settings = settings
        self._producer_ids = producer_ids
        self._append = append
        self._write_markers = write_markers
        self._when_synced = when_synced or _at_once
        self._waiting = waiting
        self.partitions = LogPartitions(settings.partition_count)
        self._known: dict[str, TransactionMetadata] = {}
        self._timers: dict[str, Waiting] = {}
        self._unmarked: dict[str, frozenset[TopicPartition]] = {}
        self._syncing: set[str] = set()
        self._expiry: Waiting | None = None

    # What clients ask.

    def init_producer_id(
        self,
        transactional_id: str | None,
        transaction_timeout_ms: int,
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
    ) -> ProducerAnswer:
        """Returns the id and epoch to produce with; -1 and -1 come from a producer without any.

        A transaction that its predecessor left open is aborted first: the answer is
        CONCURRENT_TRANSACTIONS, and the producer asks again.
        """
        if (producer_id == NO_PRODUCER) != (producer_epoch == NO_PRODUCER):
            return ProducerAnswer(ErrorCode.INVALID_REQUEST)
        if transactional_id is None:
            return ProducerAnswer(ErrorCode.NONE, self._producer_ids.take(), 0)
        if not transactional_id:
            return ProducerAnswer(ErrorCode.INVALID_REQUEST)
        if not 0 < transaction_timeout_ms <= self.settings.max_timeout_ms:
            return ProducerAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        error = self.partitions.error(transactional_id)
        if error:
            return ProducerAnswer(error)
        known = self._known.get(transactional_id)
        if known is None:
            if len(self._known) >= MAX_TRANSACTIONAL_IDS:
                return ProducerAnswer(ErrorCode.POLICY_VIOLATION)
            known = TransactionMetadata(transactional_id, self._producer_ids.take())
        refused = decide_init(known, producer_id, producer_epoch)
        if refused is not PROCEED:
            return ProducerAnswer(refused)
        if not known.is_idle:
            return ProducerAnswer(self._fence(known, now_ms) or ErrorCode.CONCURRENT_TRANSACTIONS)
        started = self._start(known, producer_id, producer_epoch, transaction_timeout_ms, now_ms)
        error = self._store(started, now_ms)
        if error:
            return ProducerAnswer(error)
        return ProducerAnswer(ErrorCode.NONE, started.producer_id, started.producer_epoch)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        now_ms: int,
        *,
        transaction_version: int = 0,
    ) -> int:
        """Adds partitions to a transaction, and begins it if none is under way; returns an error.

        Args:
            transaction_version: 2 where the broker adds what a producer writes to (KIP-890).
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        error = self.partitions.error(transactional_id)
        if error:
            return error
        known = self._known.get(transactional_id)
        added = frozenset(partitions)
        decided = decide_add(known, producer_id, producer_epoch, added)
        if decided is not PROCEED or known is None:
            return decided or ErrorCode.NONE
        return self._store(known.with_partitions(added, transaction_version, now_ms), now_ms)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, int]:
        """Returns for each partition whether it is in the producer's transaction (KIP-890).

        A partition that is not in it has TRANSACTION_ABORTABLE.
        """
        error: int | None = ErrorCode.INVALID_REQUEST
        known = None
        if transactional_id:
            error = self.partitions.error(transactional_id)
            known = self._known.get(transactional_id)
        error = error or decide_producer(known, producer_id, producer_epoch)
        if error is not PROCEED or known is None:
            return dict.fromkeys(partitions, error or ErrorCode.NONE)
        return {
            partition: ErrorCode.NONE
            if partition in known.partitions
            else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
        *,
        commit: bool,
        transaction_version: int = 0,
    ) -> ProducerAnswer:
        """Commits or aborts; returns the id and epoch of the producer's next transaction.

        Args:
            transaction_version: of the client: 2 raises the epoch, or changes the id when epochs
                are used up.
        """
        if not transactional_id:
            return ProducerAnswer(ErrorCode.INVALID_REQUEST)
        error = self.partitions.error(transactional_id)
        if error:
            return ProducerAnswer(error)
        known = self._known.get(transactional_id)
        decided = decide_end(
            known,
            producer_id,
            producer_epoch,
            commit=commit,
            transaction_version=transaction_version,
        )
        if known is None or decided:
            return ProducerAnswer(decided or ErrorCode.NONE)
        if decided is PROCEED:
            changes_id = transaction_version >= EPOCH_BUMPS and known.is_exhausted
            ended = known.prepared(
                commit=commit,
                next_producer_id=self._producer_ids.take() if changes_id else NO_PRODUCER,
                transaction_version=transaction_version,
                now_ms=now_ms,
            )
            error = self._prepare(ended, now_ms)
            if error:
                return ProducerAnswer(error)
            known = ended.completed(now_ms)
        return ProducerAnswer(ErrorCode.NONE, known.producer_id, known.producer_epoch)

    def partitions_of(self, transactional_id: str) -> frozenset[TopicPartition]:
        """Returns where a transaction has written; nothing where there is none."""
        known = self._known.get(transactional_id)
        return frozenset() if known is None else known.partitions

    def when_synced(self, transactional_id: str, then: Callable[[bool], None]) -> None:
        """Calls back once what is known of a transaction is on the disk, with whether it is."""
        self._when_synced(self.partitions.of(transactional_id), frozenset(), then)

    def is_ending(self, transactional_id: str) -> bool:
        """Whether it comes to its end as soon as that is on the disk."""
        return transactional_id in self._syncing

    def describe(self, transactional_id: str) -> TransactionMetadata | int:
        """Returns what is known of an id, or an error code."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        error = self.partitions.error(transactional_id)
        known = self._known.get(transactional_id)
        return error or known or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def transactions(self) -> Iterator[TransactionMetadata]:
        """Iterates over what is known, the id with the oldest last change first."""
        return iter(tuple(self._known.values()))

    # What happens to partitions of the log.

    def load(
        self,
        partition: int,
        coordinator_epoch: int,
        records: Iterable[tuple[bytes | None, bytes | None]],
        now_ms: int,
    ) -> None:
        """Takes over a partition of the log with the keys and values of its records, in order.

        Transactions whose outcome is decided get their markers; a partition that has one already
        takes it as the end of an empty transaction.
        """
        self.give_up(partition)
        found: dict[str, TransactionMetadata] = {}
        for key, value in records:
            transactional_id, metadata = read_record(key, value)
            if metadata is not None:
                found[metadata.transactional_id] = metadata
            elif transactional_id is not None:
                found.pop(transactional_id, None)
        self.partitions.lead(partition, coordinator_epoch)
        known = {**self._known, **found}
        self._known = dict(sorted(known.items(), key=lambda item: item[1].last_update_ms))
        if self._expiry is not None:
            self._waiting.cancel(self._expiry)
        for metadata in found.values():
            if metadata.is_prepared:
                self._unmarked[metadata.transactional_id] = metadata.partitions
                self._complete(metadata.transactional_id, now_ms)
            elif metadata.state == TransactionState.ONGOING:
                self._start_timer(metadata)
        self._schedule_expiry()

    def give_up(self, partition: int) -> None:
        """Leads a partition of the log no longer, and forgets its ids.

        Nothing is written any more: no end of a transaction, no marker that is missing. Where the
        log is gone for good, a transaction under way hangs in the partitions it wrote to, as in
        Kafka: its last stable offset stays until somebody has a marker written (WriteTxnMarkers,
        KIP-664). Its producer gets another id when it starts anew, which ends nothing of the old.
        """
        if not self.partitions.give_up(partition):
            return
        for transactional_id in [
            name for name in self._known if self.partitions.of(name) == partition
        ]:
            self._forget(transactional_id)
        if self._expiry is not None and not self._known:
            self._waiting.cancel(self._expiry)

    # Changes.

    def _start(
        self,
        known: TransactionMetadata,
        producer_id: int,
        producer_epoch: int,
        timeout_ms: int,
        now_ms: int,
    ) -> TransactionMetadata:
        expects = producer_id != NO_PRODUCER
        is_current = not expects or producer_epoch == known.producer_epoch
        if known.producer_epoch != NO_PRODUCER and not is_current:
            return known.with_timeout(timeout_ms, now_ms)
        if known.is_exhausted:
            return known.with_producer_id(
                self._producer_ids.take(), timeout_ms, expects_epoch=expects, now_ms=now_ms
            )
        return known.with_next_epoch(timeout_ms, expects_epoch=expects, now_ms=now_ms)

    def _fence(self, known: TransactionMetadata, now_ms: int) -> int:
        """Aborts the transaction of a producer that did not ask for it, and fences the producer.

        The epoch is raised once more where clients expect that of every end: what the producer
        sends later must not look like the retry of an end of its own.
        """
        aborted = known.fenced().prepared(
            commit=False,
            next_producer_id=NO_PRODUCER,
            transaction_version=self.settings.transaction_version,
            now_ms=now_ms,
        )
        return self._prepare(aborted, now_ms)

    def _prepare(self, prepared: TransactionMetadata, now_ms: int) -> int:
        error = self._store(prepared, now_ms)
        if not error:
            name = prepared.transactional_id
            self._unmarked[name] = prepared.partitions
            # A marker that is on the disk without the decision might be one of two.
            self._once_synced(name, frozenset(), lambda: self._complete(name, now_ms))
        return error

    def _complete(self, transactional_id: str, now_ms: int) -> None:
        """Writes the markers that are missing, and ends the transaction once none is."""
        known = self._known[transactional_id]
        missing = self._unmarked[transactional_id]
        errors: Mapping[TopicPartition, int] = {}
        if missing:
            errors = self._write_markers(self._marker_of(known), missing, now_ms)
            missing = frozenset(name for name in missing if errors.get(name) not in _SETTLED)
        self._unmarked[transactional_id] = missing
        if not missing:
            # Once the end is on the disk, nobody looks for a marker that is missing.
            self._once_synced(
                transactional_id, known.partitions, lambda: self._finish(known, now_ms)
            )
            return
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED not in errors.values():
            self._set_timer(transactional_id, now_ms + MARKER_RETRY_MS, self._retry)

    def _once_synced(
        self, name: str, partitions: frozenset[TopicPartition], go_on: Callable[[], None]
    ) -> None:
        """Goes on with a transaction once what it has come to is on the disk, in partitions too."""
        known = self._known[name]
        self._syncing.add(name)

        def then(is_synced: bool) -> None:
            self._syncing.discard(name)
            if is_synced and self._known.get(name) is known:
                go_on()
            self._waiting.wake(("transaction", name))

        self._when_synced(self.partitions.of(name), partitions, then)

    def _finish(self, prepared: TransactionMetadata, now_ms: int) -> None:
        """Ends a transaction whose markers are there."""
        name = prepared.transactional_id
        if self._store(prepared.completed(now_ms), now_ms):
            self._set_timer(name, now_ms + MARKER_RETRY_MS, self._retry)
        else:
            del self._unmarked[name]

    def _marker_of(self, prepared: TransactionMetadata) -> Marker:
        return Marker(
            prepared.transactional_id,
            prepared.producer_id,
            prepared.producer_epoch,
            self.partitions.epoch(self.partitions.of(prepared.transactional_id)),
            prepared.state == TransactionState.PREPARE_COMMIT,
            prepared.transaction_version,
        )

    def _store(self, metadata: TransactionMetadata, now_ms: int) -> int:
        """Writes metadata to the log, and then holds it; returns an error code."""
        name = metadata.transactional_id
        value = value_of(metadata, self.settings.transaction_version)
        error = self._append(self.partitions.of(name), key_of(name), value, now_ms)
        if error:
            return error_of_log(error)
        before = self._known.pop(name, None)
        self._known[name] = metadata
        if metadata.state != TransactionState.ONGOING:
            self._stop_timer(name)
        elif before is None or before.state != TransactionState.ONGOING:
            self._start_timer(metadata)
        self._schedule_expiry()
        return ErrorCode.NONE

    # Time.

    def _start_timer(self, ongoing: TransactionMetadata) -> None:
        deadline_ms = ongoing.start_ms + ongoing.timeout_ms
        self._set_timer(ongoing.transactional_id, deadline_ms, self._time_out)

    def _set_timer(
        self, transactional_id: str, deadline_ms: int, act: Callable[[str, int], None]
    ) -> None:
        self._stop_timer(transactional_id)

        def attempt(is_due: bool, now_ms: int) -> bool:
            if is_due:
                act(transactional_id, now_ms)
            return is_due

        self._timers[transactional_id] = self._waiting.add(Waiting(deadline_ms, attempt))

    def _stop_timer(self, transactional_id: str) -> None:
        timer = self._timers.pop(transactional_id, None)
        if timer is not None:
            self._waiting.cancel(timer)

    def _time_out(self, transactional_id: str, now_ms: int) -> None:
        if self._fence(self._known[transactional_id], now_ms):
            self._set_timer(transactional_id, now_ms + MARKER_RETRY_MS, self._time_out)

    def _retry(self, transactional_id: str, now_ms: int) -> None:
        self._complete(transactional_id, now_ms)

    def _schedule_expiry(self) -> None:
        if self._expiry is None or not self._expiry.is_listed:
            oldest = next(self._idle_until(None), None)
            if oldest is not None:
                deadline_ms = oldest.last_update_ms + self.settings.id_expiration_ms
                self._expiry = self._waiting.add(Waiting(deadline_ms, self._expire))

    def _expire(self, is_due: bool, now_ms: int) -> bool:
        """Forgets ids that have not changed for long, oldest first."""
        if not is_due or self._expiry is None:
            return False
        oldest_ms = now_ms - self.settings.id_expiration_ms
        for known in tuple(self._idle_until(oldest_ms)):
            name = known.transactional_id
            if self._append(self.partitions.of(name), key_of(name), None, now_ms):
                self._waiting.postpone(self._expiry, now_ms + EXPIRY_RETRY_MS)
                return False
            self._forget(name)
        oldest = next(self._idle_until(None), None)
        if oldest is None:
            return True
        deadline_ms = oldest.last_update_ms + self.settings.id_expiration_ms
        self._waiting.postpone(self._expiry, deadline_ms)
        return False

    def _idle_until(self, last_update_ms: int | None) -> Iterator[TransactionMetadata]:
        """Iterates over ids without a transaction, the oldest first, up to a last change."""
        for known in self._known.values():
            if last_update_ms is not None and known.last_update_ms > last_update_ms:
                return
            if known.is_idle:
                yield known

    def _forget(self, transactional_id: str) -> None:
        self._stop_timer(transactional_id)
        self._unmarked.pop(transactional_id, None)
        del self._known[transactional_id]


def _at_once(
    _log: int, _partitions: frozenset[TopicPartition], then: Callable[[bool], None]
) -> None:
    then(True)  # noqa: FBT003 - in memory nothing is waited for

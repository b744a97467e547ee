"""A producer without I/O.

    append ─▸ accumulator ─▸ drain ─▸ Produce ─▸ the leader ─▸ partition queues ─▸ promises

Each `tick` does what there is to do: goes on with calls that wait, fails what has waited too long,
gets an id, has the transaction's next request sent, sends batches that are due. What comes back
comes through the exchanges' callbacks, and the next tick goes on from there.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from ottla.client.delivery.batch import Identity
from ottla.client.delivery.reactions import Reaction, reaction
from ottla.client.errors import (
    AbortableError,
    ApiError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
    TransactionAbortedError,
    error_of,
)
from ottla.client.network.backoff import Backoff
from ottla.client.partitions import TopicPartition, group_of, offsets_to_commit
from ottla.client.pending import Pending
from ottla.client.producer.accumulator import Accumulator, Row, Waiter
from ottla.client.producer.metrics import Metrics
from ottla.client.producer.rows import RowsWaiter, by_partition
from ottla.client.producer.sender import Sender
from ottla.client.transactions.manager import TransactionManager
from ottla.client.transactions.states import State
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.delivery.batch import Batch
    from ottla.client.delivery.reactions import Kind
    from ottla.client.partitions import AnyPartition, GroupMetadata, OffsetAndMetadata
    from ottla.client.producer.receipt import Receipt
    from ottla.client.producer.rows import Rows
    from ottla.client.transactions.reactions import Policy

__all__ = ["ProducerCore"]

_TRANSACTIONS_2 = 2


class ProducerCore:
    """A producer.

    Args:
        settings: of the producer.
        network: to the cluster.
        new_run: makes what keeps those who wait for a record each: a run with lists `promises`
            and `times`.
        random: draws from [0, 1).
        now_ms: the time.
        on_data_loss: is told of acknowledged records that a leader has lost.

    Attributes:
        settings: of the producer.
        network: to the cluster.
        manager: of transactions; ``None`` without.
        accumulator: records on their way into batches.
        is_closed: whether nothing is sent any more.
    """

    def __init__(
        self,
        settings: Any,
        network: Any,
        *,
        new_run: Callable[[], Any],
        random: Callable[[], float],
        now_ms: int,
        on_data_loss: Callable[[TopicPartition, int, int], None] | None = None,
    ) -> None:
        self.settings = settings
        self.network = network
        is_transactional = settings.transactional_id is not None
        self.kind: Kind = (
            "transactional"
            if is_transactional
            else "idempotent"
            if settings.enable_idempotence
            else "none"
        )
        self.policy: Policy = settings.transactional_error_policy
        self.identity = Identity()
        self.drops_invalid_records = (
            settings.transaction_drop_invalid_records
            if is_transactional
            else settings.drop_invalid_records
        )
        self.recovers_unknown_producer = settings.recover_unknown_producer
        self.is_fatal_out_of_order = settings.fatal_on_out_of_order
        self.delivery_timeout_ms = settings.delivery_timeout_ms
        self.retries = settings.retries
        self.metrics = Metrics(now_ms)
        self.accumulator = Accumulator(
            settings,
            self,
            network.metadata,
            new_run=new_run,
            random=random,
            is_slow=self._is_slow,
            on_batch=self._begin_batch,
            on_refused=self._refuse_record,
        )
        self.put = self.accumulator.put
        self.manager: TransactionManager | None = None
        if is_transactional:
            self.manager = TransactionManager(
                settings.transactional_id,
                settings.transaction_timeout_ms,
                self,
                backoff_ms=self.backoff_ms,
                policy=self.policy,
            )
        self._sender = Sender(self)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._on_data_loss = on_data_loss
        self._now_ms = now_ms
        self._fatal: BaseException | None = None
        self._flushes: list[tuple[Pending, set[Any]]] = []
        self._closing: Pending | None = None
        self.is_closed = False

    # Calls of the user's.

    def append(
        self,
        topic: str,
        partition: int,
        row: Row,
        promise: Any,
        now_ms: int,
    ) -> Waiter | None:
        """Takes a record that `put` did not.

        Args:
            topic: where it goes.
            partition: as `put` has returned it.
            row: its time, key, value and headers.
            promise: what the run keeps for it.
            now_ms: the time.

        Returns:
            What to wait for, where there is no room or no metadata. If its value is false in the
            end, the call is to be made again.

        Raises:
            KafkaError: the record cannot be sent, or what is kept of an earlier one.
            TypeError: key, value or headers are no bytes.
        """
        self.require_open("send")
        try:
            return self.accumulator.append(topic, partition, row, promise, now_ms)
        except KafkaError as error:
            raise self.failed_to_send(error) from None

    def append_rows(self, topic: str, rows: Rows, receipt: Receipt, now_ms: int) -> Waiter | None:
        """Takes rows.

        Args:
            topic: where they go.
            rows: what they are.
            receipt: what is told what becomes of them.
            now_ms: the time.

        Returns:
            What to wait for, as `append` does.

        Raises:
            KafkaError: they cannot be sent, or what is kept of an earlier one.
        """
        self.require_open("send")
        accumulator = self.accumulator
        try:
            found = accumulator.topic(topic)
            waiter = RowsWaiter(topic, rows, receipt)
            if found is None or rows.partition >= found.count:
                return accumulator.wait_for_metadata(waiter, now_ms)
            if rows.choose is not None:
                waiter.parts = by_partition(rows.choose(found, now_ms), found.count)
            return accumulator.add(waiter, found, now_ms)
        except KafkaError as error:
            raise self.failed_to_send(error) from None

    def partitions_for(self, topic: str, now_ms: int) -> Waiter | None:
        """Returns what to wait for until a topic's partitions are known, if anything.

        Raises:
            KafkaError: there is no such topic for this user.
        """
        self._require_running("look up partitions")
        found = self.accumulator.topic(topic)
        if found is not None:
            return None
        return self.accumulator.wait_for_metadata(Waiter("partitions_for", topic), now_ms)

    def time_out_send(self, waiter: Waiter, max_block_ms: int) -> BaseException:
        """A caller waits no longer for its records to be taken. Returns what to raise."""
        topic = waiter.topic
        if self.accumulator.withdraw(waiter):
            self.count("buffer-exhausted")
            return self.failed_to_send(
                KafkaTimeoutError(
                    f"no memory came free for a record of topic {topic} within max_block_ms "
                    f"({max_block_ms}): buffer_memory ({self.settings.buffer_memory}) is full of "
                    "records that brokers have not acknowledged"
                )
            )
        return self.failed_to_send(KafkaTimeoutError(self._unknown(waiter, max_block_ms)))

    def failed_to_send(self, error: KafkaError) -> BaseException:
        """A record was not taken, which fails its transaction. Returns what to raise."""
        manager = self.manager
        if manager is None or manager.state is not State.IN_TRANSACTION:
            return error
        if isinstance(error, ApiError) and not isinstance(error, RecordTooLargeError):
            found = reaction(error.error_code, self.kind, self.policy)
            if found is Reaction.FATAL:
                self.fail_fatally(error)
                return error
        manager.fail_abortably(error)
        return AbortableError(error)

    def flush(self) -> Pending:
        """Sends what there is without lingering, and waits until its fate is known."""
        pending = Pending("flush")
        self.accumulator.close_all()
        waiting = set(self.accumulator.unsettled)
        if waiting:
            self._flushes.append((pending, waiting))
        else:
            pending.end()
        return pending

    def init_transactions(self) -> Pending:
        """Gets an id; see `TransactionManager.init`."""
        return self._transactions("init_transactions").init()

    def begin_transaction(self) -> None:
        """Begins a transaction; see `TransactionManager.begin`."""
        manager = self._transactions("begin_transaction")
        if manager.coordinator is not None and manager.state is State.READY:
            features = self.network.features_of(manager.coordinator)
            if features:
                manager.is_implicit = features.get("transaction.version", 0) >= _TRANSACTIONS_2
        manager.begin()

    def send_offsets(
        self,
        offsets: Mapping[AnyPartition, int | OffsetAndMetadata],
        group: GroupMetadata | str,
    ) -> Pending:
        """Has offsets committed with the transaction; see `TransactionManager.send_offsets`."""
        transactions = self._transactions("send_offsets_to_transaction")
        return transactions.send_offsets(offsets_to_commit(offsets), group_of(group))

    def commit_transaction(self) -> Pending:
        """Commits; see `TransactionManager.commit`."""
        pending = self._transactions("commit_transaction").commit()
        self.accumulator.close_all()
        return pending

    def abort_transaction(self) -> Pending:
        """Aborts; see `TransactionManager.abort`."""
        pending = self._transactions("abort_transaction").abort()
        self.accumulator.close_all()
        return pending

    def time_out(self, pending: Pending) -> KafkaTimeoutError:
        """A caller of a transaction's call waits no longer. Returns what to raise."""
        return self._transactions(pending.name).time_out(pending)

    def close(self) -> Pending:
        """Takes no more records, and waits for what there is; an open transaction is aborted."""
        if self._closing is None:
            self._closing = Pending("close")
            manager = self.manager
            if manager is not None and manager.state in (
                State.IN_TRANSACTION,
                State.ABORTABLE_ERROR,
            ):
                manager.abort()
            self.accumulator.close_all()
            self.accumulator.fail_waiters(ProducerClosedError("the producer was closed"))
            self._finish_closing()
        return self._closing

    def close_now(self, now_ms: int) -> None:
        """Ends at once: what is not acknowledged fails."""
        self.is_closed = True
        self._closing = self._closing or Pending("close")
        error: KafkaError = (
            KafkaError("the producer was closed before the record was acknowledged")
            if self.manager is None
            else TransactionAbortedError("the producer was closed, and its transaction with it")
        )
        if self.manager is not None:
            self.manager.close()
        self.accumulator.fail_waiters(ProducerClosedError("the producer was closed"))
        for queue in self.accumulator.queues():
            queue.abandon(error)
        self.network.close(now_ms)
        for queue in self.accumulator.queues():
            queue.abandon(error)
        for pending, _ in self._flushes:
            pending.end()
        self._flushes.clear()
        self._closing.end()

    def forsake(self, error: BaseException) -> None:
        """Tells whoever waits for records that nobody is going to tick the producer again."""
        for batch in self._unsettled():
            batch.fail(error)
        for pending, _ in self._flushes:
            pending.end(error)

    @property
    def unsettled_count(self) -> int:
        """How many records were taken and have no fate yet, or nearly so in another thread."""
        return sum(batch.count for batch in self._unsettled())

    def snapshot(self, now_ms: int) -> dict[str, float]:
        """Returns the metrics."""
        return self.metrics.snapshot(
            now_ms,
            {
                "buffer-total-bytes": self.settings.buffer_memory,
                "buffer-available-bytes": self.accumulator.free_bytes,
                "bufferpool-wait-time-ns-total": self.accumulator.waited_ms * 1_000_000,
                "requests-in-flight": self._sender.under_way,
                "waiting-threads": self.accumulator.waiting_count,
            },
        )

    def require_open(self, doing: str) -> None:
        """Refuses records where none are taken.

        Raises:
            ProducerClosedError: the producer is closed.
            KafkaError: what is kept.
            IllegalStateError: no transaction is open.
        """
        self._require_running(doing)
        if self.manager is not None:
            self.manager.require_open(doing)
        elif self._fatal is not None:
            raise _fresh(self._fatal)

    # The machine.

    def tick(self, now_ms: int) -> None:
        """Does what there is to do."""
        self._now_ms = now_ms
        accumulator = self.accumulator
        accumulator.is_new = False
        if not self.is_closed:
            accumulator.proceed(now_ms)
            for queue in accumulator.active:
                queue.expire(now_ms)
            if self._is_fatal:
                self._abandon()
            else:
                self._sender.tick(now_ms)
            self._finish_closing()
        self.network.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do; ``None`` for never."""
        if self.accumulator.is_new:
            return self._now_ms
        linger_ms = self.linger_ms
        times = [
            time for queue in self.accumulator.active for time in queue.next_deadlines_ms(linger_ms)
        ]
        times += self._sender.next_deadlines_ms()
        # What was due and was not done waits for something else.
        times = [time for time in times if time > self._now_ms]
        network_ms = self.network.next_deadline_ms()
        if network_ms is not None:
            times.append(network_ms)
        return min(times, default=None)

    # What partitions share.

    def backoff_ms(self, attempts: int) -> int:
        """Returns how long to wait before the next attempt."""
        return self._backoff.delay_ms(attempts)

    def refresh(self, topic: str) -> None:  # noqa: ARG002 - all topics are looked up together
        """The leaders of a topic have to be looked up again."""
        self.network.metadata.request_update()

    def fail_abortably(self, error: BaseException, *, must_bump: bool = False) -> None:
        """The open transaction has to be aborted."""
        if self.manager is not None:
            self.manager.fail_abortably(error, must_bump=must_bump)
            self.accumulator.is_new = True

    def fail_fatally(self, error: BaseException) -> None:
        """The producer has to be closed."""
        if self.manager is not None:
            self.manager.fail_fatally(error)
        elif self._fatal is None:
            self._fatal = error
        self.accumulator.close_all()
        self.accumulator.fail_waiters(error)
        self.accumulator.is_new = True

    def lose_data(
        self, topic: str, partition: int, last_offset: int, log_start_offset: int
    ) -> None:
        """Acknowledged records may be lost."""
        self.network.warned.add(
            ("lost", topic, partition),
            f"{topic}-{partition}: records that were acknowledged, up to offset {last_offset}, may "
            f"be lost: the leader does not know them, and its log begins at {log_start_offset}",
            self._now_ms,
        )
        if self._on_data_loss is not None:
            self._on_data_loss(TopicPartition(topic, partition), last_offset, log_start_offset)

    def warn(self, topic: str, partition: int, error: BaseException, count: int) -> None:
        """Some records are not written: it is logged, as nobody may look at their futures."""
        records = "1 record was" if count == 1 else f"{count} records were"
        self.network.warned.add(
            (topic, partition, type(error)),
            f"{topic}-{partition}: {records} not written: {type(error).__name__}: {error}",
            self._now_ms,
        )

    def ended(self, batch: Batch, error: BaseException | None) -> None:
        """A batch has ended."""
        self.count("record-send" if error is None else "record-error", batch.count)
        self.accumulator.is_new = True
        if self.accumulator.ended(batch):
            self._advance_flushes(batch.origin)

    def count(self, metric: str, by: int = 1) -> None:
        """Something has happened that is counted."""
        self.metrics.count(metric, by, self._now_ms)

    # What a transaction asks of batches.

    def are_incomplete(self) -> bool:
        """Whether any batch has no end yet."""
        return bool(self.accumulator.unsettled)

    def fail_unsent(self, error: BaseException) -> None:
        """Fails what was never sent."""
        for queue in self.accumulator.queues():
            queue.fail_unsent(error)

    def reset_sequences(self) -> None:
        """The producer has another id or epoch."""
        if self.manager is not None:
            self.identity = Identity(self.manager.producer_id, self.manager.producer_epoch)

    # Within.

    def _unsettled(self) -> list[Batch]:
        return [batch for queue in [*self.accumulator.active] for batch in queue.batches]

    @property
    def _is_fatal(self) -> bool:
        if self.manager is not None:
            return self.manager.state is State.FATAL_ERROR
        return self._fatal is not None

    @property
    def linger_ms(self) -> int:
        """How long a batch waits for more records."""
        linger_ms: int = self.settings.linger_ms
        return 0 if self.accumulator.is_short_of_memory else linger_ms

    def _require_running(self, doing: str) -> None:
        if self._closing is not None:
            raise ProducerClosedError(f"cannot {doing}: the producer is closed")

    def _transactions(self, doing: str) -> TransactionManager:
        self._require_running(doing)
        if self.manager is None:
            raise IllegalStateError(
                f"cannot {doing}: the producer has no transactional_id; give it one"
            )
        self.accumulator.is_new = True
        return self.manager

    def _unknown(self, waiter: Waiter, max_block_ms: int) -> str:
        """Says why a topic, or a partition, is not known."""
        metadata = self.network.metadata
        count = metadata.partition_count(waiter.topic)
        if count:
            return (
                f"partition {waiter.partition} of topic {waiter.topic} is not known after "
                f"max_block_ms ({max_block_ms}): the topic has {count} partitions"
            )
        said = f"topic {waiter.topic} is not known after max_block_ms ({max_block_ms})"
        code = metadata.topic_error(waiter.topic)
        if code != ErrorCode.NONE:
            return f"{said}: brokers say {error_of(code)}; does the topic exist?"
        failure = self.network.last_failure()
        return f"{said}: {failure}" if failure is not None else said

    def _begin_batch(self, topic: str, partition: int) -> None:
        if self.manager is not None:
            self.manager.add_partition(topic, partition)

    def _refuse_record(self, error: KafkaError) -> None:
        self.count("record-error")
        self.failed_to_send(error)

    def _is_slow(self, node_id: int, now_ms: int) -> bool:
        return self._sender.is_slow(node_id, now_ms)

    def _abandon(self) -> None:
        """Nothing is sent any more."""
        error = self._fatal if self.manager is None else self.manager.root
        if error is not None:
            self.accumulator.fail_waiters(error)
            for queue in self.accumulator.queues():
                queue.abandon(error)

    def _advance_flushes(self, origin: Any) -> None:
        ended = []
        for flush in self._flushes:
            flush[1].discard(origin)
            if not flush[1]:
                ended.append(flush)
        for flush in ended:
            self._flushes.remove(flush)
            flush[0].end()

    def _finish_closing(self) -> None:
        closing = self._closing
        if closing is None or closing.is_done or self.accumulator.unsettled:
            return
        if self.manager is not None and self.manager.state in (
            State.ABORTING,
            State.COMMITTING,
            State.INITIALIZING,
        ):
            return
        closing.end()


def _fresh(error: BaseException) -> BaseException:
    """Returns an error like one that is kept, so that its traceback does not grow."""
    fresh = copy(error)
    fresh.__cause__ = error
    return fresh

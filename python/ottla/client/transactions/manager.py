"""A producer's transactions: calls and answers in, requests out.

    call ─▸ state ─▸ queue ─▸ next_request ─▸ (a coordinator) ─▸ answered ─▸ state, end of the call

One request is under way at a time. Of those that wait, what others rest on goes first: finding a
coordinator, initializing, adding partitions and offsets, ending the transaction. A transaction ends
once no batch of it is under way.

What went wrong is kept: the next call raises it, so that futures of records need not be looked at
(KIP-691). A fatal error replaces an abortable one; of several abortable ones the first is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.errors import (
    AbortableError,
    CommitFailedError,
    CorrelationIdMismatchError,
    IllegalStateError,
    InvalidPidMappingError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionAbortedError,
    error_of,
    fresh,
    root_of,
)
from ottla.client.partitions import TopicPartition
from ottla.client.transactions.calls import Calls
from ottla.client.transactions.reactions import Reaction, reaction
from ottla.client.transactions.requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    InitProducerId,
)
from ottla.client.transactions.states import State, require_transition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.errors import KafkaTimeoutError
    from ottla.client.partitions import GroupMetadata, OffsetAndMetadata
    from ottla.client.pending import Pending
    from ottla.client.transactions.reactions import Policy
    from ottla.client.transactions.requests import Request

__all__ = ["Batches", "TransactionManager"]

_FIRST_PARTITIONS_RETRY_MS = 20
_CONCURRENT_TRANSACTIONS = 51


class Batches(Protocol):
    """The producer's batches, as far as a transaction concerns them."""

    def are_incomplete(self) -> bool:
        """Whether any is not sent, or waits for its answer."""

    def fail_unsent(self, error: BaseException) -> None:
        """Fails those that were never sent."""

    def reset_sequences(self) -> None:
        """The producer has another id or epoch: sequences begin at 0."""


class TransactionManager:
    """The transactions of one producer.

    Args:
        transactional_id: which one.
        timeout_ms: after which the coordinator aborts a transaction.
        batches: those of the producer.
        backoff_ms: how long to wait before an attempt, by the number of those before it.
        policy: ``kip691``, or ``kafka`` to have missing ACLs and a lost group membership abort the
            transaction only, as Kafka's own client does.

    Attributes:
        state: what it is doing.
        root: the error that is kept; ``None`` without one.
        producer_id: of the coordinator; -1 before the first.
        producer_epoch: likewise.
        can_bump: whether the coordinator gives a living producer a new epoch (InitProducerId 3).
        is_implicit: whether writing to a partition adds it (transaction version 2).
        coordinator: the node of the transactional id; ``None`` until it is found.
        group_coordinators: nodes by group.
    """

    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        batches: Batches,
        *,
        backoff_ms: Callable[[int], int],
        policy: Policy = "kip691",
    ) -> None:
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.policy: Policy = policy
        self.state = State.UNINITIALIZED
        self.root: BaseException | None = None
        self.producer_id = -1
        self.producer_epoch = -1
        self.can_bump = True
        self.is_implicit = False
        self.coordinator: int | None = None
        self.group_coordinators: dict[str, int] = {}
        self._batches = batches
        self._backoff_ms = backoff_ms
        self._queue: list[Request] = []
        self._under_way: Request | None = None
        self._calls = Calls()
        self._added: set[TopicPartition] = set()
        self._adding: set[TopicPartition] = set()
        self._is_empty = True
        self._must_bump = False
        self._skips_end = False
        self._is_closed = False

    # Calls of the user's.

    def init(self) -> Pending:
        """Gets a producer id, ends what an earlier producer of this id left, and waits for both.

        A second time, it ends what this producer left.

        Raises:
            IllegalStateError: a commit or an abort is under way.
        """
        resumed = self._calls.resume("init_transactions")
        if resumed is not None:
            return resumed
        self._raise_if_fatal()
        require_transition(self.state, State.INITIALIZING, "initialize transactions")
        if self.state in (State.COMMITTING, State.ABORTING):
            raise IllegalStateError(
                f"cannot initialize transactions: the producer is {self.state.value}"
            )
        is_open = self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)
        self.state = State.INITIALIZING
        self._give_up("init_transactions", TransactionAbortedError("its transaction was given up"))
        pending = self._calls.begin("init_transactions")
        if is_open:
            # The coordinator gives no epoch to a producer whose transaction is open.
            self._must_bump = True
            self._queue.append(EndTransaction(pending, is_commit=False))
        else:
            self._initialize(pending)
        return pending

    def begin(self) -> None:
        """Begins a transaction.

        Raises:
            IllegalStateError: one is open, or transactions are not initialized.
        """
        self._calls.require_none("begin_transaction")
        self._raise_if_failed()
        require_transition(self.state, State.IN_TRANSACTION, "begin a transaction")
        self.state = State.IN_TRANSACTION

    def require_open(self, doing: str) -> None:
        """Refuses a record, or offsets, where no transaction takes them.

        Raises:
            IllegalStateError: no transaction is open.
            KafkaError: what is kept.
        """
        self._calls.require_none(doing)
        self._raise_if_failed()
        if self.state is not State.IN_TRANSACTION:
            raise IllegalStateError(f"cannot {doing}: the producer is {self.state.value}")

    def add_partition(self, topic: str, partition: int) -> None:
        """A record of the open transaction is going to a partition."""
        one = TopicPartition(topic, partition)
        if one in self._added or one in self._adding or self.is_implicit:
            return
        self._adding.add(one)
        waiting = next((r for r in self._queue if isinstance(r, AddPartitions)), None)
        if waiting is None:
            self._queue.append(AddPartitions({one}))
        else:
            waiting.partitions.add(one)

    def may_send(self, topic: str, partition: int) -> bool:
        """Whether batches of a partition may leave; says that the transaction has some if so."""
        if self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            return False
        if self.is_implicit:
            self._is_empty = False
            return True
        return (topic, partition) in self._added

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> Pending:
        """Has offsets of a group committed with the open transaction.

        Raises:
            IllegalStateError: no transaction is open.
            KafkaError: what is kept.
        """
        self.require_open("send offsets to a transaction")
        pending = self._calls.begin_beside("send_offsets_to_transaction")
        if not offsets:
            self._calls.end(pending)
            return pending
        commit = CommitOffsets(dict(offsets), group, pending)
        if self.is_implicit:
            self._is_empty = False
            self._queue.append(commit)
        else:
            self._queue.append(AddOffsets(group, pending, commit))
        return pending

    def commit(self) -> Pending:
        """Commits the open transaction.

        It ends with a `CommitFailedError` where the transaction cannot commit but can be aborted.

        Raises:
            CommitFailedError: likewise, at once.
            IllegalStateError: no transaction is open.
            KafkaError: what is fatal.
        """
        resumed = self._calls.resume("commit_transaction")
        if resumed is not None:
            return resumed
        self._raise_if_fatal()
        if self.state is State.ABORTABLE_ERROR and self.root is not None:
            raise CommitFailedError(self.root)
        require_transition(self.state, State.COMMITTING, "commit a transaction")
        self.state = State.COMMITTING
        pending = self._calls.begin("commit_transaction")
        self._queue.append(EndTransaction(pending, is_commit=True))
        return pending

    def abort(self) -> Pending:
        """Aborts the open transaction; what was abortable is forgotten.

        Raises:
            IllegalStateError: no transaction is open.
            KafkaError: what is fatal.
        """
        resumed = self._calls.resume("abort_transaction")
        if resumed is not None:
            return resumed
        self._raise_if_fatal()
        require_transition(self.state, State.ABORTING, "abort a transaction")
        error = self.root or TransactionAbortedError("its transaction was aborted")
        self.state = State.ABORTING
        self._give_up("abort_transaction", error)
        pending = self._calls.begin("abort_transaction")
        self._queue.append(EndTransaction(pending, is_commit=False))
        return pending

    def time_out(self, pending: Pending) -> KafkaTimeoutError:
        """A caller waits no longer; what it waited for goes on.

        Returns:
            What to raise.
        """
        return self._calls.time_out(pending)

    def close(self) -> None:
        """Releases who waits; no state changes, and nothing becomes an error of a broker's."""
        self._is_closed = True
        self._queue.clear()
        self._under_way = None
        self._calls.close()

    # What sends requests.

    def next_request(self, now_ms: int) -> Request | None:
        """Returns the request to send now, which is under way from then on; ``None`` for none.

        A request for a coordinator that is not known is preceded by one that finds it.
        """
        if self._under_way is not None or self._is_closed or self.state is State.FATAL_ERROR:
            return None
        self._skip_what_ended()
        ready = [one for one in self._queue if self._is_ready(one, now_ms)]
        if not ready:
            return None
        chosen = min(ready, key=lambda one: one.priority)
        group = chosen.group
        if not isinstance(chosen, FindCoordinator) and self.node_of(chosen) is None:
            chosen = FindCoordinator(group)
        else:
            self._queue.remove(chosen)
        self._under_way = chosen
        return chosen

    def node_of(self, request: Request) -> int | None:
        """Returns the node that a request goes to; ``None`` for any, or where it is not known."""
        if isinstance(request, FindCoordinator):
            return None
        if request.group is None:
            return self.coordinator
        return self.group_coordinators.get(request.group)

    def next_deadline_ms(self) -> int | None:
        """Returns when a request that waits for its next attempt may leave; ``None`` for never."""
        if self._under_way is not None or self.state is State.FATAL_ERROR:
            return None
        times = (one.not_before_ms for one in self._queue if not self._is_blocked(one))
        return min(times, default=None)

    def answered(self, request: Request, response: Any, now_ms: int) -> None:
        """The answer to a request has come."""
        if not self._land(request):
            return
        if response is None:
            self.fail_fatally(IllegalStateError(f"{request.api} was answered without a body"))
            return
        error_code, message = request.error_in(response)
        if error_code == 0:
            self._succeed(request, response)
        else:
            self._fail(request, error_code, message, now_ms)

    def mismatched(self, request: Request, request_id: int, response_id: int) -> None:
        """The answer bore another correlation id than the request: a fault of one of both sides."""
        if self._land(request):
            self.fail_fatally(CorrelationIdMismatchError(request_id, response_id))

    def disconnected(self, request: Request, now_ms: int) -> None:
        """The connection broke before the answer came."""
        if not self._land(request):
            return
        request.may_be_done = True
        self._forget_coordinator(request)
        self._retry(request, now_ms)

    def refused(self, request: Request, error: BaseException) -> None:
        """A request cannot be sent: no version in common, or no authentication."""
        if self._land(request):
            self.fail_fatally(error)

    # What happens to batches.

    def fail_abortably(self, error: BaseException, *, must_bump: bool = False) -> None:
        """The open transaction cannot commit; where it is being given up, that is nothing new."""
        if must_bump and not self.can_bump:
            self.fail_fatally(error)
            return
        self._must_bump |= must_bump
        if self.state not in (State.ABORTING, State.INITIALIZING):
            self._become_abortable(error)

    def fail_fatally(self, error: BaseException) -> None:
        """The producer has to be closed."""
        if self.state is State.FATAL_ERROR:
            return
        self.state = State.FATAL_ERROR
        self.root = error
        self._queue.clear()
        self._batches.fail_unsent(root_of(error))
        self._calls.fail(lambda _name: fresh(error))

    def leave_unresolved(self) -> None:
        """A batch expired that may have been written: what comes behind it has no sure sequence."""
        error = OutOfOrderSequenceError(
            "a batch expired of which it is not known whether it was written"
        )
        self.fail_abortably(error, must_bump=True)

    # Within.

    def _become_abortable(self, error: BaseException) -> None:
        if self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            return
        try:
            require_transition(
                self.state, State.ABORTABLE_ERROR, f"fail a transaction by {error!r}"
            )
        except IllegalStateError as fault:
            self.fail_fatally(fault)
            return
        self.state = State.ABORTABLE_ERROR
        self.root = error = root_of(error)
        self._batches.fail_unsent(error)
        self._drop(AddPartitions, AddOffsets, CommitOffsets, EndTransaction)
        self._calls.fail(
            lambda name: (CommitFailedError if name == "commit_transaction" else AbortableError)(
                error
            )
        )

    def _give_up(self, call: str, error: BaseException) -> None:
        """What the open transaction still had to do is not done."""
        # A coordinator that knows the id with another producer, or none, ends nothing of this one.
        self._skips_end = isinstance(self.root, InvalidPidMappingError)
        self.root = None
        self._batches.fail_unsent(error)
        self._drop(AddPartitions, AddOffsets, CommitOffsets)
        self._calls.fail_beside(
            lambda name: IllegalStateError(f"{call} was called during {name}: it is given up")
        )

    def _is_ready(self, request: Request, now_ms: int) -> bool:
        return request.not_before_ms <= now_ms and not self._is_blocked(request)

    def _is_blocked(self, request: Request) -> bool:
        """Whether others have to be done before, whenever it may leave.

        Requests of one kind leave in order: of offsets that are committed twice, the later count.
        """
        if isinstance(request, (EndTransaction, InitProducerId)):
            return self._batches.are_incomplete() or any(
                one.priority < request.priority for one in self._queue
            )
        return next(one for one in self._queue if one.api == request.api) is not request

    def _skip_what_ended(self) -> None:
        """Ends a transaction without a request where the coordinator knows nothing of it."""
        ending = next((r for r in self._queue if isinstance(r, EndTransaction)), None)
        if ending is None or self._batches.are_incomplete():
            return
        if any(isinstance(one, (AddPartitions, AddOffsets, CommitOffsets)) for one in self._queue):
            return
        if self._is_empty or self._skips_end:
            self._queue.remove(ending)
            self._complete(ending)

    def _land(self, request: Request) -> bool:
        """A request is under way no more; returns whether its answer still means anything."""
        if self._is_closed:
            return False
        if request is not self._under_way:
            raise IllegalStateError(f"{request.api} is answered, but is not under way")
        self._under_way = None
        return self.state is not State.FATAL_ERROR

    def _succeed(self, request: Request, response: Any) -> None:
        if isinstance(request, FindCoordinator):
            self._found(request, response)
        elif isinstance(request, InitProducerId):
            self._initialized(request, response)
        elif isinstance(request, AddPartitions):
            self._adding -= request.partitions
            self._added |= request.partitions
            self._is_empty = False
        elif isinstance(request, AddOffsets):
            self._is_empty = False
            if request.commit.pending is None or not request.commit.pending.is_done:
                self._queue.append(request.commit)
        elif isinstance(request, CommitOffsets):
            self._calls.end(request.pending)
        else:
            self._take_over(response)
            self._complete(request)

    def _found(self, request: FindCoordinator, response: Any) -> None:
        node = request.node_in(response)
        if request.group is None:
            self.coordinator = node
        else:
            self.group_coordinators[request.group] = node

    def _initialize(self, pending: Pending | None) -> None:
        self._queue.append(InitProducerId(pending))

    def _initialized(self, request: InitProducerId, response: Any) -> None:
        self.producer_id = response.producer_id
        self.producer_epoch = response.producer_epoch
        self._must_bump = False
        self._batches.reset_sequences()
        if self.state is State.INITIALIZING:
            self.state = State.READY
        self._calls.end(request.pending)

    def _take_over(self, response: Any) -> None:
        """Takes the id and epoch that the end of a transaction gave (transaction version 2)."""
        if response.producer_id < 0:
            return
        self.producer_id = response.producer_id
        self.producer_epoch = response.producer_epoch
        self._must_bump = False
        self._batches.reset_sequences()

    def _complete(self, ending: Request) -> None:
        self._forget_transaction()
        if self._must_bump:
            self.state = State.INITIALIZING
            self._initialize(ending.pending)
            return
        self.state = State.READY
        self._calls.end(ending.pending)

    def _forget_transaction(self) -> None:
        self._queue.clear()
        self._added.clear()
        self._adding.clear()
        self._is_empty = True
        self._skips_end = False

    def _fail(self, request: Request, error_code: int, message: str | None, now_ms: int) -> None:
        found = reaction(request.api, error_code, self.policy)
        error: BaseException = error_of(error_code, message)
        if found is Reaction.FIND:
            self._forget_coordinator(request)
            self._retry(request, now_ms)
        elif found is Reaction.RETRY:
            is_first = isinstance(request, AddPartitions) and not self._added
            is_short = is_first and error_code == _CONCURRENT_TRANSACTIONS
            self._retry(request, now_ms, _FIRST_PARTITIONS_RETRY_MS if is_short else None)
        elif found is Reaction.FENCED:
            self.fail_fatally(ProducerFencedError(message or ""))
        elif found is Reaction.REMOVED and self.policy == "kip691":
            self.fail_fatally(CommitFailedError(error, is_fatal=True))
        elif found is Reaction.FATAL:
            self.fail_fatally(error)
        else:
            self._abort_for(request, error, now_ms, must_bump=found is Reaction.BUMP)

    def _abort_for(
        self, request: Request, error: BaseException, now_ms: int, *, must_bump: bool
    ) -> None:
        is_finding = isinstance(request, FindCoordinator)
        if isinstance(request, EndTransaction) and not request.is_commit:
            # Nothing is left to abort but the epoch that it was written with.
            if must_bump and self.can_bump:
                self._must_bump = True
                self._complete(request)
            else:
                self.fail_fatally(error)
        elif is_finding and self.state is State.ABORTING:
            self._retry(request, now_ms)
        elif isinstance(request, InitProducerId) or (is_finding and request.group is None):
            self._must_bump |= self.state is State.INITIALIZING
            self._become_abortable(error)
        else:
            self.fail_abortably(error, must_bump=must_bump)

    def _retry(self, request: Request, now_ms: int, after_ms: int | None = None) -> None:
        if isinstance(request, FindCoordinator) and self.state is State.FATAL_ERROR:
            return
        request.attempts += 1
        wait = self._backoff_ms(request.attempts) if after_ms is None else after_ms
        request.not_before_ms = now_ms + wait
        if isinstance(request, FindCoordinator):
            for one in self._queue:
                if one.group == request.group:
                    one.not_before_ms = max(one.not_before_ms, request.not_before_ms)
            return
        self._queue.insert(0, request)

    def _forget_coordinator(self, request: Request) -> None:
        if isinstance(request, FindCoordinator):
            return
        if request.group is None:
            self.coordinator = None
        else:
            self.group_coordinators.pop(request.group, None)

    def _drop(self, *kinds: type[Request]) -> None:
        """Drops requests, but not what the coordinator may have done: that has to be ended."""
        self._queue = [
            one
            for one in self._queue
            if not isinstance(one, kinds)
            or (one.may_be_done and isinstance(one, (AddPartitions, AddOffsets)))
        ]
        self._adding.clear()

    def _raise_if_fatal(self) -> None:
        if self.state is State.FATAL_ERROR and self.root is not None:
            raise fresh(self.root)

    def _raise_if_failed(self) -> None:
        self._raise_if_fatal()
        if self.state is State.ABORTABLE_ERROR and self.root is not None:
            raise AbortableError(self.root)

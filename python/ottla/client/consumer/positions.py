"""Where partitions begin and go on: committed offsets, resets, validation after a leader changed.

Before a position is fetched from, the metadata has to be as new as what is known of the position
(KIP-232), and, where the leader changed since the records before it were read, the new leader says
whether its log still has them (KIP-320). A position of unknown epochs needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.client.consumer.errors import (
    InvalidPartitionEpochError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from ottla.client.consumer.lookup import EARLIEST, LATEST, Epochs, Found, Lookups, Offsets
from ottla.client.consumer.position import Position
from ottla.client.consumer.table import State
from ottla.client.errors import UnsupportedVersionError
from ottla.client.offset_epoch import Epochs as KnownEpochs
from ottla.client.offset_epoch import epochs_in
from ottla.client.options.option import duration_ms
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.table import Assigned, Table
    from ottla.client.errors import KafkaError
    from ottla.client.groups.group import Group
    from ottla.client.network.exchange import Network
    from ottla.client.network.metadata import Leader
    from ottla.client.partitions import OffsetAndMetadata
    from ottla.client.pending import Pending

__all__ = ["Positions", "position_of"]

_BY_DURATION = "by_duration:"
_MOST_REWINDS = 5


class Owner(Protocol):
    """What has to be decided elsewhere."""

    def tell(self, error: KafkaError | Exception) -> None:
        """The next poll raises an error, once."""


def position_of(committed: OffsetAndMetadata) -> Position:
    """Returns the position that a commit, or an application, names.

    Raises:
        IllegalArgumentError: its epochs are none that Ottla made.
    """
    epochs = epochs_in(committed.offset_epoch) if committed.offset_epoch else KnownEpochs()
    leader_epoch = max(committed.leader_epoch, epochs.leader_epoch)
    return Position(committed.offset, leader_epoch, epochs.partition_epoch, epochs.topic_id)


class Positions:
    """Brings partitions to where they are fetched from.

    Attributes:
        wants_look: whether a leader or a topic may have changed without an answer to Metadata.
    """

    def __init__(
        self,
        owner: Owner,
        table: Table,
        network: Network,
        group: Group | None,
        *,
        policy: str,
        isolation_level: int,
        wall_ms: Callable[[], int],
        backoff_ms: Callable[[int], int],
    ) -> None:
        self.offsets = Lookups(network, Offsets, isolation_level, backoff_ms)
        self._epochs = Lookups(network, Epochs, isolation_level, backoff_ms)
        self._owner = owner
        self._table = table
        self._network = network
        self._group = group
        self._policy = policy
        self._wall_ms = wall_ms
        self._backoff_ms = backoff_ms
        self._committed: Pending | None = None
        self.wants_look = False
        self._looked_at = -1
        self._now_ms = 0

    def tick(self, now_ms: int) -> None:
        """Takes each partition a step further that can be."""
        self._now_ms = now_ms
        awaiting: list[Assigned] = []
        updates = self._network.metadata.update_count
        looks_at_leaders = self.wants_look or updates != self._looked_at
        self.wants_look, self._looked_at = False, updates
        for one in self._table:
            if looks_at_leaders:
                self._look_at_leader(one)
            if one.is_asked or now_ms < one.not_before_ms or one.state is State.FETCHING:
                continue
            one.not_before_ms = 0
            if one.state is State.AWAITING:
                awaiting.append(one)
            elif one.state is State.RESETTING:
                one.is_asked = True
                self.offsets.ask(one.partition, one.reset_timestamp or 0, _Reset(self, one))
            elif one.state is State.VALIDATING:
                self._validate(one, now_ms)
        if awaiting:
            self._look_up_committed(awaiting, now_ms)
        self.offsets.tick(now_ms)
        self._epochs.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when something is due."""
        times = [
            one.not_before_ms
            for one in self._table
            if one.not_before_ms and not one.is_asked and one.state is not State.FETCHING
        ]
        for lookups in (self.offsets, self._epochs):
            due_ms = lookups.next_deadline_ms()
            if due_ms is not None:
                times.append(due_ms)
        return min(times, default=None)

    def out_of_range(self, one: Assigned) -> None:
        """No log has the position."""
        position = one.position
        timestamp = self._policy_timestamp()
        if timestamp is not None:
            if position is not None:
                self._warn(one, f"no log has offset {position.offset}, where the consumer was")
            one.reset(timestamp)
        elif position is not None:
            one.fail(OffsetOutOfRangeError({one.partition: position.offset}))

    def _warn(self, one: Assigned, text: str) -> None:
        """Has it logged that records were lost, or may be passed over, and the policy goes on."""
        topic, partition = one.partition
        said = f"{topic}-{partition}: {text}: goes on by auto_offset_reset ({self._policy})"
        self._network.warned.add((topic, partition), said, self._now_ms)

    def _policy_timestamp(self) -> int | None:
        if self._policy == "none":
            return None
        if self._policy.startswith(_BY_DURATION):
            return self._wall_ms() - (duration_ms(self._policy.removeprefix(_BY_DURATION)) or 0)
        return EARLIEST if self._policy == "earliest" else LATEST

    # Committed offsets.

    def _look_up_committed(self, awaiting: list[Assigned], now_ms: int) -> None:
        if self._group is None:
            for one in awaiting:
                self._begin(one)
            return
        if self._committed is not None:
            return
        self._committed = pending = self._group.committed(
            [one.partition for one in awaiting], now_ms
        )
        terms = [(one, one.term) for one in awaiting]

        def done() -> None:
            self._committed = None
            current = [one for one, term in terms if one.term == term]
            if pending.error is not None:
                self._owner.tell(pending.error)  # type: ignore[arg-type]
                for one in current:
                    one.retry(now_ms + self._backoff_ms(one.attempts))
                return
            for one in current:
                self._begin(one, pending.value.get(one.partition))

        pending.when_done(done)

    def _begin(self, one: Assigned, committed: OffsetAndMetadata | None = None) -> None:
        if committed is not None:
            one.seek(position_of(committed))
            return
        timestamp = self._policy_timestamp()
        if timestamp is None:
            one.fail(NoOffsetForPartitionError({one.partition: -1}))
        else:
            one.reset(timestamp)

    # Validation.

    def _look_at_leader(self, one: Assigned) -> None:
        """Has a position validated again whose leader changed, or whose topic did."""
        is_validated = one.state is State.VALIDATING and one.is_asked
        if one.state is not State.FETCHING and not is_validated:
            return
        topic, partition = one.partition
        metadata = self._network.metadata
        position = one.position
        if position is None:
            return
        topic_id = metadata.topic_id(topic)
        if one.is_doubted and _differ(topic_id, position.topic_id):
            one.fail(InvalidPartitionEpochError({one.partition: -1}))
            return
        leader = metadata.leader(topic, partition)
        if leader is not None and leader != one.leader:
            one.validate()

    def _validate(self, one: Assigned, now_ms: int) -> None:
        topic, partition = one.partition
        metadata, position = self._network.metadata, one.position
        leader = metadata.leader(topic, partition)
        if position is None:
            return
        if leader is None or leader.node_id < 0:
            metadata.request_update()
            return
        known_epoch = metadata.partition_epoch(topic, partition)
        if one.attempts < _MOST_REWINDS and self._is_outdated(one, position, leader, known_epoch):
            metadata.request_update()
            one.retry(now_ms + self._backoff_ms(one.attempts))
        elif (
            position.leader_epoch < 0
            or leader.leader_epoch < 0
            or self._is_recreated(one, position, known_epoch)
        ):
            # Of a topic that was created anew, the fetch says so: its epochs are others.
            self._validated(one, leader)
        else:
            one.is_asked = True
            one.leader = leader
            self._epochs.ask(one.partition, position.leader_epoch, _Validation(self, one, leader))

    def _is_recreated(self, one: Assigned, position: Position, known_epoch: int) -> bool:
        if -1 not in {known_epoch, position.partition_epoch}:
            return known_epoch != position.partition_epoch
        topic_id = self._network.metadata.topic_id(one.partition.topic)
        return _differ(topic_id, position.topic_id)

    def _is_outdated(
        self, one: Assigned, position: Position, leader: Leader, known_epoch: int
    ) -> bool:
        if -1 < known_epoch < position.partition_epoch:
            return True
        if self._is_recreated(one, position, known_epoch):
            return False
        return -1 < leader.leader_epoch < position.leader_epoch

    def _validated(self, one: Assigned, leader: Leader) -> None:
        one.went_well()
        one.validated(leader)

    def answered_reset(self, one: Assigned, found: Found, now_ms: int) -> None:
        """The offset to go on from is known."""
        if found.offset < 0 and (one.reset_timestamp or 0) >= 0:
            # No record is as new: the end is where the next one will be.
            one.reset(LATEST)
        elif found.offset < 0:
            one.retry(now_ms + self._backoff_ms(one.attempts))
        else:
            one.seek(Position(found.offset, found.leader_epoch, found.partition_epoch))
            leader = self._network.metadata.leader(*one.partition)
            if leader is not None and leader.leader_epoch == found.leader_epoch:
                # The log that the offset was found in is the one to read.
                one.validated(leader)

    def answered_validation(self, one: Assigned, leader: Leader, found: Found) -> None:
        """The leader has told where the epoch of the position ends in its log."""
        position = one.position
        if position is None:
            return
        epoch = position.partition_epoch
        if -1 not in {epoch, found.partition_epoch} and epoch != found.partition_epoch:
            one.fail(InvalidPartitionEpochError({one.partition: found.partition_epoch}))
        elif found.offset < 0 or found.leader_epoch < 0 or found.offset >= position.offset:
            # An epoch that the leader does not know any longer says nothing.
            self._validated(one, leader)
        elif self._policy == "none":
            one.fail(LogTruncationError({one.partition: found.offset}))
        else:
            self._warn(
                one,
                f"the log was truncated at offset {found.offset}, behind which the consumer had "
                f"read up to {position.offset}",
            )
            one.seek(position._replace(offset=found.offset, leader_epoch=found.leader_epoch))

    def tell(self, error: KafkaError | Exception) -> None:
        """The next poll raises an error, once."""
        self._owner.tell(error)

    def is_assigned(self, one: Assigned, term: int, state: State) -> bool:
        """Whether a partition still waits for the answer to a question."""
        is_same = self._table.get(one.partition) is one
        return is_same and one.term == term and one.state is state and one.is_asked


def _differ(one: bytes, other: bytes) -> bool:
    """Whether two ids are known to be of different topics."""
    return NO_UUID not in {one, other} and one != other


class _Reset:
    """Asks where a partition goes on."""

    def __init__(self, positions: Positions, one: Assigned) -> None:
        self._positions = positions
        self._one = one
        self._term = one.term

    def is_wanted(self) -> bool:
        return self._positions.is_assigned(self._one, self._term, State.RESETTING)

    def answered(self, found: Found, now_ms: int) -> None:
        self._positions.answered_reset(self._one, found, now_ms)

    def refused(self, error: KafkaError | Exception, now_ms: int) -> bool:  # noqa: ARG002
        self._positions.tell(error)
        return True

    def recreated(self, partition_epoch: int, now_ms: int) -> None:  # noqa: ARG002
        self._one.fail(InvalidPartitionEpochError({self._one.partition: partition_epoch}))


class _Validation:
    """Asks whether a log still has what was read before a position."""

    def __init__(self, positions: Positions, one: Assigned, leader: Leader) -> None:
        self._positions = positions
        self._one = one
        self._term = one.term
        self._leader = leader

    def is_wanted(self) -> bool:
        is_waiting = self._positions.is_assigned(self._one, self._term, State.VALIDATING)
        return is_waiting and self._one.leader == self._leader

    def answered(self, found: Found, now_ms: int) -> None:  # noqa: ARG002
        self._positions.answered_validation(self._one, self._leader, found)

    def refused(self, error: KafkaError | Exception, now_ms: int) -> bool:  # noqa: ARG002
        if isinstance(error, UnsupportedVersionError):
            # A broker before 2.3 cannot tell: as clients of its time, go on.
            self._one.went_well()
            self._one.validated(self._leader)
            return False
        self._positions.tell(error)
        return True

    def recreated(self, partition_epoch: int, now_ms: int) -> None:  # noqa: ARG002
        self._one.fail(InvalidPartitionEpochError({self._one.partition: partition_epoch}))

"""The offsets that a group commits: one request at a time, in the order of the calls.

    commit ─▸ waiting ─▸ under way ─▸ ended        (or waiting again, before all others)

Invariants:

- One OffsetCommit is under way at most. It has the offsets of the calls that wait at the front and
  are of one member in one generation; of a partition that several of them name, the latest.
- A call goes out as the member that made it: what it wants to commit may be another's by now.
- A call ends once: well when all its partitions are committed, else with the first error that does
  not pass, or a `KafkaTimeoutError` after `default_api_timeout_ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import (
    KafkaTimeoutError,
    OffsetCommitFailedError,
    RebalanceInProgressError,
    RetriableError,
    error_of,
)
from ottla.client.groups.call import Call
from ottla.client.groups.reactions import Reaction, error_for, reaction
from ottla.client.groups.subscription import partitions_by_topic
from ottla.client.offset_epoch import epochs_in
from ottla.client.partitions import TopicPartition
from ottla.client.pending import Pending
from ottla.errors import OttlaError
from ottla.protocol.error_code import ErrorCode, name_of
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.groups.coordinator import GroupCoordinator
    from ottla.client.groups.membership import Membership
    from ottla.client.network.exchange import Network
    from ottla.client.options.settings import ConsumerSettings
    from ottla.client.partitions import GroupMetadata, OffsetAndMetadata

__all__ = ["Commits"]

_API = "OffsetCommit"
# Version 0 does not commit to a group's coordinator; 10 names topics by their ids.
_BY_NAME, _BY_ID = range(1, 10), range(1, 11)
_WITH_EPOCHS = 9
_WITH_INSTANCES = 7


class _Commit:
    """A call, and what of it is still to be committed."""

    def __init__(
        self,
        pending: Pending,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline_ms: int,
    ) -> None:
        self.pending = pending
        self.group = group
        self.offsets = dict(offsets)
        self.deadline_ms = deadline_ms
        # Whether it goes out in whichever epoch the member has by then.
        self.follows_epoch = False


class Commits:
    """Commits of one consumer.

    Args:
        settings: of the consumer.
        network: knows the ids of topics.
        coordinator: of the group.
        membership: says who commits, and hears where it is refused.
        backoff_ms: how long to wait before an attempt, by the number of those before it.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        network: Network,
        coordinator: GroupCoordinator,
        membership: Membership,
        backoff_ms: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._network = network
        self._coordinator = coordinator
        self._membership = membership
        self._backoff_ms = backoff_ms
        self._waiting: list[_Commit] = []
        self._sent: list[_Commit] = []
        self._call: Call | None = None
        self._attempts = 0
        self._not_before_ms = 0
        coordinator.on_failure.append(self._coordinator_failed)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now_ms: int) -> Pending:
        """Commits offsets; see `Group.commit`."""
        pending = Pending("commit")
        try:
            group = self._membership.member_to_commit()
        except OttlaError as error:
            pending.end(error)
            return pending
        if not offsets:
            pending.end()
            return pending
        deadline_ms = now_ms + self._settings.default_api_timeout_ms
        self._waiting.append(_Commit(pending, group, offsets, deadline_ms))
        self.tick(now_ms)
        return pending

    def tick(self, now_ms: int) -> None:
        """Sends what waits, and ends what has waited too long."""
        for each in [*self._sent, *self._waiting]:
            if now_ms >= each.deadline_ms:
                each.pending.end(self._timed_out())
        self._waiting = [each for each in self._waiting if not each.pending.is_done]
        if self._waiting and self._call is None and now_ms >= self._not_before_ms:
            self._send(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when a call is over, or is sent again."""
        open_calls = [each for each in self._sent + self._waiting if not each.pending.is_done]
        deadlines = [each.deadline_ms for each in open_calls]
        is_ready = self._call is None and not self._coordinator.is_looking
        if self._waiting and is_ready:
            deadlines.append(self._not_before_ms)
        return min(deadlines, default=None)

    def _timed_out(self) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            "the coordinator has not answered the commit within default_api_timeout_ms = "
            f"{self._settings.default_api_timeout_ms}: it may have been committed, or not; commit "
            "again"
        )

    def _send(self, now_ms: int) -> None:
        if self._coordinator.node_id is None:
            self._coordinator.look_for(now_ms)
            return
        for each in self._waiting:
            if each.follows_epoch and self._membership.assignment >= set(each.offsets):
                each.group = self._membership.group_metadata()
        group = self._waiting[0].group
        count = next(
            (index for index, each in enumerate(self._waiting) if each.group != group),
            len(self._waiting),
        )
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for each in self._waiting[:count]:
            offsets.update(each.offsets)
        try:
            topics = self._topics(offsets)
        except OttlaError as error:
            self._end_all(error)
            return
        by_id = all(each.topic_id != NO_UUID for each in topics)
        versions = _BY_ID if by_id else _BY_NAME
        if self._settings.group_protocol == "consumer" and group.generation_id >= 0:
            versions = range(_WITH_EPOCHS, versions.stop)
        elif group.group_instance_id is not None:
            versions = range(_WITH_INSTANCES, versions.stop)
        fields = {
            "group_id": group.group_id,
            "generation_id_or_member_epoch": group.generation_id,
            "member_id": group.member_id,
            "group_instance_id": group.group_instance_id,
            "topics": topics,
        }
        call = Call(OffsetCommitRequest, fields, self._answered, self._failed, versions=versions)
        if self._coordinator.send(call, now_ms):
            self._call = call
            self._sent, self._waiting = self._waiting[:count], self._waiting[count:]

    def _topics(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> list[OffsetCommitRequestTopic]:
        return [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=self._network.metadata.topic_id(topic),
                partitions=[
                    _partition(number, offsets[TopicPartition(topic, number)]) for number in numbers
                ],
            )
            for topic, numbers in partitions_by_topic(offsets).items()
        ]

    def _answered(self, call: Call, response: Any, now_ms: int) -> None:
        self._call = None
        sent, self._sent = self._sent, []
        names = {each.topic_id: each.name for each in call.fields["topics"]}
        codes = {
            TopicPartition(each.name or names.get(each.topic_id, ""), one.partition_index): (
                one.error_code
            )
            for each in response.topics
            for one in each.partitions
        }
        again = [each for each in sent if self._is_left(each, codes, now_ms)]
        self._waiting = again + self._waiting
        if again:
            if any(reaction(_API, code) is Reaction.FIND for code in codes.values() if code):
                self._coordinator.forget(call, now_ms)
            self._again(now_ms)
        else:
            self._attempts = 0
            self.tick(now_ms)

    def _is_left(self, commit: _Commit, codes: Mapping[TopicPartition, int], now_ms: int) -> bool:
        """Ends a call by what became of its partitions, unless some are to be sent again."""
        left = {}
        for partition, offset in commit.offsets.items():
            code = codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if not code:
                continue
            found = reaction(_API, code)
            may_pass = found in (Reaction.RETRY, Reaction.FIND, Reaction.REFRESH)
            if may_pass or (found is Reaction.STALE and self._has_gone_on(commit, now_ms)):
                left[partition] = offset
                if found is Reaction.REFRESH:
                    self._network.metadata.request_update()
            else:
                commit.pending.end(self._error(found, code, partition))
                self._membership.refused(found, commit.group, now_ms)
                return False
        commit.offsets = left
        if not left:
            commit.pending.end()
        return not commit.pending.is_done

    def _has_gone_on(self, commit: _Commit, now_ms: int) -> bool:
        """Whether the member still has what it commits, so that it may do so in its new epoch."""
        self._membership.refused(Reaction.STALE, commit.group, now_ms)
        commit.follows_epoch = (
            self._membership.group_metadata().generation_id >= 0
            and self._membership.assignment >= set(commit.offsets)
        )
        return commit.follows_epoch

    def _error(self, found: Reaction, code: int, partition: TopicPartition) -> BaseException:
        where = f"{partition.topic}-{partition.partition}: {name_of(code)}"
        if found in (Reaction.LOST, Reaction.REMOVED, Reaction.STALE):
            return OffsetCommitFailedError(error_of(code, where))
        if found is Reaction.REJOINING:
            return RebalanceInProgressError(
                f"the group is assigning partitions ({where}): commit again after the next poll()"
            )
        return error_for(self._coordinator.group_id, code, where)

    def _failed(self, call: Call, error: Exception, now_ms: int) -> None:
        self._call = None
        sent, self._sent = self._sent, []
        self._waiting = [each for each in sent if not each.pending.is_done] + self._waiting
        if isinstance(error, (RetriableError, KafkaTimeoutError)):
            self._coordinator.forget(call, now_ms)
            self._again(now_ms)
        else:
            self._end_all(error)

    def _again(self, now_ms: int) -> None:
        self._attempts += 1
        self._not_before_ms = now_ms + self._backoff_ms(self._attempts)

    def _coordinator_failed(self, error: Exception, _now_ms: int) -> None:
        self._end_all(error)

    def _end_all(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.pending.end(error)


def _partition(number: int, committed: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
        partition_epoch=epochs_in(committed.offset_epoch).partition_epoch,
    )

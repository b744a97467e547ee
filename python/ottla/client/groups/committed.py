"""What a group has committed, as its coordinator knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import KafkaTimeoutError, RetriableError
from ottla.client.groups.call import Call
from ottla.client.groups.reactions import Reaction, error_for, reaction
from ottla.client.groups.subscription import partitions_by_topic
from ottla.client.offset_epoch import Epochs, offset_epoch
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.client.pending import Pending
from ottla.protocol.error_code import name_of
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.client.groups.coordinator import GroupCoordinator
    from ottla.client.groups.membership import Membership
    from ottla.client.network.exchange import Network
    from ottla.client.options.settings import ConsumerSettings

__all__ = ["CommittedOffsets"]

_API = "OffsetFetch"
_BY_NAME, _BY_ID = range(1, 10), range(1, 11)
_NO_OFFSET = -1


class _Lookup:
    """A call, with the partitions that are still to be looked up."""

    def __init__(self, partitions: Iterable[TopicPartition], deadline_ms: int) -> None:
        self.pending = Pending("committed")
        self.left = set(partitions)
        self.found: dict[TopicPartition, OffsetAndMetadata] = {}
        self.deadline_ms = deadline_ms
        self.not_before_ms = 0
        self.attempts = 0
        self.call: Call | None = None


class CommittedOffsets:
    """Lookups of one consumer; several may be under way.

    What a transaction may yet change is waited for (KIP-447): the coordinator answers
    UNSTABLE_OFFSET_COMMIT until the transaction has ended.
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
        self._open: list[_Lookup] = []
        coordinator.on_failure.append(self._coordinator_failed)

    def look_up(self, partitions: Iterable[TopicPartition], now_ms: int) -> Pending:
        """Looks offsets up; see `Group.committed`."""
        lookup = _Lookup(partitions, now_ms + self._settings.default_api_timeout_ms)
        if lookup.left:
            self._open.append(lookup)
            self.tick(now_ms)
        else:
            lookup.pending.end(value={})
        return lookup.pending

    def tick(self, now_ms: int) -> None:
        """Sends what waits, and ends what has waited too long."""
        for each in self._open:
            if now_ms >= each.deadline_ms:
                each.pending.end(self._timed_out(each))
        self._open = [each for each in self._open if not each.pending.is_done]
        for each in list(self._open):
            if each.call is None and now_ms >= each.not_before_ms:
                self._send(each, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when a call is over, or is sent again."""
        deadlines = [each.deadline_ms for each in self._open if not each.pending.is_done]
        if not self._coordinator.is_looking:
            deadlines += [each.not_before_ms for each in self._open if each.call is None]
        return min(deadlines, default=None)

    def _timed_out(self, lookup: _Lookup) -> KafkaTimeoutError:
        topic, partition = min(lookup.left)
        return KafkaTimeoutError(
            f"what the group has committed of {topic}-{partition} was not told within "
            f"default_api_timeout_ms = {self._settings.default_api_timeout_ms}: the coordinator "
            "does not answer, or a transaction that commits it has not ended; call again"
        )

    def _send(self, lookup: _Lookup, now_ms: int) -> None:
        if self._coordinator.node_id is None:
            self._coordinator.look_for(now_ms)
            return
        by_topic = partitions_by_topic(lookup.left)
        ids = {topic: self._network.metadata.topic_id(topic) for topic in by_topic}
        group = OffsetFetchRequestGroup(
            group_id=self._coordinator.group_id,
            topics=[
                OffsetFetchRequestTopics(name=topic, topic_id=ids[topic], partition_indexes=numbers)
                for topic, numbers in by_topic.items()
            ],
        )
        member = self._membership.group_metadata()
        if self._settings.group_protocol == "consumer" and member.generation_id >= 0:
            group.member_id, group.member_epoch = member.member_id, member.generation_id
        fields = {
            "group_id": self._coordinator.group_id,
            "topics": [
                OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic.items()
            ],
            "groups": [group],
            "require_stable": True,
        }
        call = Call(
            OffsetFetchRequest,
            fields,
            lambda call, response, now_ms: self._answered(lookup, call, response, now_ms),
            lambda call, error, now_ms: self._failed(lookup, call, error, now_ms),
            versions=_BY_NAME if NO_UUID in ids.values() else _BY_ID,
        )
        if self._coordinator.send(call, now_ms):
            lookup.call = call

    def _answered(self, lookup: _Lookup, call: Call, response: Any, now_ms: int) -> None:
        lookup.call = None
        if lookup.pending.is_done:
            return
        found = response.groups[0] if response.groups else response
        if found.error_code:
            self._refused(lookup, call, found.error_code, "", now_ms)
            return
        topics = call.fields["groups"][0].topics
        for partition, one in _each(found.topics, {each.topic_id: each.name for each in topics}):
            if one.error_code:
                where = f"{partition.topic}-{partition.partition}: {name_of(one.error_code)}"
                self._refused(lookup, call, one.error_code, where, now_ms)
            elif partition in lookup.left:
                lookup.left.discard(partition)
                if one.committed_offset != _NO_OFFSET:
                    lookup.found[partition] = self._committed(partition, one)
        if not lookup.left:
            lookup.pending.end(value=lookup.found)
        elif now_ms >= lookup.not_before_ms:
            self._again(lookup, now_ms)

    def _committed(self, partition: TopicPartition, one: Any) -> OffsetAndMetadata:
        epochs = Epochs(
            one.committed_leader_epoch,
            one.partition_epoch,
            self._network.metadata.topic_id(partition.topic),
        )
        is_known = epochs.leader_epoch >= 0 or epochs.partition_epoch >= 0
        return OffsetAndMetadata(
            one.committed_offset,
            one.metadata,
            one.committed_leader_epoch,
            offset_epoch(epochs) if is_known else b"",
        )

    def _refused(self, lookup: _Lookup, call: Call, code: int, where: str, now_ms: int) -> None:
        found = reaction(_API, code)
        if found in (Reaction.RETRY, Reaction.FIND, Reaction.REFRESH, Reaction.STALE):
            if found is Reaction.FIND:
                self._coordinator.forget(call, now_ms)
            elif found is Reaction.REFRESH:
                self._network.metadata.request_update()
            self._again(lookup, now_ms)
        else:
            lookup.pending.end(error_for(self._coordinator.group_id, code, where or None))
        if found in (Reaction.STALE, Reaction.LOST, Reaction.REMOVED):
            self._membership.refused(found, self._membership.group_metadata(), now_ms)

    def _failed(self, lookup: _Lookup, call: Call, error: Exception, now_ms: int) -> None:
        lookup.call = None
        if isinstance(error, (RetriableError, KafkaTimeoutError)):
            self._coordinator.forget(call, now_ms)
            self._again(lookup, now_ms)
        else:
            lookup.pending.end(error)

    def _again(self, lookup: _Lookup, now_ms: int) -> None:
        lookup.attempts += 1
        lookup.not_before_ms = now_ms + self._backoff_ms(lookup.attempts)

    def _coordinator_failed(self, error: Exception, _now_ms: int) -> None:
        for each in self._open:
            if each.call is None:
                each.pending.end(error)


def _each(topics: Iterable[Any], names: dict[bytes, str]) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in topics:
        name = topic.name or names.get(getattr(topic, "topic_id", NO_UUID), "")
        for one in topic.partitions:
            yield TopicPartition(name, one.partition_index), one

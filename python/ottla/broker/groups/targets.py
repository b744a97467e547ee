"""What a consumer group reads, and who is to have it: epochs, regular expressions, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import adler32, crc32

from ottla.broker.groups.assignors import ASSIGNORS, AssignedMember
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.pattern_parser import PatternError
from ottla.broker.groups.records import (
    ConsumerGroupRecord,
    GroupEpoch,
    RegexRecord,
    ResolvedRegex,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.broker.groups.topic_pattern import TopicPattern
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.groups.consumer_group import ConsumerGroup
    from ottla.broker.groups.draft import Draft
    from ottla.broker.groups.store import GroupStore

# Patterns of all groups that are kept compiled.
_MAX_COMPILED = 256


class GroupTargets:
    """Brings a group's epoch, regular expressions and targets up to date."""

    def __init__(self, store: GroupStore) -> None:
        self._store = store
        self._compiled: dict[str, TopicPattern] = {}

    def require_pattern(self, regex: str | None, before: str | None) -> None:
        """Refuses a regular expression that is none (128)."""
        if regex and regex != before:
            try:
                self._pattern(regex).matching(self._store.image.topics)
            except PatternError as error:
                raise GroupError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
                ) from error

    def bump(self, group: ConsumerGroup, draft: Draft) -> None:
        """Begins an epoch: members or what they read have changed."""
        self._drop_regexes(group, draft)
        self._put_epoch(group, draft)

    def update(self, group: ConsumerGroup, draft: Draft, now_ms: int) -> None:
        """Looks at the topics of the cluster, and has targets made if anything has changed."""
        image = self._store.image
        if group.seen_topics is not image.topics or not self._are_resolved(group):
            self._resolve(group, draft, now_ms)
            if self._hash(group) != group.metadata_hash:
                self._put_epoch(group, draft)
            group.seen_topics = image.topics
        if group.epoch > group.target_epoch:
            self._assign(group, draft)

    def _put_epoch(self, group: ConsumerGroup, draft: Draft) -> None:
        """Raises the epoch, once for all that one request changes."""
        epoch = GroupEpoch(draft.base_epoch + 1, self._hash(group))
        draft.put(ConsumerGroupRecord(group.group_id, epoch))

    def _regexes(self, group: ConsumerGroup) -> set[str]:
        found = {member.subscription.topic_regex for member in group.members.values()}
        return {regex for regex in found if regex}

    def _are_resolved(self, group: ConsumerGroup) -> bool:
        return self._regexes(group) <= group.regexes.keys()

    def _drop_regexes(self, group: ConsumerGroup, draft: Draft) -> None:
        for regex in group.regexes.keys() - self._regexes(group):
            draft.put(RegexRecord(group.group_id, regex, None))

    def _resolve(self, group: ConsumerGroup, draft: Draft, now_ms: int) -> None:
        """Holds the regular expressions against the topics there are."""
        topics = self._store.image.topics
        for regex in sorted(self._regexes(group)):
            known = group.regexes.get(regex)
            try:
                matched = tuple(sorted(self._pattern(regex).matching(topics)))
            except PatternError:
                # A log of Kafka's own may have one that RE2 knows and this engine does not; or by
                # now there are names over which it takes too long.
                matched = () if known is None else known.topics
            if known is None or known.topics != matched:
                version = 1 if known is None else known.version + 1
                resolved = ResolvedRegex(matched, version, now_ms)
                draft.put(RegexRecord(group.group_id, regex, resolved))

    def _pattern(self, regex: str) -> TopicPattern:
        known = self._compiled.get(regex)
        if known is None:
            known = TopicPattern(regex)
            if len(self._compiled) >= _MAX_COMPILED:
                self._compiled.clear()
            self._compiled[regex] = known
        return known

    def _hash(self, group: ConsumerGroup) -> int:
        """Returns a hash of the topics that are read, with their ids and partitions (KIP-1101).

        It is not Kafka's XXH3. No answer has it, no broker compares it with another's, and one that
        takes the log over sees a change of topics: one more epoch.
        """
        topics = self._store.image.topics
        names: set[str] = set()
        for member in group.members.values():
            names |= group.topics_of(member.subscription)
        text = ";".join(
            f"{name}:{topics[name].topic_id.hex()}:{len(topics[name].partitions)}"
            for name in sorted(names & topics.keys())
        ).encode()
        return (crc32(text) << 32 | adler32(text)) - (1 << 63)

    def _assign(self, group: ConsumerGroup, draft: Draft) -> None:
        """Makes the targets of the group's epoch."""
        topics = self._store.image.topics
        members = {
            member_id: AssignedMember(
                member.subscription.instance_id,
                frozenset(
                    topics[name].topic_id
                    for name in group.topics_of(member.subscription)
                    if name in topics
                ),
                member.target,
            )
            for member_id, member in group.members.items()
        }
        read = frozenset[bytes]().union(*(member.topic_ids for member in members.values()))
        by_id = self._store.image.topics_by_id
        counts = {topic_id: len(by_id[topic_id].partitions) for topic_id in sorted(read)}
        assignor = group.assignor(self._store.config.group_consumer_assignors[0])
        for member_id, target in ASSIGNORS[assignor](members, counts).items():
            draft.put(TargetRecord(group.group_id, member_id, target))
        draft.put(TargetEpochRecord(group.group_id, group.epoch))

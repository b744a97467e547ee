"""Requests about offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, and expiry.

Who may commit depends on the group: a member of its generation or epoch, or, while nobody is in it,
anybody (an administrator, or a consumer that assigns partitions to itself). Versions from which a
request names topics by id (KIP-848) answer with the same.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.groups.classic_group import EMPTY, STABLE, ClassicGroup
from ottla.broker.groups.consumer_group import ConsumerGroup
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import MAX_OFFSETS
from ottla.broker.groups.records import NO_TOPIC_ID, CommittedOffset, OffsetCommit, Record
from ottla.broker.groups.store import NONE, GroupStore, Producer
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.broker.groups.classic import ClassicGroups
    from ottla.records import VerificationGuard

_MINUTE_MS = 60_000
_MAX_TIMESTAMP_MS = 2**63 - 1
# The version of OffsetCommit that consumers of KIP-848 need, and that tells of their epochs.
_MEMBER_EPOCHS = 9

Group = ClassicGroup | ConsumerGroup
_Partition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class Fetched(NamedTuple):
    """A committed offset as it is answered."""

    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: int = NONE


class FetchedTopic(NamedTuple):
    """The committed offsets of a topic."""

    name: str
    topic_id: bytes
    partitions: list[Fetched]


class Commits:
    """Committed offsets, for requests and by time."""

    def __init__(self, store: GroupStore, classic: ClassicGroups) -> None:
        self._store = store
        self._classic = classic

    def commit(
        self,
        request: OffsetCommitRequest,
        api_version: int,
        now_ms: int,
        refused: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> OffsetCommitResponse:
        """Commits offsets; those that are refused have an error code of their own.

        Args:
            refused: error codes of partitions that fail whatever else is so.
        """
        try:
            self._store.require_coordinator(request.group_id)
            group = self._group_to_commit(
                request.group_id,
                request.generation_id_or_member_epoch,
                if_missing=ErrorCode.ILLEGAL_GENERATION
                if api_version < _MEMBER_EPOCHS
                else ErrorCode.GROUP_ID_NOT_FOUND,
                now_ms=now_ms,
            )
            self._validate_commit(group, request, api_version)
            refusal = NONE
            if isinstance(group, ClassicGroup) and request.member_id in group.members:
                # A commit is a sign of life.
                self._classic.extend_session(group, group.members[request.member_id], now_ms)
        except GroupError as error:
            refusal = error.error_code
        batch = _Batch(self._store, request.group_id, now_ms, refusal, refused)
        retention_ms = request.retention_time_ms
        expire_ms = None if retention_ms < 0 else min(now_ms + retention_ms, _MAX_TIMESTAMP_MS)
        for topic in request.topics:
            batch.add(topic.name, topic.topic_id, topic.partitions, expire_ms)
        batch.keep(None)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=index, error_code=code)
                        for index, code in codes
                    ],
                )
                for topic, codes in zip(request.topics, batch.codes(), strict=True)
            ]
        )

    def commit_transactional(
        self,
        request: TxnOffsetCommitRequest,
        now_ms: int,
        guard: VerificationGuard | None = None,
        refused: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> TxnOffsetCommitResponse:
        """Commits offsets with a transaction (KIP-98, KIP-447): pending until its end.

        Args:
            guard: shows that the transaction is under way (KIP-890).
            refused: error codes of partitions that fail whatever else is so.
        """
        refusal = NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
        try:
            if refusal == NONE:
                self._store.require_coordinator(request.group_id)
                group = self._group_to_commit(
                    request.group_id,
                    request.generation_id_or_member_epoch,
                    if_missing=ErrorCode.ILLEGAL_GENERATION,
                    now_ms=now_ms,
                )
                self._validate_transactional(group, request)
        except GroupError as error:
            refusal = error.error_code
        batch = _Batch(self._store, request.group_id, now_ms, refusal, refused)
        for topic in request.topics:
            batch.add(topic.name, topic.topic_id, topic.partitions, None)
        batch.keep(Producer(request.producer_id, request.producer_epoch, guard))
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
                        for index, code in codes
                    ],
                )
                for topic, codes in zip(request.topics, batch.codes(), strict=True)
            ]
        )

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Refuses a group that is elsewhere, and a member that is not of its epoch (KIP-848).

        Raises:
            GroupError: with the code of the whole group.
        """
        self._store.require_coordinator(group_id)
        group = self._store.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and (member_id is not None or member_epoch >= 0):
            group.validate_epoch(member_id or "", member_epoch)

    def fetch(
        self, group_id: str, topic: str, partitions: list[int], *, require_stable: bool
    ) -> list[Fetched]:
        """Returns the committed offsets of partitions, −1 where there is none.

        With `require_stable` an offset that a transaction may yet change is error 88 (KIP-447).
        """
        offsets = self._store.offsets
        found = []
        for partition in partitions:
            if require_stable and offsets.is_pending(group_id, topic, partition):
                code = ErrorCode.UNSTABLE_OFFSET_COMMIT
                found.append(Fetched(partition, error_code=code))
                continue
            known = offsets.get(group_id, topic, partition)
            if known is None:
                found.append(Fetched(partition))
            else:
                found.append(Fetched(partition, known.offset, known.leader_epoch, known.metadata))
        return found

    def fetch_all(self, group_id: str, *, require_stable: bool) -> Iterator[FetchedTopic]:
        """Yields the topics of which a group has committed offsets."""
        partitions: dict[str, list[int]] = {}
        for topic, partition, _ in self._store.offsets.of_group(group_id):
            partitions.setdefault(topic, []).append(partition)
        for topic, indexes in partitions.items():
            known = self._store.image.topics.get(topic)
            yield FetchedTopic(
                topic,
                NO_TOPIC_ID if known is None else known.topic_id,
                self.fetch(group_id, topic, indexes, require_stable=require_stable),
            )

    def delete_error(self, group_id: str) -> int:
        """Returns why no offset of a group can be deleted, or 0."""
        group = self._store.groups.get(group_id)
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None:
            return self._store.partitions.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
        if isinstance(group, ClassicGroup) and not group.may_delete_offsets:
            return ErrorCode.NON_EMPTY_GROUP
        return NONE

    def delete(
        self,
        request: OffsetDeleteRequest,
        now_ms: int,
        refused: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> OffsetDeleteResponse:
        """Deletes offsets of topics that a group does not read (KIP-496).

        Args:
            refused: error codes of partitions that fail whatever else is so.
        """
        code = self.delete_error(request.group_id)
        group = self._store.groups.get(request.group_id)
        if code != NONE or group is None:
            return OffsetDeleteResponse(error_code=code)
        records: list[Record] = []
        topics = []
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                refusal = refused.get((topic.name, each.partition_index), NONE)
                if refusal == NONE:
                    refusal = self._refuse_delete(group, topic.name, each.partition_index)
                if refusal == NONE:
                    records.append(
                        OffsetCommit(request.group_id, topic.name, each.partition_index, None)
                    )
                partitions.append(
                    OffsetDeleteResponsePartition(
                        partition_index=each.partition_index, error_code=refusal
                    )
                )
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        code = self._store.keep([each for each in records if self._is_known(each)], now_ms)
        if code != NONE:
            return OffsetDeleteResponse(error_code=code)
        return OffsetDeleteResponse(topics=topics)

    def _is_known(self, record: Record) -> bool:
        offsets = self._store.offsets
        return isinstance(record, OffsetCommit) and (
            offsets.get(record.group_id, record.topic, record.partition) is not None
            or offsets.is_pending(record.group_id, record.topic, record.partition)
        )

    def _refuse_delete(self, group: Group, topic: str, partition: int) -> int:
        if self._store.image.partition(topic, partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if group.is_subscribed(topic):
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        return NONE

    def expire(self, group: Group, now_ms: int) -> None:
        """Deletes the offsets of a group that nobody has needed for long (KIP-211)."""
        since_ms: Callable[[CommittedOffset], int] = attrgetter("commit_timestamp_ms")
        is_read: Callable[[str], bool] = group.is_subscribed
        if isinstance(group, ClassicGroup):
            if group.protocol_type is None:
                is_read = _reads_nothing
            elif group.state == EMPTY:
                emptied_ms = group.state_timestamp_ms
                since_ms, is_read = (lambda _value: emptied_ms), _reads_nothing
            elif group.state != STABLE or not group.knows_topics:
                return
        records = self._store.offsets.expired(
            group.group_id,
            now_ms=now_ms,
            retention_ms=self._store.config.offsets_retention_minutes * _MINUTE_MS,
            since_ms=since_ms,
            is_read=is_read,
        )
        self._store.keep(records, now_ms)

    def _group_to_commit(
        self, group_id: str, generation: int, *, if_missing: int, now_ms: int
    ) -> Group:
        group = self._store.groups.get(group_id)
        if group is not None:
            return group
        if generation >= 0:
            raise GroupError(if_missing)
        return self._store.new_classic(group_id, now_ms)

    def _validate_commit(
        self, group: Group, request: OffsetCommitRequest, api_version: int
    ) -> None:
        epoch = request.generation_id_or_member_epoch
        if isinstance(group, ClassicGroup):
            group.validate_commit(
                request.member_id, request.group_instance_id, epoch, is_transactional=False
            )
        elif epoch >= 0 or group.members:
            member = group.require_member(request.member_id)
            if member.subscription.classic is None and api_version < _MEMBER_EPOCHS:
                raise GroupError(ErrorCode.UNSUPPORTED_VERSION)
            group.validate_epoch(request.member_id, epoch)

    def _validate_transactional(self, group: Group, request: TxnOffsetCommitRequest) -> None:
        epoch = request.generation_id_or_member_epoch
        if isinstance(group, ClassicGroup):
            group.validate_commit(
                request.member_id, request.group_instance_id, epoch, is_transactional=True
            )
            return
        is_anonymous = epoch < 0 and not request.member_id and request.group_instance_id is None
        if is_anonymous or (epoch < 0 and not group.members):
            return
        try:
            group.validate_epoch(request.member_id, epoch)
        except GroupError as error:
            # Producers do not know the epochs of consumers.
            if error.error_code == ErrorCode.STALE_MEMBER_EPOCH:
                raise GroupError(ErrorCode.ILLEGAL_GENERATION) from error
            raise


def _reads_nothing(_topic: str) -> bool:
    return False


class _Batch:
    """Offsets of one request: those that are taken become one batch, the others an error code."""

    def __init__(
        self,
        store: GroupStore,
        group_id: str,
        now_ms: int,
        refusal: int,
        refused: Mapping[tuple[str, int], int],
    ) -> None:
        self._refused = refused
        self._store = store
        self._group_id = group_id
        self._now_ms = now_ms
        self._refusal = refusal
        self._failed = NONE
        self._records: list[Record] = []
        self._codes: list[list[tuple[int, int]]] = []

    def add(
        self,
        name: str,
        topic_id: bytes,
        partitions: list[OffsetCommitRequestPartition] | list[TxnOffsetCommitRequestPartition],
        expire_ms: int | None,
    ) -> None:
        """Adds a topic, by its name or by its id."""
        known_name: str | None = name
        if topic_id != NO_TOPIC_ID:
            topic = self._store.image.topics_by_id.get(topic_id)
            known_name = None if topic is None else topic.name
        codes = []
        for partition in partitions:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            if known_name is not None:
                code = self._check(known_name, partition)
            if code == NONE:
                value = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    self._now_ms,
                    expire_ms,
                )
                self._records.append(
                    OffsetCommit(self._group_id, known_name or "", partition.partition_index, value)
                )
            codes.append((partition.partition_index, code))
        self._codes.append(codes)

    def keep(self, producer: Producer | None) -> None:
        """Writes what was taken."""
        if len(self._store.offsets) + len(self._records) > MAX_OFFSETS:
            self._failed = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        else:
            self._failed = self._store.keep(self._records, self._now_ms, producer)

    def codes(self) -> Iterator[list[tuple[int, int]]]:
        """Yields partitions and error codes, topic by topic."""
        for codes in self._codes:
            yield [(index, self._failed if code == NONE else code) for index, code in codes]

    def _check(self, topic: str, partition: _Partition) -> int:
        refused = self._refused.get((topic, partition.partition_index), NONE)
        if refused != NONE:
            return refused
        if self._store.image.partition(topic, partition.partition_index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._refusal != NONE:
            return self._refusal
        if len(partition.committed_metadata or "") > self._store.config.offset_metadata_max_bytes:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return NONE

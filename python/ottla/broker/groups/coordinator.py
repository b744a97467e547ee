"""The group coordinator: every group by its id, and the requests that are about groups.

A group is classic or of consumers (KIP-848) and may become the other; offsets are of its name,
whichever it is. `store.py` has what is kept, `classic.py` and `consumer.py` have the transitions,
`commits.py` the offsets. Calls take messages and times, and answer with messages.

Groups are those of the partitions of `__consumer_offsets` that it leads. For the others, and for
all of them once that topic is deleted, NOT_COORDINATOR has clients look for the coordinator.
"""

from collections.abc import Callable, Iterable, Mapping

from ottla.broker.groups.classic import Caller, ClassicGroups, refused_join
from ottla.broker.groups.classic_group import EMPTY, STABLE, ClassicGroup, Reply
from ottla.broker.groups.commits import Commits
from ottla.broker.groups.config import GroupConfig
from ottla.broker.groups.consumer import ConsumerGroups
from ottla.broker.groups.consumer_group import ConsumerGroup
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.log import Append, OffsetsLog, read_log
from ottla.broker.groups.migration import (
    downgraded,
    may_downgrade,
    may_upgrade,
    upgraded,
)
from ottla.broker.groups.mixed import ClassicMembers
from ottla.broker.groups.records import ClassicGroupRecord, Record
from ottla.broker.groups.requests import validate_heartbeat
from ottla.broker.groups.store import NONE, GroupStore
from ottla.broker.groups.timers import Timers
from ottla.broker.image import Image
from ottla.broker.log_partitions import LogPartitions
from ottla.broker.waiting import WaitingList
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.list_groups import ListedGroup
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Group = ClassicGroup | ConsumerGroup
_CLEANUP = ("cleanup",)
_UUID_CHARACTERS = 36


def _nothing(_group_id: str) -> Mapping[str, str]:
    return {}


class GroupCoordinator:
    """Groups and their offsets.

    Attributes:
        commits: requests about offsets.
        partitions: of `__consumer_offsets`: which are led, and what belongs to which.
        store: groups and offsets as they are, for inspection.
    """

    def __init__(
        self,
        config: Callable[[], GroupConfig],
        *,
        waiting: WaitingList,
        image: Callable[[], Image],
        random_bits: Callable[[int], int],
        append: Append,
        settings_of: Callable[[str], Mapping[str, str]] = _nothing,
    ) -> None:
        """Starts without groups.

        Args:
            config: returns the settings as of now.
            waiting: the broker's list of what waits.
            image: returns the cluster as of now.
            random_bits: returns an integer of so many random bits, for member ids.
            append: appends a batch to a partition of `__consumer_offsets`.
            settings_of: returns what is set for a single group, by Kafka's names.
        """
        self._random_bits = random_bits
        self._loaded_ids: set[str] = set()
        self._timers = Timers(waiting)
        self.partitions = LogPartitions(config().offsets_topic_num_partitions)
        self.store = GroupStore(
            config,
            self._timers,
            image,
            partitions=self.partitions,
            write=OffsetsLog(append, self.partitions.of).write,
            settings_of=settings_of,
        )
        self._classic = ClassicGroups(self.store, self._new_id)
        self._consumer = ConsumerGroups(self.store, self._new_id, self._downgrade)
        self._mixed = ClassicMembers(self.store, self._consumer)
        self.commits = Commits(self.store, self._classic)

    @property
    def config(self) -> GroupConfig:
        """Its settings as of now."""
        return self.store.config

    # Classic groups

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int, reply: Reply) -> None:
        """Answers a JoinGroup, now or later."""
        try:
            self._require_group(request.group_id)
            self._require_session(request.session_timeout_ms)
            group = self.store.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup) and group.members:
                new_id = self._new_id()
                reply(self._mixed.join(group, request, caller, new_id, now_ms))
                return
            classic = self._classic_to_join(request, now_ms)
        except GroupError as error:
            is_given = error.error_code == ErrorCode.MEMBER_ID_REQUIRED
            member_id = error.message if is_given else request.member_id
            reply(refused_join(member_id or "", error.error_code))
            return
        self._classic.join(classic, request, caller, now_ms, reply)
        self._drop_unused(classic)

    def sync(self, request: SyncGroupRequest, now_ms: int, reply: Reply) -> None:
        """Answers a SyncGroup, now or later."""
        try:
            group = self._group_of_member(request.group_id)
            if isinstance(group, ConsumerGroup):
                reply(self._mixed.sync(group, request, now_ms))
                return
        except GroupError as error:
            reply(SyncGroupResponse(error_code=error.error_code))
            return
        self._classic.sync(group, request, now_ms, reply)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> int:
        """Extends the session of a member. Returns an error code."""
        identity = request.member_id, request.group_instance_id, request.generation_id
        try:
            group = self._group_of_member(request.group_id)
            if isinstance(group, ConsumerGroup):
                return self._mixed.heartbeat(group, *identity, now_ms)
        except GroupError as error:
            return error.error_code
        return self._classic.heartbeat(group, *identity, now_ms)

    def leave(self, group_id: str, identities: list[MemberIdentity], now_ms: int) -> list[int]:
        """Removes members of a group. Returns an error code for each.

        Raises:
            GroupError: of the whole request.
        """
        self._require_group(group_id)
        try:
            group = self._group_of_member(group_id)
        except GroupError as error:
            return [error.error_code] * len(identities)
        if isinstance(group, ConsumerGroup):
            return self._leave_consumer(group, identities, now_ms)
        codes = self._classic.leave(group, identities, now_ms)
        self._drop_unused(group)
        return codes

    # Consumer groups

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        """Answers a ConsumerGroupHeartbeat."""
        try:
            validate_heartbeat(request, caller.api_version, self.config)
            self.store.require_coordinator(request.group_id)
            group, before_it = self._consumer_group(request)
            is_new = group is not self.store.groups.get(request.group_id)
            response = self._consumer.heartbeat(group, request, caller, now_ms, before_it)
        except GroupError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=error.error_code, error_message=error.message
            )
        if is_new:
            self._enter(group, now_ms)
        return response

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Returns a consumer group.

        Raises:
            GroupError: there is none of that name (69), or it is elsewhere (16).
        """
        self.store.require_coordinator(group_id)
        group = self.store.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        what = "not found" if group is None else "not a consumer group"
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is {what}.")

    # All groups

    def describe(self, group_id: str) -> DescribedGroup:
        """Returns a classic group, or an error 69 where there is none, 16 where it is elsewhere."""
        elsewhere = self.partitions.error(group_id)
        if elsewhere:
            return DescribedGroup(error_code=elsewhere, group_id=group_id)
        group = self.store.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return DescribedGroup(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} not found.",
                group_id=group_id,
                group_state="Dead",
            )
        is_stable = group.state == STABLE
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                    member_assignment=member.assignment if is_stable else b"",
                )
                for member in group.members.values()
            ],
        )

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Returns the groups in some states and of some types (KIP-518, KIP-848); none: any."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {each.lower() for each in types}
        found = []
        for group_id, group in self.store.groups.items():
            group_type, protocol_type = "consumer", "consumer"
            if isinstance(group, ClassicGroup):
                group_type, protocol_type = "classic", group.protocol_type or ""
            if wanted_states and group.state.lower() not in wanted_states:
                continue
            if wanted_types and group_type not in wanted_types:
                continue
            found.append(
                ListedGroup(
                    group_id=group_id,
                    protocol_type=protocol_type,
                    group_state=group.state,
                    group_type=group_type,
                )
            )
        return found

    def delete(self, group_id: str, now_ms: int) -> int:
        """Deletes an empty group and its offsets. Returns an error code."""
        group = self.store.groups.get(group_id)
        if group is None:
            return self.partitions.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        return self._delete(group, now_ms)

    def expire(self, group_id: str, now_ms: int) -> None:
        """Removes all members of a group, as if they had been silent for their sessions.

        Whoever waits for an answer of the coordinator is not silent, and stays.
        """
        group = self.store.groups.get(group_id)
        if group is None:
            return
        pending = group.pending_members if isinstance(group, ClassicGroup) else ()
        for member_id in [*group.members, *pending]:
            self._timers.fire(("session", group_id, member_id), now_ms)

    # Offsets of transactions, and restarts

    def end_transaction(self, producer_id: int, partition: int, *, is_commit: bool) -> None:
        """Decides the offsets of a transaction whose marker is in a partition of the log."""
        self.store.offsets.end_transaction(
            producer_id,
            is_commit=is_commit,
            is_here=lambda group_id: self.partitions.of(group_id) == partition,
        )

    def load(self, partition: int, data: bytes, now_ms: int) -> int:
        """Applies batches of a partition of `__consumer_offsets`; `resume` comes after the last.

        Returns:
            The offset behind them.

        Raises:
            RecordBatchError: the batches cannot be read.
            MalformedFrameError: a record cannot be.
        """
        next_offset = 0
        for last_offset, producer_id, changes in read_log(data):
            next_offset = last_offset + 1
            for change in changes:
                if isinstance(change, bool):
                    self.end_transaction(producer_id, partition, is_commit=change)
                else:
                    self.store.replay(change, now_ms, producer_id)
        return next_offset

    def resume(self, now_ms: int) -> None:
        """Begins to count time for the groups that were loaded, of partitions that are led."""
        # Of a group that only commits offsets there is no other record.
        for group_id in self.store.offsets.groups() - self.store.groups.keys():
            self.store.groups[group_id] = ClassicGroup(group_id, now_ms)
        self._loaded_ids = {
            member_id[-_UUID_CHARACTERS:]
            for group in self.store.groups.values()
            for member_id in group.members
        }
        for group in self.store.groups.values():
            if isinstance(group, ClassicGroup):
                self._classic.resume(group, now_ms)
            else:
                self._consumer.resume(group, now_ms)
        self._clean_up_later(now_ms)

    def give_up(self, partition: int) -> None:
        """Leads a partition of the log no longer: forgets its groups and their offsets.

        Nothing is written any more. Members that wait hear NOT_COORDINATOR, look for the
        coordinator and join anew. Transactions that have committed offsets go on elsewhere: their
        markers find nothing pending.
        """
        if not self.partitions.give_up(partition):
            return
        groups = self.store.groups
        for group_id in [name for name in groups if self.partitions.of(name) == partition]:
            group = groups.pop(group_id)
            if isinstance(group, ClassicGroup):
                self._classic.give_up(group, ErrorCode.NOT_COORDINATOR)
            else:
                for member_id in group.members:
                    self._consumer.stop_timers(group, member_id)
        for group_id in self.store.offsets.all_groups():
            if self.partitions.of(group_id) == partition:
                self.store.offsets.forget(group_id)
        self._classic.send()

    # What the requests share

    def _new_id(self) -> str:
        """Returns a random UUID in the form of Java's, with which no member's id ends.

        A seed draws those of the last start again.
        """
        while True:
            bits = self._random_bits(128) & ~(0xF << 76 | 0x3 << 62) | (4 << 76 | 2 << 62)
            digits = f"{bits:032x}"
            parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
            new_id = "-".join(parts)
            if new_id not in self._loaded_ids:
                return new_id

    def _require_group(self, group_id: str) -> None:
        if not group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID)
        self.store.require_coordinator(group_id)

    def _require_session(self, session_timeout_ms: int) -> None:
        config = self.store.config
        least_ms, most_ms = (
            config.group_min_session_timeout_ms,
            config.group_max_session_timeout_ms,
        )
        if not least_ms <= session_timeout_ms <= most_ms:
            raise GroupError(ErrorCode.INVALID_SESSION_TIMEOUT)

    def _group_of_member(self, group_id: str) -> Group:
        self._require_group(group_id)
        group = self.store.groups.get(group_id)
        if group is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _classic_to_join(self, request: JoinGroupRequest, now_ms: int) -> ClassicGroup:
        """Returns the group to join, which the first member without an id makes."""
        group = self.store.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return group
        if request.member_id:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            # A consumer group that nobody is in becomes a classic one with its offsets.
            code = self.store.keep(group.tombstones(), now_ms)
            if code != NONE:
                raise GroupError(code)
        return self.store.new_classic(request.group_id, now_ms)

    def _consumer_group(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[ConsumerGroup, list[Record]]:
        """Returns the group of a heartbeat, and what has to be kept before it.

        The first member makes the group, also of a classic one: an empty one, or one whose members
        go on with the classic protocol.
        """
        group = self.store.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group, []
        if request.member_epoch != 0:
            return self.consumer_group(request.group_id), []
        self.store.require_place(request.group_id)
        made = ConsumerGroup(request.group_id)
        if group is None:
            return made, []
        if group.is_empty:
            return made, [ClassicGroupRecord(group.group_id, None)]
        if not may_upgrade(group, self.config):
            return self.consumer_group(request.group_id), []
        records = upgraded(group, self.store.image)
        for record in records:
            made.replay(record)
        return made, records

    def _enter(self, group: ConsumerGroup, now_ms: int) -> None:
        """Has a consumer group take the place of what there was of its name."""
        before = self.store.groups.get(group.group_id)
        self.store.groups[group.group_id] = group
        if isinstance(before, ClassicGroup):
            self._classic.forget(before, now_ms)
            self._consumer.resume(group, now_ms)

    def _leave_consumer(
        self, group: ConsumerGroup, identities: list[MemberIdentity], now_ms: int
    ) -> list[int]:
        """Removes members of a consumer group in the classic way."""
        codes, leaving = [], []
        for identity in identities:
            try:
                leaving.append(
                    self._mixed.leaving(group, identity.member_id, identity.group_instance_id)
                )
                codes.append(NONE)
            except GroupError as error:
                codes.append(error.error_code)
        if leaving:
            self._consumer.remove(group, [*dict.fromkeys(leaving)], now_ms)
        return codes

    def _downgrade(self, group: ConsumerGroup, now_ms: int) -> None:
        """Makes a classic group of a consumer group that only classic members are left in."""
        if not may_downgrade(group, self.config):
            return
        classic = downgraded(group, self.store.image, now_ms)
        member_ids = [*group.members]
        record = ClassicGroupRecord(group.group_id, classic.persistent())
        if self.store.keep([*group.tombstones(), record], now_ms) != NONE:
            # They go on as they are; the next who leaves tries again.
            return
        for member_id in member_ids:
            self._consumer.stop_timers(group, member_id)
        self.store.groups[group.group_id] = classic
        self._classic.resume(classic, now_ms)
        self._classic.rebalance(classic, now_ms)

    def _drop_unused(self, group: ClassicGroup) -> None:
        """Forgets a group that a refused request has made."""
        is_unused = group.state == EMPTY and not group.generation_id and not group.pending_members
        if is_unused and not self.store.offsets.has_any(group.group_id):
            self.store.groups.pop(group.group_id, None)

    def _delete(self, group: Group, now_ms: int) -> int:
        records: list[Record] = [*self.store.offsets.tombstones(group.group_id)]
        if isinstance(group, ClassicGroup):
            records.append(ClassicGroupRecord(group.group_id, None))
        else:
            records += group.tombstones()
        code = self.store.keep(records, now_ms)
        if code == NONE and isinstance(group, ClassicGroup):
            self._classic.forget(group, now_ms)
        return code

    def _clean_up_later(self, now_ms: int) -> None:
        interval_ms = self.config.offsets_retention_check_interval_ms
        self._timers.start(_CLEANUP, now_ms + interval_ms, self._clean_up)

    def _clean_up(self, now_ms: int) -> None:
        """Deletes offsets that have expired, and groups that nothing is left of."""
        for group in [*self.store.groups.values()]:
            self.commits.expire(group, now_ms)
            is_unused = group.is_empty and not (
                isinstance(group, ClassicGroup) and group.pending_members
            )
            if is_unused and not self.store.offsets.has_any(group.group_id):
                self._delete(group, now_ms)
        self._clean_up_later(now_ms)

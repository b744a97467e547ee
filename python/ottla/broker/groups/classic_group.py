"""A classic group as it stands: members, their protocols, the leader, the generation.

Nothing here knows of time or answers a request; `classic.py` has the transitions.

Invariants:
    `leader` is a member, or `None` with no members.
    `static_members` has exactly the members with a group instance id (KIP-345).
    Every member supports the type of protocol and at least one protocol that all support.
"""

from collections.abc import Callable
from typing import Any

from ottla.broker.groups.error import GroupError
from ottla.broker.groups.records import ClassicGroupState, ClassicMemberState
from ottla.broker.groups.subscription import read_subscription
from ottla.protocol.error_code import ErrorCode

EMPTY = "Empty"
PREPARING_REBALANCE = "PreparingRebalance"
COMPLETING_REBALANCE = "CompletingRebalance"
STABLE = "Stable"
DEAD = "Dead"

Reply = Callable[[Any], None]
Protocols = tuple[tuple[str, bytes], ...]

CONSUMER_PROTOCOL_TYPE = "consumer"


class Member:
    """A member of a classic group."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        *,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        # A member that has not been given a generation yet.
        self.is_new = False
        # Where the answers go that it waits for.
        self.join_reply: Reply | None = None
        self.sync_reply: Reply | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        """Returns its metadata of a protocol, empty where it has none."""
        return next((data for name, data in self.protocols if name == protocol_name), b"")


class ClassicGroup:
    """Members and generation of a classic group."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = EMPTY
        # The state before this one, which tells a group's first rebalance.
        self.previous_state = DEAD
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        # Ids that were given out to members that have to join with them (KIP-394).
        self.pending_members: set[str] = set()
        # Members of this generation that have not asked for their assignment.
        self.pending_syncs: set[str] = set()
        # Whether a member came during the delay of the first rebalance.
        self.new_member_added = False
        self._topics: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it may be deleted and offsets committed without membership."""
        return self.state in {EMPTY, DEAD}

    @property
    def may_delete_offsets(self) -> bool:
        """Whether offsets of topics that nobody reads may be deleted one by one (KIP-496)."""
        return self.state == EMPTY or self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def transition(self, state: str, now_ms: int) -> None:
        """Enters a state."""
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def waiting_joins(self) -> int:
        """Returns how many members wait for the next generation."""
        return sum(member.join_reply is not None for member in self.members.values())

    def all_have_joined(self) -> bool:
        """Whether the next generation can begin: nobody is missing, nobody was promised a place."""
        return not self.pending_members and self.waiting_joins() == len(self.members)

    def rebalance_timeout_ms(self) -> int:
        """Returns how long the slowest member wants for a rebalance."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def add(self, member: Member, protocol_type: str) -> None:
        """Adds a member; the first one leads and decides the type of protocol."""
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> Member | None:
        """Removes a member or the promise of a place; the next member leads in its stead."""
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old: Member, member_id: str) -> Member:
        """Gives the place of a static member to the same instance under a new id (KIP-345)."""
        new = Member(
            member_id,
            old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        # The order of members decides who leads next, so the place is kept.
        self.members = {
            (member_id if known == old.member_id else known): (
                new if known == old.member_id else member
            )
            for known, member in self.members.items()
        }
        if old.group_instance_id is not None:
            self.static_members[old.group_instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.remove(old.member_id)
            self.pending_syncs.add(member_id)
        return new

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether somebody with these protocols has one in common with all members."""
        if not protocol_type or not protocols:
            return False
        if self.is_empty or not self.members:
            return True
        return protocol_type == self.protocol_type and any(
            name in self.candidates() for name, _ in protocols
        )

    def candidates(self) -> set[str]:
        """Returns the protocols that every member supports."""
        sets = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*sets) if sets else set()

    def chosen_protocol(self) -> str | None:
        """Returns the protocol that wins the vote: each member votes for its first candidate."""
        candidates = self.candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next((name for name, _ in member.protocols if name in candidates), None)
            if choice is not None:
                votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name], default=None)

    def elect_joined_leader(self) -> bool:
        """Has somebody lead who has joined; whether there is anybody."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join_reply is None:
            joined = (m.member_id for m in self.members.values() if m.join_reply is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader = elected
        return True

    def next_generation(self, now_ms: int) -> None:
        """Begins a generation with those who are members."""
        self.generation_id = (self.generation_id + 1) & 0x7FFFFFFF
        self.pending_syncs = set(self.members)
        self.protocol_name = self.chosen_protocol()
        self.remember_topics()
        self.transition(COMPLETING_REBALANCE if self.members else EMPTY, now_ms)

    def remember_topics(self) -> None:
        """Works out the topics of all members, where they are consumers and say so."""
        self._topics = None
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE and (
            self.protocol_name or not self.members
        ):
            found: set[str] = set()
            for member in self.members.values():
                said = read_subscription(member.metadata(self.protocol_name))
                if said is None:
                    return
                found.update(said.topics)
            self._topics = frozenset(found)

    @property
    def knows_topics(self) -> bool:
        """Whether it is known what its consumers have subscribed to."""
        return self._topics is not None

    def is_subscribed(self, topic: str) -> bool:
        """Whether its consumers read a topic; any, while what they said cannot be read."""
        if self._topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self._topics

    def validate_member(self, member_id: str, group_instance_id: str | None) -> Member:
        """Returns a member, and refuses a stranger or another with the same instance id."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def validate_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        is_transactional: bool,
    ) -> None:
        """Refuses offsets of somebody who is no member of this generation."""
        if self.state == DEAD:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_id < 0 and self.state == EMPTY:
            return
        if generation_id >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            if generation_id != self.generation_id:
                raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional and self.state != EMPTY:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state == COMPLETING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)

    def persistent(self, assignments: dict[str, bytes] | None = None) -> ClassicGroupState:
        """Returns what a restart has to know of it; with other assignments, if given."""
        return ClassicGroupState(
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            leader=self.leader,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                ClassicMemberState(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(self.protocol_name),
                    member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    def restore(self, kept: ClassicGroupState) -> None:
        """Takes up what `persistent` returned, after a restart."""
        self.generation_id = kept.generation_id
        self.protocol_type = kept.protocol_type or None
        self.protocol_name = kept.protocol_name
        self.members.clear()
        self.static_members.clear()
        for state in kept.members:
            member = Member(
                state.member_id,
                state.group_instance_id,
                client_id=state.client_id,
                client_host=state.client_host,
                rebalance_timeout_ms=state.rebalance_timeout_ms,
                session_timeout_ms=state.session_timeout_ms,
                protocols=((kept.protocol_name or "", state.subscription),),
                assignment=state.assignment,
            )
            self.members[member.member_id] = member
            if member.group_instance_id is not None:
                self.static_members[member.group_instance_id] = member.member_id
        self.leader = kept.leader if kept.leader in self.members else next(iter(self.members), None)
        self.state = STABLE if self.members else EMPTY
        self.state_timestamp_ms = kept.state_timestamp_ms
        self.remember_topics()

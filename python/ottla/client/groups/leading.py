"""What the leader of a generation does: it assigns, once it knows all topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import IllegalStateError
from ottla.client.groups.assignors.ownership import without_transfers
from ottla.client.groups.subscription import assignment_bytes, read_subscription
from ottla.protocol.messages.sync_group import SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.groups.assignors import Assignor, Members
    from ottla.client.groups.assignors.assignor import Assignment
    from ottla.client.network.metadata import Metadata

__all__ = ["Leading"]


class Leading:
    """The members of one generation, and the topics that they read.

    Args:
        members: of the answer to a JoinGroup.
        metadata: looks topics up.
        skips: whether the generation goes on with what it was assigned (KIP-814).

    Raises:
        ApiError: what a member says of itself cannot be read.
    """

    def __init__(self, members: Sequence[Any], metadata: Metadata, *, skips: bool) -> None:
        self._members: Members = {
            each.member_id: read_subscription(each.metadata, each.member_id)._replace(
                group_instance_id=each.group_instance_id
            )
            for each in members
        }
        self._metadata = metadata
        self._topics = frozenset().union(*(each.topics for each in self._members.values()))
        metadata.add_topics(self._topics)
        self._skips = skips
        self._assigned: dict[str, int] = {}
        self._seen = -1

    @property
    def knows_topics(self) -> bool:
        """Whether metadata has all topics, or says why not."""
        return all(
            self._metadata.partition_count(each) is not None or self._metadata.topic_error(each)
            for each in self._topics
        )

    @property
    def is_outdated(self) -> bool:
        """Whether topics have other partitions than when they were assigned."""
        if self._seen == self._metadata.update_count:
            return False
        self._seen = self._metadata.update_count
        if not self.knows_topics:
            # The consumer's own interest may have changed; that of the others has not.
            self._metadata.add_topics(self._topics)
            return False
        return self._counts() != self._assigned

    def assign(self, assignor: Assignor) -> list[SyncGroupRequestAssignment]:
        """Returns what each member is to get.

        Raises:
            IllegalStateError: the assignor has given partitions to who is no member, does not
                read them, or beside another.
        """
        self._seen = self._metadata.update_count
        self._assigned = self._counts()
        if self._skips:
            return []
        found = assignor.assign(self._assigned, self._members)
        self._require_right(found, assignor.name)
        if assignor.is_cooperative:
            found = without_transfers(found, self._members)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=assignment_bytes(found.get(member_id, ()), None)
            )
            for member_id in self._members
        ]

    def _counts(self) -> dict[str, int]:
        counts = {each: self._metadata.partition_count(each) for each in self._topics}
        return {topic: count for topic, count in counts.items() if count is not None}

    def _require_right(self, found: Assignment, name: str) -> None:
        seen = set()
        for member_id, partitions in found.items():
            member = self._members.get(member_id)
            for one in partitions:
                if member is None:
                    wrong = "is no member of the group"
                elif one[0] not in member.topics:
                    wrong = f"reads only {sorted(member.topics)}"
                elif one in seen:
                    wrong = "is the second to get it"
                else:
                    seen.add(one)
                    continue
                raise IllegalStateError(
                    f"the assignor {name!r} gives {one[0]}-{one[1]} to {member_id!r}, which "
                    f"{wrong}: mend the assignor, the next poll() joins the group again"
                )

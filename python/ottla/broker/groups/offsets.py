"""Committed offsets of all groups, and those of transactions that are not decided.

An offset of a transaction (KIP-98) is pending until the transaction's marker is in the partition of
`__consumer_offsets` that its group belongs to. A commit outside of transactions that comes between
the two is newer than the pending one and stays: of each key the record further behind counts, as
for a reader of the log.

Invariants:
    an offset changes by `replay` and `end_transaction` only, which a restart calls alike.
    `_unstable` has exactly the keys of `_pending`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.broker.groups.records import CommittedOffset, OffsetCommit

TopicPartition = tuple[str, int]


class _Entry(NamedTuple):
    value: CommittedOffset
    # Counts records in the order of the log.
    order: int


class Offsets:
    """Offsets by group, topic and partition."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, _Entry]] = {}
        self._pending: dict[int, dict[str, dict[TopicPartition, _Entry]]] = {}
        self._unstable: dict[tuple[str, str, int], set[int]] = {}
        self._order = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Returns what a group has committed of a partition."""
        entry = self._committed.get(group_id, {}).get((topic, partition))
        return None if entry is None else entry.value

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yields topic, partition and offset of all that a group has committed."""
        for (topic, partition), entry in self._committed.get(group_id, {}).items():
            yield topic, partition, entry.value

    def groups(self) -> set[str]:
        """Returns the groups that have committed anything."""
        return set(self._committed)

    def all_groups(self) -> set[str]:
        """Returns the groups that have committed anything, or may have in a transaction."""
        return self.groups().union(*self._pending.values())

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction may yet change an offset."""
        return (group_id, topic, partition) in self._unstable

    def has_any(self, group_id: str) -> bool:
        """Whether a group has committed anything, or may have in a transaction."""
        return group_id in self._committed or any(
            group_id in groups for groups in self._pending.values()
        )

    def replay(self, record: OffsetCommit, producer_id: int = -1) -> None:
        """Applies a record of the log; one of a transaction has a producer id."""
        self._order += 1
        key = (record.topic, record.partition)
        if record.value is None:
            self._remove(record.group_id, key)
            for pending_id in [*self._unstable.get((record.group_id, *key), ())]:
                self._drop_pending(pending_id, record.group_id, key)
        elif producer_id < 0:
            self._put(record.group_id, key, _Entry(record.value, self._order))
        else:
            groups = self._pending.setdefault(producer_id, {})
            of_group = groups.setdefault(record.group_id, {})
            self._count += key not in of_group
            of_group[key] = _Entry(record.value, self._order)
            self._unstable.setdefault((record.group_id, *key), set()).add(producer_id)

    def end_transaction(
        self, producer_id: int, *, is_commit: bool, is_here: Callable[[str], bool]
    ) -> None:
        """Decides the pending offsets of a producer, those of groups whose log the marker is in."""
        groups = self._pending.get(producer_id, {})
        for group_id in [group_id for group_id in groups if is_here(group_id)]:
            for key, entry in [*groups[group_id].items()]:
                self._drop_pending(producer_id, group_id, key)
                known = self._committed.get(group_id, {}).get(key)
                if is_commit and (known is None or known.order < entry.order):
                    self._put(group_id, key, entry)

    def forget(self, group_id: str) -> None:
        """Forgets what a group has committed, also in transactions, for its log is gone."""
        for record in self.tombstones(group_id):
            self.replay(record)

    def tombstones(self, group_id: str) -> list[OffsetCommit]:
        """Returns the records that delete all offsets of a group, pending ones with them."""
        keys = dict.fromkeys(self._committed.get(group_id, {}))
        for groups in self._pending.values():
            keys.update(dict.fromkeys(groups.get(group_id, {})))
        return [OffsetCommit(group_id, *key, None) for key in keys]

    def expired(
        self,
        group_id: str,
        *,
        now_ms: int,
        retention_ms: int,
        since_ms: Callable[[CommittedOffset], int],
        is_read: Callable[[str], bool],
    ) -> list[OffsetCommit]:
        """Returns the records that delete what is too old (KIP-211).

        Args:
            since_ms: when the retention of an offset began.
            is_read: whether the group still reads a topic; its offsets do not expire.
        """
        records = []
        for topic, partition, value in self.of_group(group_id):
            if is_read(topic) or self.is_pending(group_id, topic, partition):
                continue
            # Only clients of old versions say when.
            due_ms = value.expire_timestamp_ms
            if due_ms is None:
                due_ms = since_ms(value) + retention_ms
            if due_ms <= now_ms:
                records.append(OffsetCommit(group_id, topic, partition, None))
        return records

    def _put(self, group_id: str, key: TopicPartition, entry: _Entry) -> None:
        of_group = self._committed.setdefault(group_id, {})
        self._count += key not in of_group
        of_group[key] = entry

    def _remove(self, group_id: str, key: TopicPartition) -> None:
        of_group = self._committed.get(group_id, {})
        if of_group.pop(key, None) is not None:
            self._count -= 1
            if not of_group:
                del self._committed[group_id]

    def _drop_pending(self, producer_id: int, group_id: str, key: TopicPartition) -> None:
        groups = self._pending[producer_id]
        del groups[group_id][key]
        self._count -= 1
        if not groups[group_id]:
            del groups[group_id]
        if not groups:
            del self._pending[producer_id]
        producers = self._unstable[(group_id, *key)]
        producers.discard(producer_id)
        if not producers:
            del self._unstable[(group_id, *key)]

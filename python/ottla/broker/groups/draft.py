"""A change of a consumer group in several steps, of which later ones see what earlier ones did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.error import GroupError
from ottla.broker.groups.store import NONE, GroupStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from ottla.broker.groups.consumer_group import ConsumerGroup
    from ottla.broker.groups.records import Record


class Draft:
    """Records that are applied to a group at once, and undone if they cannot be kept.

    Attributes:
        base_epoch: of the group, when the change began.

    As a context manager: kept at the end, undone if it is left by an exception.
    """

    def __init__(
        self,
        store: GroupStore,
        group: ConsumerGroup,
        now_ms: int,
        first: Sequence[Record] = (),
    ) -> None:
        self._store = store
        self._group = group
        self._now_ms = now_ms
        self.base_epoch = group.epoch
        # What is in the batch before the changes of the group.
        self._records: list[Record] = [*first]
        self._undo: list[Record] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is not None:
            self._revert()
            return
        code = self._store.write(self._records, self._now_ms)
        if code != NONE:
            self._revert()
            raise GroupError(code)

    def put(self, record: Record) -> None:
        """Adds a record, unless it says what is known already."""
        known = self._group.known(record)
        if known != record or record.value is None:
            self._undo.append(known)
            self._records.append(record)
            self._group.replay(record)

    def _revert(self) -> None:
        while self._undo:
            self._group.replay(self._undo.pop())
        self._records.clear()
        self._group.seen_topics = None

"""The fetch session with one node (KIP-227): what the broker remembers need not be said again.

The broker keeps, for a session id, which partitions are fetched from where. A request of epoch 0
names all and opens a session; later ones, of epochs 1, 2, …, name those that changed, and those to
forget. A broker without room for a session answers with the id 0: each request is a full one then.

Invariants: `_remembered` is what the broker keeps once it has handled the last request; it is only
relied upon once that was answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.protocol.error_code import ErrorCode
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.partitions import TopicPartition

__all__ = ["Entry", "Said", "Session"]

_FULL, _FINAL = 0, -1
_LAST_EPOCH = 0x7FFFFFFF


class Entry(NamedTuple):
    """A partition as a Fetch names it.

    Attributes:
        topic_id: of its topic; zeros where not known.
        offset: to fetch from.
        leader_epoch: that of the leader as the client knows it.
        max_bytes: of its records.
    """

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class Said(NamedTuple):
    """What a request says of its session.

    Attributes:
        session_id, epoch: of the session.
        is_by_id: whether it names topics by their ids.
        changed: the partitions that it names.
        forgotten: those that the session shall no longer have.
        all: the partitions that are fetched, named or not.
    """

    session_id: int
    epoch: int
    is_by_id: bool
    changed: Mapping[TopicPartition, Entry]
    forgotten: Mapping[TopicPartition, Entry]
    all: Mapping[TopicPartition, Entry]


class Session:
    """The session with one node."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = _FULL
        self._remembered: dict[TopicPartition, Entry] = {}
        self._is_by_id = False

    def fetch(self, wanted: dict[TopicPartition, Entry]) -> Said:
        """Returns what to say so that these are fetched, and these alone."""
        before, self._remembered = self._remembered, wanted
        is_by_id = all(entry.topic_id != NO_UUID for entry in wanted.values())
        if is_by_id != self._is_by_id:
            # A session is of names or of ids (KIP-516).
            self._is_by_id = is_by_id
            self.broke()
        if self.epoch == _FULL:
            return Said(self.session_id, self.epoch, is_by_id, wanted, {}, wanted)
        changed = {one: entry for one, entry in wanted.items() if before.get(one) != entry}
        # A topic that was created again is another to the broker, which has to forget the first.
        forgotten = {
            one: entry
            for one, entry in before.items()
            if one not in wanted or wanted[one].topic_id != entry.topic_id
        }
        return Said(self.session_id, self.epoch, is_by_id, changed, forgotten, wanted)

    def close(self) -> Said | None:
        """Returns what to say so that the broker forgets it; ``None`` where there is none."""
        if not self.session_id:
            return None
        said = Said(self.session_id, _FINAL, self._is_by_id, {}, {}, {})
        self.session_id, self.epoch = 0, _FULL
        return said

    def answered(self, session_id: int) -> None:
        """The broker has done what was said, and names the session."""
        if not session_id:
            self.session_id, self.epoch = 0, _FULL
        elif session_id != self.session_id:
            self.session_id, self.epoch = session_id, 1
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def broke(self, error_code: int = ErrorCode.NONE) -> None:
        """What the broker remembers is not known: the next request names all partitions."""
        self.epoch = _FULL
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = 0

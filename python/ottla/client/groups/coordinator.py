"""Which node coordinates the group.

    unknown ─▸ asking ─▸ known ─▸ unknown …

Whoever needs it calls `look_for` as long as `node_id` is ``None``, and `forget` where a node says
that it is another, or does not answer. A lookup that fails for good is told to all of `on_failure`,
and the next `look_for` begins another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import RetriableError
from ottla.client.groups.call import Call
from ottla.client.groups.reactions import Reaction, error_for, reaction
from ottla.client.network.exchange import ANY_NODE
from ottla.client.network.metadata import Node
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.exchange import Network

__all__ = ["GroupCoordinator"]

_GROUP = 0
# A JoinGroup waits at the broker for the other members: the connection of fetches is another one.
_LAST_NODE_ID = 2147483647


class GroupCoordinator:
    """The coordinator of one group, as far as it is known.

    Args:
        group_id: the group.
        network: asks for it.
        backoff_ms: how long to wait before an attempt, by the number of those before it.

    Attributes:
        node_id: the node, by a number that requests of other kinds do not use; ``None`` while it
            is not known.
        on_failure: called with the error and the time where it cannot be found.
    """

    def __init__(self, group_id: str, network: Network, backoff_ms: Callable[[int], int]) -> None:
        self.group_id = group_id
        self.node_id: int | None = None
        self.on_failure: list[Callable[[Exception, int], None]] = []
        self._network = network
        self._backoff_ms = backoff_ms
        self._is_wanted = False
        self._under_way: Call | None = None
        self._attempts = 0
        self._not_before_ms = 0

    def look_for(self, now_ms: int) -> None:
        """Has it looked for, unless it is known or that is under way."""
        if self.node_id is None:
            self._is_wanted = True
            self.tick(now_ms)

    @property
    def is_looking(self) -> bool:
        """Whether it is being looked for: when that goes on is in `next_deadline_ms`."""
        return self._is_wanted

    def send(self, call: Call, now_ms: int) -> bool:
        """Sends a request to it; where it is not known, it is looked for instead.

        Returns:
            Whether it was sent.
        """
        if self.node_id is None:
            self.look_for(now_ms)
            return False
        call.node_id = self.node_id
        call.sent_ms = now_ms
        self._network.send(self.node_id, call, now_ms)
        return True

    def forget(self, call: Call, now_ms: int) -> None:
        """Forgets it where it is still who got a request: another may have been found meanwhile."""
        if self.node_id is not None and call.node_id == self.node_id:
            self.node_id = None
            self._not_before_ms = now_ms + self._backoff_ms(1)

    def tick(self, now_ms: int) -> None:
        """Asks for it where somebody wants it."""
        if not self._is_wanted or self._under_way is not None or now_ms < self._not_before_ms:
            return
        fields = {
            "key": self.group_id,
            "key_type": _GROUP,
            "coordinator_keys": [self.group_id],
        }
        self._under_way = Call(FindCoordinatorRequest, fields, self._answered, self._failed)
        self._network.send(ANY_NODE, self._under_way, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when it is asked for again."""
        return self._not_before_ms if self._is_wanted and self._under_way is None else None

    def _answered(self, _call: Call, response: Any, now_ms: int) -> None:
        found = response.coordinators[0] if response.coordinators else response
        if not found.error_code:
            self._under_way = None
            self._is_wanted = False
            self._attempts = 0
            self.node_id = _LAST_NODE_ID - found.node_id
            self._network.metadata.learn_nodes([Node(self.node_id, found.host, found.port)])
            return
        if reaction("FindCoordinator", found.error_code) is Reaction.RETRY:
            self._again(now_ms)
        else:
            self._give_up(error_for(self.group_id, found.error_code, found.error_message), now_ms)

    def _failed(self, _call: Call, error: Exception, now_ms: int) -> None:
        if isinstance(error, RetriableError):
            self._again(now_ms)
        else:
            self._give_up(error, now_ms)

    def _again(self, now_ms: int) -> None:
        self._under_way = None
        self._attempts += 1
        self._not_before_ms = now_ms + self._backoff_ms(self._attempts)

    def _give_up(self, error: Exception, now_ms: int) -> None:
        self._again(now_ms)
        self._is_wanted = False
        for tell in self.on_failure:
            tell(error, now_ms)

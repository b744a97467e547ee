"""Which node a route leads to, as far as that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.admin.operation import (
    Anywhere,
    Controller,
    CoordinatorOf,
    LeaderOf,
    OnNode,
    Route,
)
from ottla.client.errors import KafkaError, NetworkError, error_of
from ottla.client.groups.call import Call
from ottla.client.network.exchange import ANY_NODE
from ottla.client.network.metadata import Node
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.network.network import ClientNetwork

__all__ = ["Routes"]

_MOST_LOOKUPS = 5
"""Of a topic that brokers do not know, before that is believed: it may be new."""


class Routes:
    """The controller, leaders and coordinators that calls ask for.

    Args:
        network: tells of them.
        on_answer: is told the route, why nothing was found or ``None``, and the time, once a
            coordinator was looked for.
    """

    def __init__(
        self, network: ClientNetwork, on_answer: Callable[[Route, KafkaError | None, int], None]
    ) -> None:
        self._network = network
        self._on_answer = on_answer
        self._coordinators: dict[CoordinatorOf, int] = {}
        self._asked: set[CoordinatorOf] = set()
        self._unknown: dict[str, tuple[int, int]] = {}
        # Routes that were wrong, by how often metadata had been told when they were.
        self._wrong: dict[Route, int] = {}

    def follow(self, routes: Iterable[Route]) -> None:
        """Has the topics of these routes looked up, and kept up to date, and no others."""
        followed = frozenset(routes)
        topics = frozenset(one.partition.topic for one in followed if isinstance(one, LeaderOf))
        self._network.metadata.set_topics(topics)
        self._wrong = {one: seen for one, seen in self._wrong.items() if one in followed}
        self._unknown = {name: seen for name, seen in self._unknown.items() if name in topics}

    def find(self, route: Route, now_ms: int) -> tuple[bool, int | None]:
        """Returns whether it is known where a route leads, and the node.

        Raises:
            KafkaError: it leads nowhere.
        """
        metadata = self._network.metadata
        if isinstance(route, Anywhere):
            return True, ANY_NODE
        if metadata.failure is not None and not metadata.nodes:
            raise _typed(metadata.failure)
        if isinstance(route, CoordinatorOf):
            return self._coordinator(route, now_ms)
        if self._wrong.get(route) == metadata.update_count:
            return False, None
        self._wrong.pop(route, None)
        if isinstance(route, LeaderOf):
            return self._leader(route)
        node_id = metadata.controller_id if isinstance(route, Controller) else route.node_id
        if node_id in metadata.nodes:
            return True, node_id
        if metadata.nodes and isinstance(route, OnNode):
            raise NetworkError(
                f"the cluster has no broker {node_id}; there are {sorted(metadata.nodes)}"
            )
        if not metadata.update_count or metadata.nodes:
            metadata.request_update()
        return False, None

    def forget(self, route: Route) -> None:
        """A route has led to the wrong node, or to none that answers."""
        if isinstance(route, CoordinatorOf):
            self._coordinators.pop(route, None)
        elif not isinstance(route, Anywhere):
            self._wrong[route] = self._network.metadata.update_count
            self._network.metadata.request_update()

    def obstacle(self, route: Route) -> str | None:
        """Returns why it is not known where a route leads, for who waited in vain."""
        metadata = self._network.metadata
        if isinstance(route, Anywhere) or not metadata.update_count:
            return None
        if not metadata.nodes:
            return "brokers answer, but tell of no brokers, as one does that has not started wholly"
        if isinstance(route, Controller):
            node_id = metadata.controller_id
            who = "the cluster has no controller"
        elif isinstance(route, LeaderOf):
            topic, partition = route.partition
            leader = metadata.leader(topic, partition)
            node_id = -1 if leader is None else leader.node_id
            who = f"partition {partition} of topic {topic} has no leader"
        else:
            return None
        if node_id < 0:
            return f"{who}; there are brokers {sorted(metadata.nodes)}"
        if node_id not in metadata.nodes:
            return f"{who} among brokers {sorted(metadata.nodes)}: it is to be {node_id}"
        return None

    def _leader(self, route: LeaderOf) -> tuple[bool, int | None]:
        metadata = self._network.metadata
        topic, partition = route.partition
        leader = metadata.leader(topic, partition)
        if leader is not None and leader.node_id in metadata.nodes:
            return True, leader.node_id
        count = metadata.partition_count(topic)
        if count is not None and not 0 <= partition < count:
            raise error_of(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic} has {count} partitions, and so no partition {partition}",
            )
        code = metadata.topic_error(topic)
        if code and not isinstance(error_of(code), NetworkError) and self._is_settled(topic, code):
            known = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise error_of(code, f"the cluster has no topic {topic}" if known else None)
        return False, None

    def _is_settled(self, topic: str, code: int) -> bool:
        """Whether a topic's error is believed: at once, or where it was told a few times."""
        if not getattr(error_of(code), "retriable", False):
            return True
        lookups, seen = self._unknown.get(topic, (0, -1))
        if seen != self._network.metadata.update_count:
            lookups, seen = lookups + 1, self._network.metadata.update_count
            self._unknown[topic] = lookups, seen
        return lookups >= _MOST_LOOKUPS

    def _coordinator(self, route: CoordinatorOf, now_ms: int) -> tuple[bool, int | None]:
        node_id = self._coordinators.get(route)
        if node_id is None and route not in self._asked:
            self._asked.add(route)
            fields = {
                "key": route.key,
                "key_type": route.key_type.value,
                "coordinator_keys": [route.key],
            }

            def answered(_call: Call, response: Any, at_ms: int) -> None:
                self._asked.discard(route)
                found = response.coordinators[0] if response.coordinators else response
                error = None
                if found.error_code:
                    error = error_of(found.error_code, found.error_message)
                else:
                    node = Node(found.node_id, found.host, found.port)
                    self._network.metadata.learn_nodes([node])
                    self._coordinators[route] = found.node_id
                self._on_answer(route, error, at_ms)

            def failed(_call: Call, error: Exception, at_ms: int) -> None:
                self._asked.discard(route)
                self._on_answer(route, _typed(error), at_ms)

            versions = range(1, 7) if route.key_type.value else None
            call = Call(FindCoordinatorRequest, fields, answered, failed, versions=versions)
            self._network.send(ANY_NODE, call, now_ms)
        return node_id is not None, node_id


def _typed(error: Exception) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    wrapped = NetworkError(str(error))
    wrapped.__cause__ = error
    return wrapped

"""Calls about the cluster itself, and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.operation import Anywhere, Outcome, Single
from ottla.client.errors import error_of
from ottla.client.network.metadata import Node
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.client.admin.operation import Route
    from ottla.protocol.wire import Message

__all__ = [
    "ClusterDescription",
    "DescribeCluster",
    "DescribeFeatures",
    "Feature",
    "FeaturesDescription",
]


class ClusterDescription(NamedTuple):
    """A cluster.

    Attributes:
        cluster_id: its name for itself; ``None`` where a broker does not tell.
        controller_id: the broker that takes changes; -1 where there is none for the moment.
        nodes: the brokers.
    """

    cluster_id: str | None
    controller_id: int
    nodes: tuple[Node, ...]


class Feature(NamedTuple):
    """The levels of a feature.

    Attributes:
        supported: those that a broker can have, from and to.
        level: what the cluster has agreed on; 0 for none.
    """

    supported: tuple[int, int]
    level: int


class FeaturesDescription(NamedTuple):
    """The features of a cluster, as ``transaction.version``.

    Attributes:
        features: levels by name.
        finalized_epoch: how often what was agreed on has changed; -1 where that is not known.
    """

    features: Mapping[str, Feature]
    finalized_epoch: int


class DescribeCluster(Single[None, ClusterDescription]):
    """Describes the cluster."""

    name = "describe_cluster"

    def __init__(self) -> None:
        self._is_old = False

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[None]:
        return [None]

    def route(self, _key: None) -> Route:
        return Anywhere()

    def request(self, _key: None) -> tuple[type[Message], range | None]:
        return (MetadataRequest, range(1, 14)) if self._is_old else (DescribeClusterRequest, None)

    def fields(self, _keys: Sequence[None]) -> dict[str, Any]:
        return {"topics": []}

    def ask_otherwise(self, _keys: Sequence[None]) -> bool:
        was_old, self._is_old = self._is_old, True
        return not was_old

    def read(self, _keys: Sequence[None], response: Any) -> Iterator[tuple[None, Outcome]]:
        yield None, error_of(response.error_code) if response.error_code else response

    def value(self, outcomes: dict[None, Any]) -> ClusterDescription:
        told = outcomes[None]
        nodes = [
            Node(one.node_id if self._is_old else one.broker_id, one.host, one.port, one.rack)
            for one in told.brokers
        ]
        return ClusterDescription(told.cluster_id, told.controller_id, tuple(sorted(nodes)))


class DescribeFeatures(Single[None, FeaturesDescription]):
    """Describes features, as one broker tells them."""

    name = "describe_features"

    def __init__(self, software_name: str, software_version: str) -> None:
        self._fields = {
            "client_software_name": software_name,
            "client_software_version": software_version,
        }

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[None]:
        return [None]

    def route(self, _key: None) -> Route:
        return Anywhere()

    def request(self, _key: None) -> tuple[type[Message], range | None]:
        return ApiVersionsRequest, range(3, 5)

    def fields(self, _keys: Sequence[None]) -> dict[str, Any]:
        return self._fields

    def read(self, _keys: Sequence[None], response: Any) -> Iterator[tuple[None, Outcome]]:
        yield None, error_of(response.error_code) if response.error_code else response

    def value(self, outcomes: dict[None, Any]) -> FeaturesDescription:
        told = outcomes[None]
        levels = {one.name: one.max_version_level for one in told.finalized_features}
        features = {
            one.name: Feature((one.min_version, one.max_version), levels.get(one.name, 0))
            for one in told.supported_features
        }
        return FeaturesDescription(features, told.finalized_features_epoch)

"""The records that a state of the cluster amounts to, in the order of Kafka's own snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.features import METADATA_VERSION
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.metadata_record import record_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.data.cluster_state import ClusterState
    from ottla.protocol.wire import Message

__all__ = ["values_of"]

_NOBODY: Final = -1


def values_of(state: ClusterState, directory_id: bytes) -> Iterator[bytes]:
    """Yields the values of records from which the same state follows.

    Args:
        state: which is wholly known.
        directory_id: of the directory that all partitions are in.
    """
    for record in _features(state):
        yield record_bytes(record)
    yield from state.carried
    for record in (*_topics(state, directory_id), *_others(state)):
        yield record_bytes(record, state.record_version(type(record)))


def _features(state: ClusterState) -> Iterator[Message]:
    # What follows is read by the level of the metadata.
    for name in sorted(state.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield layouts.FeatureLevelRecord(name=name, feature_level=state.features[name])


def _topics(state: ClusterState, directory_id: bytes) -> Iterator[Message]:
    has_directories = state.record_version(layouts.PartitionRecord) > 0
    for topic in state.topics.values():
        yield layouts.TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in sorted(topic.partitions.items()):
            replicas = [*partition.replicas]
            yield layouts.PartitionRecord(
                partition_id=index,
                topic_id=topic.topic_id,
                replicas=replicas,
                isr=replicas,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=[directory_id] * len(replicas) if has_directories else [],
            )


def _others(state: ClusterState) -> Iterator[Message]:
    for (kind, resource), texts in state.configs.items():
        for name, text in texts.items():
            yield layouts.ConfigRecord(
                resource_type=kind, resource_name=resource, name=name, value=text
            )
    for entity, values in state.quotas.items():
        parts = [
            layouts.EntityData(entity_type=entity_type, entity_name=name)
            for entity_type, name in entity
        ]
        for key, value in values.items():
            yield layouts.ClientQuotaRecord(entity=parts, key=key, value=value)
    if state.next_producer_id:
        yield layouts.ProducerIdsRecord(broker_id=_NOBODY, next_producer_id=state.next_producer_id)
    yield from state.rules.values()
    yield from state.credentials.values()

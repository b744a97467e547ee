"""The group coordinator of a broker: its settings, and its log on the data plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.config import GroupConfig
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.state import State
    from ottla.broker.topics import Topics
    from ottla.records import VerificationGuard

__all__ = ["group_config", "group_coordinator"]

_READ_BYTES = 1 << 20


def group_config(config: BrokerConfig) -> GroupConfig:
    """Returns what the settings of a broker say of groups."""
    defaults = GroupConfig()
    numbers = {
        field: config.number(field.replace("_", "."))
        for field in (
            "group_initial_rebalance_delay_ms",
            "group_min_session_timeout_ms",
            "group_max_session_timeout_ms",
            "group_max_size",
            "group_consumer_session_timeout_ms",
            "group_consumer_heartbeat_interval_ms",
            "group_consumer_max_size",
            "offset_metadata_max_bytes",
            "offsets_retention_minutes",
            "offsets_retention_check_interval_ms",
            "offsets_topic_num_partitions",
        )
    }
    return defaults._replace(
        **numbers,
        group_consumer_assignors=config.names("group.consumer.assignors"),
        group_consumer_migration_policy=config.text("group.consumer.migration.policy").lower(),
    )


def group_coordinator(state: State, topics: Topics, now_ms: int) -> GroupCoordinator:
    """Returns a coordinator with everything that the partitions of `__consumer_offsets` hold."""

    def append(partition: int, records: bytes, now_ms: int, guard: VerificationGuard | None) -> int:
        topic = topics.internal(CONSUMER_OFFSETS, now_ms)
        handle = topic.partitions[partition].handle
        try:
            verdict = state.plane.append(handle, records, now_ms=now_ms, guard=guard)
        except KafkaError as error:
            return error.error_code
        if not verdict.error:
            state.moved((handle,))
        return verdict.error

    config = group_config(state.config)
    topic = state.image.topics.get(CONSUMER_OFFSETS)
    if topic is not None:
        # It was created when the setting may have been another.
        config = config._replace(offsets_topic_num_partitions=len(topic.partitions))
    coordinator = GroupCoordinator(
        config,
        waiting=state.waiting,
        image=lambda: state.image,
        random_bits=state.random.getrandbits,
        append=append,
    )
    for partition in () if topic is None else topic.partitions:
        offset, _, _, end_offset = state.plane.offsets(partition.handle)
        while offset < end_offset:
            data = state.plane.read(partition.handle, offset, _READ_BYTES)
            if not data:
                break
            offset = coordinator.load(partition.partition_index, data, now_ms)
    coordinator.resume(now_ms)
    return coordinator

"""The group coordinator of a broker: its settings, and its log on the data plane."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ottla.broker.coordinator_log import append_to_log, read_whole_log
from ottla.broker.groups.config import GroupConfig
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.image import Partition, Topic
    from ottla.broker.state import State
    from ottla.broker.topics import Topics
    from ottla.records import VerificationGuard

__all__ = ["BrokerGroups", "group_config"]

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


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


class _Settings:
    """The settings of groups, read from those of a broker when these have changed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._read: BrokerConfig | None = None
        self._config = GroupConfig()

    def __call__(self) -> GroupConfig:
        if self._read is not self._state.config:
            self._read = self._state.config
            self._config = group_config(self._read)
        return self._config


class BrokerGroups(GroupCoordinator):
    """The coordinator of a broker: it leads what there is of `__consumer_offsets`."""

    def __init__(self, state: State, topics: Topics, now_ms: int) -> None:
        super().__init__(
            _Settings(state),
            waiting=state.waiting,
            image=lambda: state.image,
            random_bits=state.random.getrandbits,
            append=self._append_batch,
            settings_of=lambda group_id: state.group_settings.get(group_id, _NO_SETTINGS),
        )
        self._state = state
        self._topics = topics
        topics.own(CONSUMER_OFFSETS, self, now_ms)

    def ensure_log(self, now_ms: int) -> None:
        """Leads `__consumer_offsets`, which is created if need be."""
        self.take_over(self._topics.internal(CONSUMER_OFFSETS, now_ms), now_ms)

    def take_over(self, topic: Topic, now_ms: int) -> None:
        """Leads the partitions of the log that the broker leads, with what they hold."""
        taken = self.partitions.to_lead(topic, self._state.node_id)
        for partition in taken:
            self.partitions.lead(partition.partition_index, partition.leader_epoch)
            try:
                self._load(partition, now_ms)
            except OttlaError as error:
                # It cannot be read: its groups have no coordinator until it can.
                self.give_up(partition.partition_index)
                self.partitions.unreadable[partition.partition_index] = str(error)
        if taken:
            self.resume(now_ms)

    def resign(self) -> None:
        """Leads nothing: the log is gone."""
        for partition in self.partitions.led():
            self.give_up(partition)

    def _load(self, partition: Partition, now_ms: int) -> None:
        for data in read_whole_log(self._state.plane, partition.handle):
            self.load(partition.partition_index, data, now_ms)

    def _append_batch(
        self, index: int, records: bytes, now_ms: int, guard: VerificationGuard | None
    ) -> int:
        place = CONSUMER_OFFSETS, index
        return append_to_log(self._state, place, records, now_ms, give_up=self.give_up, guard=guard)

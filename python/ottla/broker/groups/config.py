"""Settings of the group coordinator, by Kafka's names and with its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_MINUTE_MS = 60_000


class GroupConfig(NamedTuple):
    """What a broker's configuration says of groups; `group.max.size` is `group_max_size`."""

    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 30 * _MINUTE_MS
    group_max_size: int = 2**31 - 1
    # How long a new member may wait for its first generation; not to be set in Kafka either.
    group_new_member_join_timeout_ms: int = 5 * _MINUTE_MS
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    # How long what a regular expression matched is kept while no topic changes.
    group_consumer_regex_refresh_interval_ms: int = 10 * _MINUTE_MS
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 10 * _MINUTE_MS
    offsets_topic_num_partitions: int = 50

    def of_group(self, settings: Mapping[str, str]) -> GroupConfig:
        """Returns what holds for a group that has settings of its own."""
        if not settings:
            return self
        session_ms = settings.get("consumer.session.timeout.ms")
        interval_ms = settings.get("consumer.heartbeat.interval.ms")
        return self._replace(
            group_consumer_session_timeout_ms=int(
                session_ms or self.group_consumer_session_timeout_ms
            ),
            group_consumer_heartbeat_interval_ms=int(
                interval_ms or self.group_consumer_heartbeat_interval_ms
            ),
        )

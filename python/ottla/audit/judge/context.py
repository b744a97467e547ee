"""What is known about a partition beside its segments: checkpoints, epochs, its topic's settings.

The engine judges gaps, epochs and log starts by it. A file that cannot be read gives nothing here;
that it cannot be read is a finding of `side_files`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ottla.logs.names import CLEANER_OFFSETS, LOG_START_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.plan.plan import Log
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.inventory import FileEntry

TopicConfigs = dict[str, dict[str, str]]
"""Settings of topics, as `kafka-configs.sh --describe` names them, by a pattern of topics."""


class Surroundings:
    """The checkpoints of the log directories, and what was said about topics."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.checkpoints = checkpoints
        self._topic_configs = topic_configs or {}

    def of(
        self, log: Log, first: FileEntry, leader_epochs: Sequence[tuple[int, int]]
    ) -> dict[str, Any]:
        """Arguments of the engine's `merge_partition` for files of a log from `first` on."""
        partition = log.partition
        arguments: dict[str, Any] = {
            "is_consumer_offsets": log.is_consumer_offsets,
            "orphans": list(log.orphans),
        }
        if partition is None or partition.topic is None:
            return arguments
        config = self._topic_config(partition.topic)
        is_live = first.kind == "segment" and first.state == "live"
        heads = partition.live_base_offsets[:1]
        return arguments | {
            "topic": partition.topic,
            "log_start_offset": self.checkpoints.offset(partition, LOG_START_OFFSETS),
            "first_dirty_offset": self.checkpoints.offset(partition, CLEANER_OFFSETS),
            "leader_epochs": leader_epochs if is_live else [],
            "cleanup_policy": config.get("cleanup.policy"),
            "remote_storage": _truth(config.get("remote.storage.enable")),
            "is_head": is_live and heads == (first.base_offset,),
        }

    def _topic_config(self, topic: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for pattern, config in self._topic_configs.items():
            if fnmatchcase(topic, pattern):
                found.update(config)
        return found


def parse_topic_config(text: str) -> tuple[str, str, str]:
    """Topic or pattern, key and value of ``TOPIC:KEY=VALUE``.

    >>> parse_topic_config("orders:cleanup.policy=compact")
    ('orders', 'cleanup.policy', 'compact')

    Raises:
        ValueError: it is not of that form.
    """
    topic, colon, setting = text.partition(":")
    key, equals, value = setting.partition("=")
    if not (topic and colon and key and equals):
        raise ValueError(f"{text!r} is not TOPIC:KEY=VALUE, as in orders:cleanup.policy=compact")
    return topic, key.strip(), value.strip()


def _truth(value: str | None) -> bool | None:
    return None if value is None else value.lower() == "true"

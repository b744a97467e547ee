"""What is known beside the files of a log: checkpoints of log directories, settings of topics.

The engine explains gaps and log starts by them. A file that cannot be read has nothing here; why it
cannot is a finding of `side_files`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.logs.checkpoints import Checkpoints

TopicConfigs = dict[str, dict[str, str]]
"""Settings of topics, as `kafka-configs.sh --describe` names them, by a pattern of topics."""


class Surroundings:
    """The checkpoints of log directories, and the settings of topics that were given."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.checkpoints = checkpoints
        self._topic_configs = topic_configs or {}

    def topic_config(self, topic: str) -> dict[str, str]:
        """The settings of a topic, as far as they are known."""
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

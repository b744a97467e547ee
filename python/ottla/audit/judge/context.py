"""What is known besides the files of a log: checkpoints, and the configuration of topics.

The engine uses it to explain gaps and log starts. A checkpoint that cannot be read has no values
here; the reason is a finding of `side_files`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.logs.checkpoints import Checkpoints

TopicConfigs = dict[str, dict[str, str]]
"""Configuration of topics by pattern, with the keys of `kafka-configs.sh --describe`."""


class Surroundings:
    """The checkpoints of log directories, and the given configuration of topics."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.checkpoints = checkpoints
        self._topic_configs = topic_configs or {}

    def topic_config(self, topic: str) -> dict[str, str]:
        """Returns the configuration of a topic, as far as it is known."""
        found: dict[str, str] = {}
        for pattern, config in self._topic_configs.items():
            if fnmatchcase(topic, pattern):
                found.update(config)
        return found


def parse_topic_config(text: str) -> tuple[str, str, str]:
    """Parses ``TOPIC:KEY=VALUE`` into topic or pattern, key and value.

    >>> parse_topic_config("orders:cleanup.policy=compact")
    ('orders', 'cleanup.policy', 'compact')

    Raises:
        ValueError: the text does not have that form.
    """
    topic, colon, setting = text.partition(":")
    key, equals, value = setting.partition("=")
    if not (topic and colon and key and equals):
        raise ValueError(f"{text!r} is not TOPIC:KEY=VALUE, such as orders:cleanup.policy=compact")
    return topic, key.strip(), value.strip()

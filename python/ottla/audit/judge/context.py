"""What is known besides the files of a log: checkpoints, and the configuration of topics.

The engine uses it to explain gaps and log starts. A checkpoint that cannot be read has no values
here; the reason is a finding of `side_files`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.logs.checkpoints import Checkpoints

TopicConfigs = dict[str, dict[str, str]]
"""Configuration of topics by pattern, with the keys of `kafka-configs.sh --describe`."""


_MAX_DIGITS = 18
"""Of a number that an int64 holds."""


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


class TopicSettings(TypedDict, total=False):
    """What the engine takes of the configuration of a topic, as far as it is known."""

    cleanup_policy: str | None
    remote_storage: bool | None
    max_message_bytes: int | None
    is_preallocated: bool | None


def settings_of(config: Mapping[str, str]) -> TopicSettings:
    """Returns what the engine takes of the configuration of a topic."""
    if not config:
        return {}
    return {
        "cleanup_policy": config.get("cleanup.policy"),
        "remote_storage": _bool(config.get("remote.storage.enable")),
        "max_message_bytes": _count(config.get("max.message.bytes")),
        "is_preallocated": _bool(config.get("preallocate")),
    }


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


def _count(value: str | None) -> int | None:
    """Returns a number of bytes; None if there is none, or it is none."""
    if value is None or not (value.isascii() and value.isdigit()) or len(value) > _MAX_DIGITS:
        return None
    return int(value)


def _bool(value: str | None) -> bool | None:
    return None if value is None else value.lower() == "true"

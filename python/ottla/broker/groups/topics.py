"""What groups need to know of topics: names, ids, numbers of partitions."""

from collections.abc import Mapping
from typing import NamedTuple


class TopicPartitions(NamedTuple):
    """A topic of the cluster."""

    topic_id: bytes
    partition_count: int


class Topics:
    """The topics of one moment, which do not change."""

    __slots__ = ("_names", "by_name")

    def __init__(self, by_name: Mapping[str, TopicPartitions]) -> None:
        self.by_name = by_name
        self._names: dict[bytes, str] | None = None

    def name_of(self, topic_id: bytes) -> str | None:
        """Returns the name of a topic by its id."""
        if self._names is None:
            self._names = {topic.topic_id: name for name, topic in self.by_name.items()}
        return self._names.get(topic_id)

    def has(self, name: str, partition: int) -> bool:
        """Whether there is a partition."""
        topic = self.by_name.get(name)
        return topic is not None and 0 <= partition < topic.partition_count


NO_TOPICS = Topics({})

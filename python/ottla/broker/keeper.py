"""Where a broker keeps what is no record of a topic: topics, settings, rules, credentials, quotas.

A broker in memory keeps them nowhere, which is this class. One with a directory has a
`ottla.broker.data.keeper.MetadataKeeper`, which knows what was kept before, and writes each change
before it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.broker.access_rule import AccessRule
    from ottla.broker.features import Feature
    from ottla.broker.image import Topic
    from ottla.broker.sasl.scram_credential import ScramCredential

__all__ = ["Entity", "Keeper", "KeptPartition", "KeptTopic", "MetadataPosition"]

Entity = tuple[tuple[str, "str | None"], ...]
"""Whom a client quota is for: types and names, by type."""


class KeptPartition(NamedTuple):
    """A partition as it was kept, with the epochs of this start."""

    partition_index: int
    leader_epoch: int
    partition_epoch: int


class KeptTopic(NamedTuple):
    """A topic as it was kept."""

    name: str
    topic_id: bytes
    partitions: tuple[KeptPartition, ...]
    configs: Mapping[str, str]


class MetadataPosition(NamedTuple):
    """How far the log of the controller is.

    Attributes:
        leader_epoch: of its term.
        end_offset: where its next record goes; everything before it is on the disk.
        directory_id: of the directory that it is in, none in memory.
    """

    leader_epoch: int
    end_offset: int
    directory_id: bytes


class Keeper:
    """Keeps nothing, and knows of nothing that was kept.

    Whatever changes something tells it first. A change that cannot be kept raises `KafkaError`, and
    has not happened.
    """

    # What was kept.

    def topics(self) -> Sequence[KeptTopic]:
        """Topics, by name."""
        return ()

    def broker_settings(self) -> Mapping[str, Mapping[str, str]]:
        """Settings that clients have changed of the broker, by its id, and of all, by no name."""
        return {}

    def group_settings(self) -> Mapping[str, Mapping[str, str]]:
        """Settings of groups, by group."""
        return {}

    def rules(self) -> Iterable[AccessRule]:
        """Access rules."""
        return ()

    def credentials(self) -> Iterable[tuple[str, int, ScramCredential]]:
        """Users, mechanisms, and their credentials."""
        return ()

    def quotas(self) -> Mapping[Entity, Mapping[str, float]]:
        """Client quotas by entity."""
        return {}

    def features(self, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        """Returns features with the levels that are in force."""
        return features

    def metadata_position(self) -> MetadataPosition:
        """How far the log of the controller is; in memory nothing is ever in it."""
        return MetadataPosition(1, 0, bytes(16))

    # What changes.

    def add_topic(self, topic: Topic) -> None:
        """A topic is created."""

    def add_partitions(self, topic: Topic, first_index: int) -> None:
        """A topic gets partitions from an index on."""

    def remove_topic(self, topic: Topic) -> None:
        """A topic is deleted."""

    def set_topic_configs(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """The settings of a topic are replaced."""

    def set_broker_settings(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """What clients have changed of a broker, or of all by no name, is replaced."""

    def set_group_settings(
        self, group: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """The settings of a group are replaced."""

    def set_features(self, changed: Iterable[Feature]) -> None:
        """Features get other levels."""

    def add_rule(self, rule: AccessRule) -> None:
        """An access rule is added."""

    def remove_rule(self, rule: AccessRule) -> None:
        """An access rule is removed."""

    def set_credential(self, user: str, mechanism: int, credential: ScramCredential) -> None:
        """A credential is set or replaced."""

    def remove_credential(self, user: str, mechanism: int) -> None:
        """A credential is deleted."""

    def set_quotas(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Quotas of an entity are set, or removed by `None`."""

    # Producer ids.

    def producer_id_allocator(self) -> Callable[[], int] | None:
        """Returns what gives out blocks of producer ids for good; `None` to count from 0."""
        return None

"""Calls about configurations, and what they return."""

from __future__ import annotations

from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.arguments import each_of
from ottla.client.admin.operation import Anywhere, ByKey, OnNode, Outcome
from ottla.client.errors import IllegalArgumentError, error_of
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.client.admin.operation import Route
    from ottla.client.network.metadata import Node
    from ottla.protocol.wire import Message

__all__ = [
    "AlterConfigs",
    "AlteredConfigs",
    "ConfigChange",
    "ConfigChangeKind",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "DescribeConfigs",
    "DescribedConfigs",
    "ResourceType",
]


class ResourceType(Enum):
    """What has a configuration, by Kafka's number."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(Enum):
    """Where a value comes from, by Kafka's number."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigChangeKind(Enum):
    """What a change does, by Kafka's number; the last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """Something that has a configuration.

    Attributes:
        kind: what it is.
        name: of the topic or group; the id of a broker, or "" for the defaults of all brokers.
    """

    kind: ResourceType
    name: str


class ConfigEntry(NamedTuple):
    """An option and its value.

    Attributes:
        name: of the option.
        value: of it; ``None`` where it is sensitive.
        source: where the value comes from.
        is_read_only: whether it cannot be changed while the broker runs.
        is_sensitive: whether it is a secret.
        documentation: what it is for, where that was asked for.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None = None


class DescribedConfigs(NamedTuple):
    """The configuration of a resource, or why it is not told."""

    resource: ConfigResource
    entries: Mapping[str, ConfigEntry] = {}
    error: Exception | None = None


class AlteredConfigs(NamedTuple):
    """A resource whose configuration was changed, or why not."""

    resource: ConfigResource
    error: Exception | None = None


class ConfigChange(NamedTuple):
    """A change of one option; without a value it takes its default again."""

    name: str
    value: str | None = None
    kind: ConfigChangeKind = ConfigChangeKind.SET


_FINAL = frozenset({int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})


def _route(resource: ConfigResource) -> Route:
    """A broker tells and changes its own; the rest is anybody's."""
    if resource.kind in {ResourceType.BROKER, ResourceType.BROKER_LOGGER} and resource.name:
        if not (resource.name.isascii() and resource.name.isdecimal()):
            raise IllegalArgumentError(
                f"a broker is named by its id, a number; found {resource.name!r}"
            )
        return OnNode(int(resource.name))
    return Anywhere()


_TYPES = {kind.value: kind for kind in ResourceType}
_SOURCES = {source.value: source for source in ConfigSource}


def _resource(one: Any) -> ConfigResource | None:
    kind = _TYPES.get(one.resource_type)
    return None if kind is None else ConfigResource(kind, one.resource_name)


class DescribeConfigs(ByKey[ConfigResource, DescribedConfigs]):
    """Tells configurations."""

    name = "describe_configs"
    final = _FINAL

    def __init__(self, resources: Iterable[ConfigResource], *, include_documentation: bool) -> None:
        wanted = each_of(resources, "resources", ConfigResource)
        self._routes = {resource: _route(resource) for resource in wanted}
        self._include_documentation = include_documentation

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[ConfigResource]:
        return list(self._routes)

    def route(self, key: ConfigResource) -> Route:
        return self._routes[key]

    def request(self, _key: ConfigResource) -> tuple[type[Message], range | None]:
        return DescribeConfigsRequest, range(1, 5)

    def fields(self, keys: Sequence[ConfigResource]) -> dict[str, Any]:
        return {
            "resources": [
                DescribeConfigsResource(
                    resource_type=one.kind.value, resource_name=one.name, configuration_keys=None
                )
                for one in keys
            ],
            "include_documentation": self._include_documentation,
        }

    def read(
        self, _keys: Sequence[ConfigResource], response: Any
    ) -> Iterator[tuple[ConfigResource, Outcome]]:
        for one in response.results:
            resource = _resource(one)
            if resource is None:
                continue
            if one.error_code:
                yield resource, error_of(one.error_code, one.error_message)
            else:
                entries = {each.name: _entry(each) for each in one.configs}
                yield resource, DescribedConfigs(resource, entries)

    def failed(self, key: ConfigResource, error: Exception) -> DescribedConfigs:
        return DescribedConfigs(key, error=error)


def _entry(one: Any) -> ConfigEntry:
    source = _SOURCES.get(one.config_source, ConfigSource.UNKNOWN)
    return ConfigEntry(
        one.name, one.value, source, one.read_only, one.is_sensitive, one.documentation or None
    )


class AlterConfigs(ByKey[ConfigResource, AlteredConfigs]):
    """Changes some options of configurations, and leaves the others."""

    name = "alter_configs"
    final = _FINAL

    def __init__(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange] | Mapping[str, str | None]],
        *,
        validate_only: bool,
    ) -> None:
        wanted = each_of(changes, "changes", ConfigResource)
        self._routes = {resource: _route(resource) for resource in wanted}
        self._changes = {resource: _changes(changes[resource]) for resource in wanted}
        self._validate_only = validate_only

    def keys(self, _nodes: Mapping[int, Node]) -> Sequence[ConfigResource]:
        return list(self._routes)

    def route(self, key: ConfigResource) -> Route:
        return self._routes[key]

    def request(self, _key: ConfigResource) -> tuple[type[Message], range | None]:
        return IncrementalAlterConfigsRequest, None

    def fields(self, keys: Sequence[ConfigResource]) -> dict[str, Any]:
        return {
            "resources": [
                AlterConfigsResource(
                    resource_type=one.kind.value,
                    resource_name=one.name,
                    configs=self._changes[one],
                )
                for one in keys
            ],
            "validate_only": self._validate_only,
        }

    def read(
        self, _keys: Sequence[ConfigResource], response: Any
    ) -> Iterator[tuple[ConfigResource, Outcome]]:
        for one in response.responses:
            resource = _resource(one)
            if resource is None:
                continue
            if one.error_code:
                yield resource, error_of(one.error_code, one.error_message)
            else:
                yield resource, AlteredConfigs(resource)

    def failed(self, key: ConfigResource, error: Exception) -> AlteredConfigs:
        return AlteredConfigs(key, error)


def _changes(given: Iterable[ConfigChange] | Mapping[str, str | None]) -> list[AlterableConfig]:
    changes = [ConfigChange(*pair) for pair in given.items()] if hasattr(given, "items") else given
    changes = each_of(changes, "changes", ConfigChange)
    for one in changes:
        value: Any = one.value
        if not isinstance(value, (str, NoneType)):
            raise IllegalArgumentError(
                f"{one.name} is to be {value!r}; expected a str, as brokers have every value, or "
                "None for the default"
            )
    return [
        AlterableConfig(
            name=one.name,
            config_operation=(ConfigChangeKind.DELETE if one.value is None else one.kind).value,
            value=one.value,
        )
        for one in changes
    ]

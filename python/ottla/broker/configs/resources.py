"""What DescribeConfigs, AlterConfigs and IncrementalAlterConfigs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.configs.broker import BROKER_SETTINGS
from ottla.broker.configs.group import (
    GROUP_SETTINGS,
    check_group,
    check_group_configs,
    set_of_group,
)
from ottla.broker.configs.setting import LIST, InvalidConfigError
from ottla.broker.configs.topic import TOPIC_SETTINGS, check_topic_configs
from ottla.broker.topics import TopicError, check_name
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.configs.setting import Setting
    from ottla.broker.image import Topic

__all__ = [
    "APPEND",
    "BROKER",
    "BROKER_LOGGER",
    "CLIENT_METRICS",
    "DELETE",
    "GROUP",
    "SET",
    "SUBTRACT",
    "TOPIC",
    "Described",
    "alter",
    "describe",
    "incremented",
]

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

_TOPIC_SOURCE = 1
_BROKER_SOURCE = 2
_STATIC_SOURCE = 4
_DEFAULT_SOURCE = 5
_GROUP_SOURCE = 8


class Described(NamedTuple):
    """A setting as it is described.

    Attributes:
        setting: which.
        value: in force.
        source: where the value comes from, by Kafka's number.
        synonyms: name, value and source of each place where it may be set, the one in force first.
    """

    setting: Setting
    value: str
    source: int
    synonyms: tuple[tuple[str, str, int], ...]


def describe(broker: Broker, resource_type: int, name: str) -> list[Described]:
    """Returns all settings of a topic, a group or a broker.

    Raises:
        TopicError: there is no such resource.
    """
    if resource_type == TOPIC:
        topic = _topic(broker, name)
        return [_of_topic(broker, topic, setting) for setting in TOPIC_SETTINGS.values()]
    if resource_type == GROUP:
        check_group(name)
        return [_of_group(broker, name, setting) for setting in GROUP_SETTINGS.values()]
    _check_broker(broker, resource_type, name)
    return [_of_broker(broker, setting) for setting in BROKER_SETTINGS.values()]


def _topic(broker: Broker, name: str) -> Topic:
    check_name(name)
    topic = broker.image.topics.get(name)
    if topic is None:
        raise TopicError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    return topic


def _check_broker(broker: Broker, resource_type: int, name: str) -> None:
    if resource_type != BROKER:
        raise TopicError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource_type}")
    if name not in {"", str(broker.node_id)}:
        raise TopicError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}",
        )


def _of_topic(broker: Broker, topic: Topic, setting: Setting) -> Described:
    synonyms = []
    if setting.name in topic.configs:
        synonyms.append((setting.name, topic.configs[setting.name], _TOPIC_SOURCE))
    if setting.synonym:
        synonyms += _of_broker(broker, BROKER_SETTINGS[setting.synonym]).synonyms
    if not synonyms or synonyms[-1][2] != _DEFAULT_SOURCE:
        synonyms.append((setting.name, setting.default, _DEFAULT_SOURCE))
    _, value, source = synonyms[0]
    return Described(setting, value, source, tuple(synonyms))


def _of_broker(broker: Broker, setting: Setting) -> Described:
    synonyms = [(setting.name, setting.default, _DEFAULT_SOURCE)]
    if broker.config.is_set(setting.name):
        changed = setting.name in broker.changed_settings
        source = _BROKER_SOURCE if changed else _STATIC_SOURCE
        synonyms.insert(0, (setting.name, broker.config.text(setting.name), source))
    _, value, source = synonyms[0]
    return Described(setting, value, source, tuple(synonyms))


def _of_group(broker: Broker, group: str, setting: Setting) -> Described:
    synonyms = [*_of_broker(broker, BROKER_SETTINGS[setting.synonym]).synonyms]
    own = broker.group_settings.get(group, {}).get(setting.name)
    if own is not None:
        synonyms.insert(0, (setting.name, own, _GROUP_SOURCE))
    _, value, source = synonyms[0]
    return Described(setting, value, source, tuple(synonyms))


def incremented(
    broker: Broker, resource_type: int, name: str, changes: Sequence[tuple[str, int, str | None]]
) -> dict[str, str | None]:
    """Returns the settings of a resource after some were set, deleted, added to or taken from.

    Raises:
        TopicError: there is no such resource, or a change is not possible.
    """
    if resource_type == TOPIC:
        configs: dict[str, str | None] = dict(_topic(broker, name).configs)
        known: Mapping[str, Setting] = TOPIC_SETTINGS
    elif resource_type == GROUP:
        check_group(name)
        configs, known = dict(broker.group_settings.get(name, {})), GROUP_SETTINGS
    else:
        _check_broker(broker, resource_type, name)
        configs = {key: broker.config.text(key) for key in broker.changed_settings}
        known = BROKER_SETTINGS
    names = [change[0] for change in changes]
    for key, operation, value in changes:
        if names.count(key) > 1:
            raise TopicError(
                ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {key}"
            )
        if operation == DELETE:
            configs.pop(key, None)
            continue
        if value is None:
            raise TopicError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {key}")
        if operation == SET:
            configs[key] = value
            continue
        setting = known.get(key)
        if operation not in {APPEND, SUBTRACT} or setting is None or setting.type != LIST:
            raise TopicError(
                ErrorCode.INVALID_CONFIG if operation in {APPEND, SUBTRACT} else 42,
                f"Config value append is not allowed for config key: {key}"
                if operation in {APPEND, SUBTRACT}
                else f"Unknown operation type {operation} for {key}",
            )
        before = _texts(configs.get(key) or setting.default)
        given = _texts(value)
        after = (
            [*before, *(text for text in given if text not in before)]
            if operation == APPEND
            else [text for text in before if text not in given]
        )
        configs[key] = ",".join(after)
    return configs


def alter(
    broker: Broker,
    resource_type: int,
    name: str,
    configs: Mapping[str, str | None],
    *,
    validate_only: bool,
) -> None:
    """Replaces the settings of a topic or a group, or those of the broker that were changed.

    Raises:
        TopicError: there is no such resource, or a value is not allowed.
    """
    try:
        if resource_type == TOPIC:
            topic = _topic(broker, name)
            checked = check_topic_configs(configs)
            if not validate_only:
                broker.topics.configure(topic, checked)
            return
        if resource_type == GROUP:
            check_group(name)
            own = check_group_configs(configs, broker.config)
            if not validate_only:
                set_of_group(broker, name, own)
            return
        _check_broker(broker, resource_type, name)
        dropped = dict.fromkeys(set(broker.changed_settings) - set(configs))
        changed = broker.config.with_texts({**dropped, **configs})
    except InvalidConfigError as error:
        raise TopicError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not validate_only:
        before = {key: broker.config.text(key) for key in broker.changed_settings}
        broker.keeper.set_broker_settings(before, {key: changed.text(key) for key in configs})
        broker.config = changed
        broker.changed_settings = frozenset(configs)


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

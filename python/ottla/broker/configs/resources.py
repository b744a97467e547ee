"""What DescribeConfigs, AlterConfigs and IncrementalAlterConfigs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.broker import BROKER_SETTINGS
from ottla.broker.configs.broker_resource import (
    alter_broker,
    check_id,
    check_resource,
    describe_broker,
    described_setting,
)
from ottla.broker.configs.described import Described
from ottla.broker.configs.group import (
    GROUP_SETTINGS,
    check_group,
    check_group_configs,
    set_of_group,
)
from ottla.broker.configs.loggers import changed_levels
from ottla.broker.configs.setting import LIST, InvalidConfigError, Setting
from ottla.broker.configs.topic import TOPIC_SETTINGS, check_topic_configs
from ottla.broker.repeated import repeated
from ottla.broker.topics import TopicError, check_name
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.broker.broker import Broker
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
    "alter",
    "alter_increments",
    "describe",
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
_DEFAULT_SOURCE = 5
_LOGGER_SOURCE = 6
_GROUP_SOURCE = 8
_NO_TYPE = 0


def describe(broker: Broker, resource_type: int, name: str) -> list[Described]:
    """Returns all settings of a topic, a group or a broker, or the levels of its loggers.

    Raises:
        TopicError: there is no such resource.
    """
    if resource_type == TOPIC:
        topic = _topic(broker, name)
        return [_of_topic(broker, topic, setting) for setting in TOPIC_SETTINGS.values()]
    if resource_type == GROUP:
        check_group(name)
        return [_of_group(broker, name, setting) for setting in GROUP_SETTINGS.values()]
    if resource_type == BROKER:
        return describe_broker(broker, name)
    if resource_type == BROKER_LOGGER:
        if not name:
            raise TopicError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        check_id(broker, name, str(broker.node_id))
        return [
            Described(Setting(logger, _NO_TYPE, level), level, _LOGGER_SOURCE)
            for logger, level in broker.loggers.levels().items()
        ]
    raise _unknown_type(resource_type)


def _topic(broker: Broker, name: str) -> Topic:
    check_name(name)
    topic = broker.image.topics.get(name)
    if topic is None:
        raise TopicError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    return topic


def _unknown_type(resource_type: int) -> TopicError:
    return TopicError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _of_topic(broker: Broker, topic: Topic, setting: Setting) -> Described:
    synonyms = []
    if setting.name in topic.configs:
        synonyms.append((setting.name, topic.configs[setting.name], _TOPIC_SOURCE))
    if setting.synonym:
        synonyms += described_setting(broker, BROKER_SETTINGS[setting.synonym]).synonyms
    if not synonyms or synonyms[-1][2] != _DEFAULT_SOURCE:
        synonyms.append((setting.name, setting.default, _DEFAULT_SOURCE))
    _, value, source = synonyms[0]
    return Described(setting, value, source, tuple(synonyms))


def _of_group(broker: Broker, group: str, setting: Setting) -> Described:
    synonyms = [*described_setting(broker, BROKER_SETTINGS[setting.synonym]).synonyms]
    own = broker.group_settings.get(group, {}).get(setting.name)
    if own is not None:
        synonyms.insert(0, (setting.name, own, _GROUP_SOURCE))
    _, value, source = synonyms[0]
    return Described(setting, value, source, tuple(synonyms))


def _incremented(
    broker: Broker, resource_type: int, name: str, changes: Sequence[tuple[str, int, str | None]]
) -> dict[str, str | None]:
    """Returns the settings of a resource after some were set, deleted, added to or taken from."""
    if resource_type == TOPIC:
        configs: dict[str, str | None] = dict(_topic(broker, name).configs)
        known: Mapping[str, Setting] = TOPIC_SETTINGS
    elif resource_type == GROUP:
        check_group(name)
        configs, known = dict(broker.group_settings.get(name, {})), GROUP_SETTINGS
    elif resource_type == BROKER:
        check_resource(broker, name)
        configs, known = dict(broker.dynamic.of(name)), BROKER_SETTINGS
    else:
        raise _unknown_type(resource_type)
    twice = repeated(change[0] for change in changes)
    for key, operation, value in changes:
        if key in twice:
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
        if operation not in {APPEND, SUBTRACT}:
            why = f"Unknown operation type {operation} for {key}"
            raise TopicError(ErrorCode.INVALID_REQUEST, why)
        setting = known.get(key)
        if setting is None or setting.type != LIST:
            why = f"Config value append is not allowed for config key: {key}"
            raise TopicError(ErrorCode.INVALID_CONFIG, why)
        default = broker.dynamic.static.text(key) if resource_type == BROKER else setting.default
        before = _texts(configs.get(key) or default)
        given = _texts(value)
        after = (
            [*before, *(text for text in given if text not in before)]
            if operation == APPEND
            else [text for text in before if text not in given]
        )
        configs[key] = ",".join(after)
    return configs


def alter_increments(
    broker: Broker,
    resource_type: int,
    name: str,
    changes: Sequence[tuple[str, int, str | None]],
    *,
    validate_only: bool,
) -> None:
    """Sets, deletes, adds to or takes from settings of a resource; the others stay.

    Args:
        broker: whose they are.
        resource_type, name: of the resource.
        changes: name, operation and value of each.
        validate_only: whether nothing is changed.

    Raises:
        TopicError: there is no such resource, or a change is not possible.
    """
    if resource_type == BROKER_LOGGER:
        check_id(broker, name, str(broker.node_id))
        levels = changed_levels(broker.loggers, changes)
        if not validate_only:
            broker.loggers.replace(levels)
        return
    configs = _incremented(broker, resource_type, name, changes)
    alter(broker, resource_type, name, configs, validate_only=validate_only)


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
    except InvalidConfigError as error:
        raise TopicError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if resource_type != BROKER:
        raise _unknown_type(resource_type)
    alter_broker(broker, name, configs, validate_only=validate_only)


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

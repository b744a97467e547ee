"""The settings of a broker, as clients see and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.broker import BROKER_SETTINGS, BrokerConfig
from ottla.broker.configs.described import Described
from ottla.broker.configs.dynamic import ALL_BROKERS, check_dynamic, dynamic_setting
from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.topics import TopicError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.configs.setting import Setting

__all__ = ["alter_broker", "check_id", "check_resource", "describe_broker", "described_setting"]

_OWN: Final = 2
_OF_ALL: Final = 3
_STATIC: Final = 4
_DEFAULT: Final = 5
"""Where a value comes from, by Kafka's numbers."""


def check_id(broker: Broker, name: str, expected: str) -> None:
    """Refuses the name of another broker.

    Args:
        broker: this one.
        name: as a client has it.
        expected: what the refusal says of the name that there is.

    Raises:
        TopicError: with INVALID_REQUEST.
    """
    if name == str(broker.node_id):
        return
    why = f"Unexpected broker id, expected {expected}, but received {name}"
    if not name.removeprefix("-").isdecimal():
        why = f"Broker id must be an integer, but it is: {name}"
    raise TopicError(ErrorCode.INVALID_REQUEST, why)


def check_resource(broker: Broker, name: str) -> None:
    """Refuses what is neither this broker nor all of them.

    Raises:
        TopicError: with INVALID_REQUEST.
    """
    if name != ALL_BROKERS:
        check_id(broker, name, f"{broker.node_id} or empty string")


def describe_broker(broker: Broker, name: str) -> list[Described]:
    """Returns the settings of this broker, or those that were changed for all.

    Raises:
        TopicError: it is another broker.
    """
    check_resource(broker, name)
    dynamic = broker.dynamic
    if name == ALL_BROKERS:
        return [
            Described(setting, text, _OF_ALL, ((key, text, _OF_ALL),))
            for key, text in dynamic.of_all().items()
            for setting in [dynamic_setting(key)]
            if setting is not None
        ]
    of_listeners = [
        setting
        for key in dynamic.own()
        if key not in BROKER_SETTINGS
        for setting in [dynamic_setting(key)]
        if setting is not None
    ]
    every = (*BROKER_SETTINGS.values(), *of_listeners)
    return [described_setting(broker, setting) for setting in every]


def described_setting(broker: Broker, setting: Setting) -> Described:
    """Returns a setting of this broker, with the places where it may be set."""
    dynamic, name = broker.dynamic, setting.name
    synonyms = [
        (name, texts[name], source)
        for texts, source in ((dynamic.own(), _OWN), (dynamic.of_all(), _OF_ALL))
        if name in texts
    ]
    if dynamic.static.is_set(name):
        synonyms.append((name, dynamic.static.text(name), _STATIC))
    synonyms.append((name, setting.default, _DEFAULT))
    _, value, source = synonyms[0]
    is_read_only = dynamic_setting(name) is None
    return Described(setting, value, source, tuple(synonyms), is_read_only=is_read_only)


def alter_broker(
    broker: Broker, name: str, configs: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Replaces what was changed of this broker, or of all, and has it take effect.

    Raises:
        TopicError: it is another broker, or a setting may not be changed, or not to this.
    """
    check_resource(broker, name)
    settings = {key: text for key, text in configs.items() if text is not None}
    for key in configs.keys() - settings:
        raise TopicError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {key}")
    try:
        BrokerConfig(settings)
        check_dynamic(settings, is_of_all=name == ALL_BROKERS)
        changed = broker.dynamic.replaced(name, settings)
        config = changed.config()
    except InvalidConfigError as error:
        raise TopicError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if validate_only:
        return
    broker.keeper.set_broker_settings(name, broker.dynamic.of(name), settings)
    broker.dynamic, broker.config = changed, config
    broker.topics.take_defaults()
    for take in broker.settings_watchers:
        take(config)

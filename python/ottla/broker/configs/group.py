"""The settings of single groups, which go before those of the broker (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.setting import INT, InvalidConfigError, Setting, parse
from ottla.broker.topics import TopicError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.state import State

__all__ = [
    "GROUP_SETTINGS",
    "MAX_GROUPS_WITH_SETTINGS",
    "check_group",
    "check_group_configs",
    "set_of_group",
]

MAX_GROUPS_WITH_SETTINGS: Final = 10_000
"""Groups need not be there to have settings, so clients could make up any number of them."""

_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
GROUP_SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            _SESSION, INT, "45000", 1, synonym="group.consumer.session.timeout.ms",
            documentation="When a silent member of the group is removed.",
        ),
        Setting(
            _HEARTBEAT, INT, "5000", 1, synonym="group.consumer.heartbeat.interval.ms",
            documentation="How often a member of the group sends heartbeats.",
        ),
    )
}  # fmt: skip
"""By name. A group falls back to the broker's setting of the longer name."""


def check_group(name: str) -> None:
    """Refuses settings of no group in particular.

    Raises:
        TopicError: with INVALID_REQUEST.
    """
    if not name:
        raise TopicError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def check_group_configs(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """Returns the settings of a group that are set; `None` is the broker's.

    Raises:
        InvalidConfigError: a setting is not known, or is not within what the broker allows.
    """
    own = {name: text for name, text in configs.items() if text is not None}
    for name, text in own.items():
        if name not in GROUP_SETTINGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
        parse(GROUP_SETTINGS[name], text)
        kind = name.removeprefix("consumer.")
        least, most = f"group.consumer.min.{kind}", f"group.consumer.max.{kind}"
        if int(text) < broker.number(least):
            raise InvalidConfigError(f"{name} must be greater than or equal to {least}")
        if int(text) > broker.number(most):
            raise InvalidConfigError(f"{name} must be less than or equal to {most}")
    session_ms, heartbeat_ms = (
        int(own.get(name) or broker.text(GROUP_SETTINGS[name].synonym))
        for name in (_SESSION, _HEARTBEAT)
    )
    if own and session_ms <= heartbeat_ms:
        raise InvalidConfigError(f"{_SESSION} must be greater than {_HEARTBEAT}")
    return own


def set_of_group(broker: State, name: str, own: dict[str, str]) -> None:
    """Gives a group settings that are checked already.

    Raises:
        TopicError: with POLICY_VIOLATION, for one group too many.
    """
    known = broker.group_settings
    if own and name not in known and len(known) >= MAX_GROUPS_WITH_SETTINGS:
        message = f"{MAX_GROUPS_WITH_SETTINGS:,} groups have settings of their own already"
        raise TopicError(ErrorCode.POLICY_VIOLATION, message)
    broker.keeper.set_group_settings(name, known.get(name, {}), own)
    if own:
        known[name] = own
    else:
        known.pop(name, None)

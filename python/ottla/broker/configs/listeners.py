"""Listeners as Kafka's settings name them: where, what is advertised, and by which protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.configs.setting import InvalidConfigError

if TYPE_CHECKING:
    from ottla.broker.configs.broker import BrokerConfig

__all__ = ["Endpoint", "NamedListener", "named_listeners"]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MAX_PORT: Final = 65_535
_MAX_DIGITS: Final = 5
_ANY: Final = ("", "0.0.0.0", "::")  # noqa: S104 - names of every interface


class Endpoint(NamedTuple):
    """A name, and where it is."""

    name: str
    host: str
    port: int


class NamedListener(NamedTuple):
    """A listener.

    Attributes:
        endpoint: its name, and where to listen; an empty host is every interface.
        security_protocol: one of `PROTOCOLS`.
        advertised: host and port that clients are told, `None` for those of the endpoint.
    """

    endpoint: Endpoint
    security_protocol: str
    advertised: tuple[str, int] | None


def named_listeners(config: BrokerConfig, default: Endpoint) -> list[NamedListener]:
    """Returns the listeners that are set, without those of a controller.

    Args:
        default: the only one where none is set.

    Raises:
        InvalidConfigError: Kafka would refuse them.
    """
    endpoints = _endpoints(config, "listeners") or [default]
    protocols = _protocols(config)
    of_controller = config.names("controller.listener.names")
    names = [each.name for each in endpoints]
    taken: dict[tuple[str, int], str] = {}
    for each in endpoints:
        if names.count(each.name) > 1:
            raise _invalid("listeners", each.name, "Each listener must have a different name")
        other = taken.setdefault((each.host, each.port), each.name)
        if other != each.name and each.port:
            raise _invalid("listeners", each.name, f"It has the port of the listener {other}")
        if each.name not in protocols:
            why = f"listener.security.protocol.map has no protocol for it: {each.name}:SSL"
            raise _invalid("listeners", each.name, why)
    advertised = {each.name: each for each in _endpoints(config, "advertised.listeners")}
    for each in advertised.values():
        if each.name not in names and each.name not in of_controller:
            why = f"It is not among the listeners, which are {', '.join(names)}"
            raise _invalid("advertised.listeners", each.name, why)
        if each.host in _ANY:
            why = "Nobody can connect to every interface; give the name of this host"
            raise _invalid("advertised.listeners", each.name, why)
    found = [
        NamedListener(
            each,
            protocols[each.name],
            advertised[each.name][1:] if each.name in advertised else None,
        )
        for each in endpoints
        if each.name not in of_controller
    ]
    if not found:
        raise _invalid("listeners", ",".join(names), "All of them are of a controller")
    return found


def _invalid(setting: str, text: str, why: str) -> InvalidConfigError:
    return InvalidConfigError(f"Invalid value {text} for configuration {setting}: {why}")


def _protocols(config: BrokerConfig) -> dict[str, str]:
    setting = "listener.security.protocol.map"
    found = {}
    for text in config.names(setting):
        name, colon, protocol = text.partition(":")
        if not colon or not name.strip():
            raise _invalid(setting, text, "It is not NAME:PROTOCOL")
        if protocol.strip().upper() not in PROTOCOLS:
            raise _invalid(setting, text, f"A protocol is one of {', '.join(PROTOCOLS)}")
        found[name.strip().upper()] = protocol.strip().upper()
    return found


def _endpoints(config: BrokerConfig, setting: str) -> list[Endpoint]:
    return [_endpoint(setting, text) for text in config.names(setting)]


def _endpoint(setting: str, text: str) -> Endpoint:
    name, found, place = text.partition("://")
    host, colon, port = place.rpartition(":")
    if not (name and found and colon):
        raise _invalid(setting, text, "It is not NAME://host:port")
    if not (port.isascii() and port.isdigit() and len(port) <= _MAX_DIGITS):
        raise _invalid(setting, text, f"{port!r} is no port")
    if int(port) > _MAX_PORT:
        raise _invalid(setting, text, f"A port is from 0 to {_MAX_PORT}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _invalid(setting, text, "An address of IPv6 is in brackets")
    return Endpoint(name.upper(), host, int(port))

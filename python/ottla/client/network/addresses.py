"""Addresses of brokers as users write them."""

from __future__ import annotations

from typing import Final

from ottla.client.errors import InvalidConfigurationError

__all__ = ["MAX_PORT", "parse_address"]

MAX_PORT: Final = 65535


def parse_address(text: str) -> tuple[str, int]:
    """Returns the host and port of ``host:port`` or ``[address]:port``.

    Raises:
        InvalidConfigurationError: it is neither.

    >>> parse_address("broker-1:9092"), parse_address("[::1]:9092")
    (('broker-1', 9092), ('::1', 9092))
    """
    host, colon, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT
    if not colon or not host or not is_port or (":" in host and not is_bracketed):
        raise InvalidConfigurationError(
            f"bootstrap_servers has {text!r}, expected host:port, as broker-1:9092 or [::1]:9092"
        )
    return host, int(port)

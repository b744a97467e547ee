"""What clients are told to reach a broker for tests, user and certificate included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.options import Options

__all__ = ["librdkafka_config", "python_arguments"]

MECHANISM = "SCRAM-SHA-256"


def librdkafka_config(
    bootstrap_servers: str, options: Options, authority: str | None, user: str | None
) -> dict[str, Any]:
    """Returns settings of librdkafka."""
    found: dict[str, Any] = {"bootstrap.servers": bootstrap_servers}
    login = _login(options, user)
    if login is not None or authority is not None:
        found["security.protocol"] = options.security_protocol
    if login is not None:
        name, password = login
        found |= {
            "sasl.mechanism": MECHANISM,
            "sasl.username": name,
            "sasl.password": password,
        }
    if authority is not None:
        found["ssl.ca.location"] = authority
    return found


def python_arguments(
    bootstrap_servers: str, options: Options, authority: str | None, user: str | None
) -> dict[str, Any]:
    """Returns arguments of the clients of kafka-python and aiokafka."""
    found: dict[str, Any] = {"bootstrap_servers": bootstrap_servers}
    login = _login(options, user)
    if login is not None or authority is not None:
        found["security_protocol"] = options.security_protocol
    if login is not None:
        name, password = login
        found |= {
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": name,
            "sasl_plain_password": password,
        }
    if authority is not None:
        import ssl  # noqa: PLC0415 - it costs more than all of the engine

        found["ssl_context"] = ssl.create_default_context(cafile=authority)
    return found


def _login(options: Options, user: str | None) -> tuple[str, str] | None:
    """Returns a user and the password; nothing where nobody has to log in."""
    if user is None:
        return next(iter(options.users.items()), None)
    password = options.users.get(user)
    if password is None:
        known = ", ".join(options.users) or "none"
        raise ValueError(f"the broker has no user {user}: users are {known}")
    return user, password

"""The users in a login configuration of Java (JAAS), as Kafka's ``sasl.jaas.config`` has it.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="secret" user_admin="secret" user_alice="hers";

Options are names and values; each ``user_NAME`` is the password of a user. ``username`` and
``password`` are for brokers among themselves, and no user's.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.jaas import InvalidLoginError, login_module

__all__ = ["InvalidLoginError", "users_of"]

_USER: Final = "user_"


def users_of(text: str) -> dict[str, str]:
    """Returns passwords by user.

    Raises:
        InvalidLoginError: the text is none.
    """
    module = login_module(text)
    options = module.options if module is not None else {}
    return {
        name.removeprefix(_USER): value for name, value in options.items() if name.startswith(_USER)
    }

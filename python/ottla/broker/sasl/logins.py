"""The users that the settings of a broker name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.sasl.credentials import (
    MIN_ITERATIONS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Credentials,
    ScramCredential,
    salted_password,
)
from ottla.broker.sasl.jaas import users_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.keeper import Keeper
    from ottla.broker.state import Random

__all__ = ["credentials_of"]

_SALT_BYTES: Final = 16
_SCRAM: Final = {"SCRAM-SHA-256": SCRAM_SHA_256, "SCRAM-SHA-512": SCRAM_SHA_512}


def credentials_of(
    logins: Mapping[tuple[str, str], str], random: Random, keeper: Keeper | None = None
) -> Credentials:
    """Returns the users of login configurations, by listener and mechanism.

    Users of SCRAM are those of all listeners, as in Kafka, where a topic of the controller has
    them. There they are made before the first start; here a login configuration may name them, and
    has them from each start on, whatever the keeper kept.
    """
    of_listeners = {
        listener: users_of(text)
        for (listener, mechanism), text in logins.items()
        if listener and mechanism not in _SCRAM
    }
    found = Credentials(users_of(logins.get(("", ""), "")), of_listeners, keeper=keeper)
    for (_, mechanism), text in logins.items():
        number = _SCRAM.get(mechanism)
        if number is None:
            continue
        for user, password in users_of(text).items():
            salt = random.getrandbits(8 * _SALT_BYTES).to_bytes(_SALT_BYTES, "big")
            salted = salted_password(number, password, salt, MIN_ITERATIONS)
            credential = ScramCredential.of(number, salt, MIN_ITERATIONS, salted)
            found.set_scram(user, number, credential)
    return found

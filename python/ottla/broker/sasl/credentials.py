"""What the broker keeps to recognise users: passwords for PLAIN, salted keys for SCRAM (KIP-554).

A SCRAM credential does not tell its password, nor is it enough to log in by (RFC 5802).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.keeper import Keeper
from ottla.broker.sasl.scram_credential import (
    HASHES,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramCredential,
    salted_password,
)
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "HASHES",
    "MAX_CREDENTIALS",
    "MAX_ITERATIONS",
    "MIN_ITERATIONS",
    "SCRAM_SHA_256",
    "SCRAM_SHA_512",
    "Credentials",
    "ScramCredential",
    "salted_password",
]

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""What a client has to compute before it is in: no broker may ask for any amount of work."""

MAX_CREDENTIALS: Final = 100_000
"""Each takes some 500 bytes."""


class Credentials:
    """Users of a broker.

    Args:
        passwords: of PLAIN, by user.
        of_listeners: the same of listeners that have users of their own, by the listener's name in
            small letters; those of `passwords` are none of theirs.
        keeper: has the credentials to begin with, and is told of changes.
    """

    def __init__(
        self,
        passwords: Mapping[str, str] | None = None,
        of_listeners: Mapping[str, Mapping[str, str]] | None = None,
        *,
        keeper: Keeper | None = None,
    ) -> None:
        self._passwords = dict(passwords or {})
        self._keeper = keeper or Keeper()
        self._scram: dict[str, dict[int, ScramCredential]] = {}
        for user, mechanism, credential in self._keeper.credentials():
            self._scram.setdefault(user, {})[mechanism] = credential
        self._of_listeners: dict[str, Credentials] = {}
        for listener, own in (of_listeners or {}).items():
            view = self._of_listeners[listener] = Credentials(own, keeper=self._keeper)
            view._scram = self._scram

    def of_listener(self, listener: str) -> Credentials:
        """Returns the users that a listener lets in."""
        return self._of_listeners.get(listener.lower(), self)

    def has_password(self, user: str, password: str) -> bool:
        """Whether that is the user's password; takes as long for a wrong one of equal length."""
        import hmac  # noqa: PLC0415

        known = self._passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, user: str, mechanism: int) -> ScramCredential | None:
        """Returns a user's credential for a mechanism, `None` if there is none."""
        return self._scram.get(user, {}).get(mechanism)

    def scram_of(self, user: str) -> Mapping[int, ScramCredential]:
        """Returns a user's credentials by mechanism."""
        return self._scram.get(user, {})

    def scram_users(self) -> list[str]:
        """Returns all users that have a SCRAM credential, by name."""
        return sorted(self._scram)

    def check_new(
        self, user: str, mechanism: int, iterations: int, added: Collection[str] = ()
    ) -> tuple[int, str | None]:
        """Returns the error code and message of a credential that cannot be set (KIP-554).

        Args:
            user: whose it is.
            mechanism: Kafka's number of it.
            iterations: of its hash.
            added: users that have none yet, and get one before this is set.
        """
        if not user:
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty."
        if mechanism not in HASHES:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"Unknown SCRAM mechanism {mechanism}."
        if iterations < MIN_ITERATIONS:
            text = f"Too few iterations: {iterations}, at least {MIN_ITERATIONS} are needed."
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, text
        if iterations > MAX_ITERATIONS:
            text = f"Too many iterations: {iterations}, at most {MAX_ITERATIONS} are allowed."
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, text
        is_new = user not in self._scram and user not in added
        if is_new and len(self._scram) + len(added) >= MAX_CREDENTIALS:
            return ErrorCode.POLICY_VIOLATION, f"There are {MAX_CREDENTIALS} users already."
        return ErrorCode.NONE, None

    def set_scram(self, user: str, mechanism: int, credential: ScramCredential) -> None:
        """Sets or replaces a credential; sessions that began with the old one go on."""
        self._keeper.set_credential(user, mechanism, credential)
        self._scram.setdefault(user, {})[mechanism] = credential

    def delete_scram(self, user: str, mechanism: int) -> bool:
        """Deletes a credential; returns whether there was one."""
        of_user = self._scram.get(user, {})
        if mechanism in of_user:
            self._keeper.remove_credential(user, mechanism)
        found = of_user.pop(mechanism, None)
        if found is not None and not of_user:
            del self._scram[user]
        return found is not None

    def add_user(self, user: str, password: str, *, random_bytes: bytes) -> None:
        """Sets a password for every mechanism, with a salt that the caller has drawn."""
        self._passwords[user] = password
        for mechanism in HASHES:
            salted = salted_password(mechanism, password, random_bytes, MIN_ITERATIONS)
            credential = ScramCredential.of(mechanism, random_bytes, MIN_ITERATIONS, salted)
            self.set_scram(user, mechanism, credential)

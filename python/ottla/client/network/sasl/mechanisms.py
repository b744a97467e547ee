"""The client's side of the mechanisms: the broker's tokens in, the client's out.

PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628) say all in their first token. SCRAM (RFC 5802) proves
that both sides know the password, without sending it:

    client-first   n,,n=user,r=nonce
    server-first   r=nonce+theirs,s=salt,i=iterations
    client-final   c=biws,r=nonce+theirs,p=proof
    server-final   v=signature
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final, Protocol

from ottla.client.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.settings import NetworkSettings

__all__ = ["Mechanism", "OAuthBearer", "Plain", "Scram", "new_mechanism"]

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_MIN_ITERATIONS: Final = 4096
"""Fewer would let a false broker guess the password from the proof."""

_MAX_ITERATIONS: Final = 1_000_000
"""More would keep the client busy for seconds; Kafka's own limit is 16384."""

_NONCE_BYTES: Final = 24
_CHANNEL_BINDING: Final = "biws"
"""``n,,`` in base64: there is none."""


class Mechanism(Protocol):
    """One login under way."""

    def first(self) -> bytes:
        """Returns the first token."""

    def respond(self, token: bytes) -> bytes | None:
        """Returns the answer to the broker's next token; ``None`` where nothing is to follow.

        Raises:
            AuthenticationError: the broker is not who it should be, or asks for what it may not.
        """


class Plain:
    """User and password in one token."""

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """Returns the only token."""
        return self._token

    def respond(self, token: bytes) -> bytes | None:
        """Returns nothing: the broker's token is empty."""
        del token
        return None


class OAuthBearer:
    """A token that somebody else has issued."""

    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        """Returns the only token."""
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def respond(self, token: bytes) -> bytes | None:
        """Returns what lets the broker refuse a token that it has called wrong."""
        return b"\x01" if token else None


class Scram:
    """A proof that the client knows the password, and one that the broker does."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature: bytes | None = None
        self._is_done = False

    def first(self) -> bytes:
        """Returns the first message."""
        return f"n,,{self._bare}".encode()

    def respond(self, token: bytes) -> bytes | None:
        """Returns the final message, and then nothing, once the broker has proved itself."""
        try:
            text = token.decode()
            if self._signature is None:
                return self._prove(text)
            self._verify(text)
        except (UnicodeDecodeError, binascii.Error, ValueError) as error:
            raise AuthenticationError(
                f"the broker's SCRAM message cannot be read: {error}"
            ) from None
        return None

    def _prove(self, first: str) -> bytes:
        nonce, salt, iterations = (
            _attribute(part, name) for part, name in zip(_parts(first, 3), "rsi", strict=True)
        )
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationError("the broker's SCRAM nonce does not begin with the client's")
        count = int(iterations)
        if not _MIN_ITERATIONS <= count <= _MAX_ITERATIONS:
            raise AuthenticationError(
                f"the broker asks for {count} iterations of SCRAM, where {_MIN_ITERATIONS} to "
                f"{_MAX_ITERATIONS} are accepted"
            )
        salted = hashlib.pbkdf2_hmac(
            self._hash, self._password, base64.b64decode(salt, validate=True), count
        )
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        unproved = f"c={_CHANNEL_BINDING},r={nonce}"
        signed = f"{self._bare},{first},{unproved}".encode()
        signature = hmac.digest(stored_key, signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._signature = hmac.digest(server_key, signed, self._hash)
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, final: str) -> None:
        (part,) = _parts(final, 1)
        if part.startswith("e="):
            raise AuthenticationError(f"the broker refuses the login: {part[2:]}")
        signature = base64.b64decode(_attribute(part, "v"), validate=True)
        if self._is_done or not hmac.compare_digest(signature, self._signature or b""):
            raise AuthenticationError(
                "the broker could not prove that it knows the user's password: it may be another "
                "than it should be"
            )
        self._is_done = True


def _parts(message: str, count: int) -> list[str]:
    """Returns the attributes that have to be there; extensions may follow."""
    parts = message.split(",")
    if len(parts) < count:
        raise ValueError(f"expected {count} attributes, found {len(parts)}")
    return parts[:count]


def _attribute(part: str, name: str) -> str:
    if not part.startswith(f"{name}="):
        raise ValueError(f"expected the attribute {name}")
    return part[2:]


def new_mechanism(
    settings: NetworkSettings, token: str | None, random: Callable[[], float]
) -> Mechanism:
    """Returns a login by the mechanism of the settings.

    Args:
        settings: of the client.
        token: of OAUTHBEARER.
        random: draws from [0, 1), such that nobody can predict it.
    """
    mechanism = settings.sasl_mechanism or ""
    user, password = settings.sasl_username or "", settings.sasl_password or ""
    if mechanism in _HASHES:
        nonce = bytes(int(256 * random()) for _ in range(_NONCE_BYTES))
        return Scram(mechanism, user, password, base64.b64encode(nonce).decode())
    if mechanism == "OAUTHBEARER":
        return OAuthBearer(token or "")
    return Plain(user, password)

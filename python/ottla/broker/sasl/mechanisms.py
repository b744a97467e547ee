"""The server's side of PLAIN (RFC 4616) and SCRAM (RFC 5802): tokens in, tokens out.

A mechanism takes the client's tokens one by one and answers each. It is done when `user` is set,
and over when it raises `AuthenticationError`.

SCRAM, four messages:

    client-first   n,,n=user,r=nonce
    server-first   r=nonce+ours,s=salt,i=iterations
    client-final   c=biws,r=nonce+ours,p=proof
    server-final   v=signature
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.sasl.credentials import HASHES, SCRAM_SHA_256, SCRAM_SHA_512

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.sasl.credentials import Credentials, ScramCredential

__all__ = ["MECHANISMS", "AuthenticationError", "Mechanism", "Plain", "Scram", "new_mechanism"]

_PLAIN_PARTS: Final = 3
_NONCE_BYTES: Final = 24


class AuthenticationError(Exception):
    """A client is not who it says, or does not say it as its mechanism demands.

    Its text is for the client, so it does not tell which users there are.
    """


class Mechanism(Protocol):
    """One authentication under way.

    Attributes:
        user: who the client has proved to be, `None` until then.
    """

    user: str | None

    def respond(self, token: bytes) -> bytes:
        """Returns the answer to the client's next token.

        Raises:
            AuthenticationError: the client is refused.
        """
        ...


class Plain:
    """User and password in one token."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.user: str | None = None

    def respond(self, token: bytes) -> bytes:
        """Returns the empty answer of a client that is let in."""
        parts = token.split(b"\0")
        if len(parts) != _PLAIN_PARTS:
            found = f"expected {_PLAIN_PARTS} tokens, got {len(parts)}"
            raise AuthenticationError(f"Invalid SASL/PLAIN response: {found}")
        try:
            authorization_id, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise AuthenticationError("Invalid SASL/PLAIN response: not UTF-8") from None
        if not user or not password:
            missing = "password" if user else "username"
            raise AuthenticationError(f"Authentication failed: {missing} not specified")
        if not self._credentials.has_password(user, password):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        _check_authorization_id(authorization_id, user)
        self.user = user
        return b""


class Scram:
    """A proof that the client knows a password, which it does not send."""

    def __init__(
        self, mechanism: int, credentials: Credentials, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._random_bytes = random_bytes
        self._first: tuple[str, str, ScramCredential] | None = None
        self._signed = ""
        self.user: str | None = None

    def respond(self, token: bytes) -> bytes:
        """Returns the first, then the final message of the server."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise AuthenticationError("Invalid SCRAM message: not UTF-8") from None
        return self._begin(text) if self._first is None else self._finish(text)

    def _begin(self, text: str) -> bytes:
        import base64  # noqa: PLC0415 - a broker without SASL loads none of it

        binding, comma, rest = text.partition(",")
        authorization, second_comma, bare = rest.partition(",")
        if binding != "n" or not comma or not second_comma:
            raise AuthenticationError("Invalid SCRAM client first message: no channel binding")
        user = _name(_attribute(bare, 0, "n"))
        nonce = _attribute(bare, 1, "r")
        _check_authorization_id(_name(authorization.removeprefix("a=")), user)
        credential = self._credentials.scram(user, self._mechanism)
        if credential is None:
            raise self._refused()
        nonce += base64.b64encode(self._random_bytes(_NONCE_BYTES)).decode()
        salt = base64.b64encode(credential.salt).decode()
        first = f"r={nonce},s={salt},i={credential.iterations}"
        self._first = (user, nonce, credential)
        self._header = f"n,{authorization},"
        self._signed = f"{bare},{first}"
        return first.encode()

    def _finish(self, text: str) -> bytes:
        import base64  # noqa: PLC0415
        import binascii  # noqa: PLC0415
        import hashlib  # noqa: PLC0415
        import hmac  # noqa: PLC0415

        if self._first is None or self.user is not None:
            raise AuthenticationError("Invalid SCRAM message: nothing is to follow")
        user, nonce, credential = self._first
        unproved, comma, proof_text = text.rpartition(",p=")
        binding = base64.b64encode(self._header.encode()).decode()
        if not comma or _attribute(unproved, 0, "c") != binding:
            raise AuthenticationError("Invalid SCRAM client final message: another channel binding")
        if _attribute(unproved, 1, "r") != nonce:
            raise AuthenticationError("Invalid client nonce in the final client message.")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except (binascii.Error, ValueError):
            raise AuthenticationError("Invalid SCRAM client final message: no proof") from None
        name = HASHES[self._mechanism]
        signed = f"{self._signed},{unproved}".encode()
        signature = hmac.digest(credential.stored_key, signed, name)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        is_proved = len(proof) == len(signature) and hmac.compare_digest(
            hashlib.new(name, client_key).digest(), credential.stored_key
        )
        if not is_proved:
            raise self._refused()
        self.user = user
        answer = base64.b64encode(hmac.digest(credential.server_key, signed, name))
        return b"v=" + answer

    def _refused(self) -> AuthenticationError:
        name = next(name for name, number in _SCRAM_NAMES.items() if number == self._mechanism)
        return AuthenticationError(
            "Authentication failed during authentication due to invalid credentials "
            f"with SASL mechanism {name}"
        )


_SCRAM_NAMES: Final[Mapping[str, int]] = {
    "SCRAM-SHA-256": SCRAM_SHA_256,
    "SCRAM-SHA-512": SCRAM_SHA_512,
}

MECHANISMS: Final = ("PLAIN", *_SCRAM_NAMES)
"""Names of all mechanisms that can be enabled."""


def new_mechanism(
    name: str, credentials: Credentials, random_bytes: Callable[[int], bytes]
) -> Mechanism:
    """Returns the server's side of an authentication that begins.

    Args:
        random_bytes: returns as many bytes as it is asked for, which nobody can predict.
    """
    if name == "PLAIN":
        return Plain(credentials)
    return Scram(_SCRAM_NAMES[name], credentials, random_bytes)


def _check_authorization_id(authorization_id: str, user: str) -> None:
    if authorization_id not in {"", user}:
        raise AuthenticationError(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )


def _attribute(message: str, index: int, name: str) -> str:
    """Returns the value of an attribute, which has its place; more may follow."""
    parts = message.split(",", index + 1)
    if index >= len(parts) or not parts[index].startswith(f"{name}="):
        raise AuthenticationError(f"Invalid SCRAM message: attribute {name} is missing")
    value = parts[index][2:]
    if not value:
        raise AuthenticationError(f"Invalid SCRAM message: attribute {name} is empty")
    return value


def _name(text: str) -> str:
    """Returns a name of RFC 5802: ``=2C`` is a comma, ``=3D`` an equals sign, and ``=`` nothing."""
    if text.replace("=2C", "").replace("=3D", "").count("="):
        raise AuthenticationError("Invalid SCRAM message: a name is not escaped")
    return text.replace("=2C", ",").replace("=3D", "=")

"""What a broker keeps of a password of SCRAM (RFC 5802), and never the password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HASHES", "SCRAM_SHA_256", "SCRAM_SHA_512", "ScramCredential", "salted_password"]

SCRAM_SHA_256: Final = 1
SCRAM_SHA_512: Final = 2
HASHES: Final[Mapping[int, str]] = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
"""Names of hashes, by the protocol's numbers of mechanisms."""


class ScramCredential(NamedTuple):
    """What proves that a client knows a password (RFC 5802, section 3)."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, mechanism: int, salt: bytes, iterations: int, salted: bytes) -> ScramCredential:
        """Returns the credential of a salted password."""
        import hashlib  # noqa: PLC0415 - a broker without SASL loads none of it
        import hmac  # noqa: PLC0415

        name = HASHES[mechanism]
        client_key = hmac.digest(salted, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        return cls(salt, iterations, stored_key, hmac.digest(salted, b"Server Key", name))


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """Returns what a client computes of a password before it logs in."""
    import hashlib  # noqa: PLC0415

    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)

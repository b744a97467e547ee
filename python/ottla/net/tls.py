"""TLS over bytes: no socket in here, so a connection is the same with it and without."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from ottla.errors import ListenError
from ottla.net.settings import AUTHORITIES_TO_PEM, TO_PEM, PemText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.net.settings import FileName, TlsSettings

__all__ = ["TlsStream", "load_authorities", "load_certificate", "server_context"]

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""By the values of Kafka's `ssl.client.auth`."""

_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Those that RFC 2253 has."""


_STORES = {
    b"\xfe\xed\xfe\xed": "a key store of Java (JKS)",
    b"\xce\xce\xce\xce": "a key store of Java (JCEKS)",
    b"\x30\x82": "a key store of PKCS12",
    b"\x30\x80": "a key store of PKCS12",
}
"""By their first bytes."""

_HINTS = {
    "HTTP_REQUEST": ": the client speaks plain HTTP",
    "WRONG_VERSION_NUMBER": ": the client speaks no TLS",
    "TLSV1_ALERT_UNKNOWN_CA": ": the client does not trust the certificate's authority",
}
"""What is meant by OpenSSL's reasons of the usual mistakes."""

_MAX_PEM_BYTES = 1 << 20
"""Of a file: a thousand certificates."""


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Returns what the connections of a listener share.

    Raises:
        ListenError: a file cannot be read, or key and certificate do not match.
    """
    if settings.client_auth not in _CLIENT_AUTH:
        known = ", ".join(_CLIENT_AUTH)
        raise ListenError(f"client_auth is {settings.client_auth!r}, expected one of {known}")
    if settings.client_auth != "none" and settings.authorities is None:
        raise ListenError(f"client_auth is {settings.client_auth!r} and no authorities are given")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = sorted(ssl.TLSVersion[each.replace(".", "_")] for each in settings.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    load_certificate(context, settings, "ssl.key.password")
    if settings.authorities is not None:
        load_authorities(context, settings.authorities)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context


def load_authorities(context: ssl.SSLContext, source: FileName | PemText) -> None:
    """Has a context trust authorities.

    Raises:
        ListenError: they cannot be read.
    """
    authorities = _pem(source, AUTHORITIES_TO_PEM)
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
    except ssl.SSLError as error:
        raise _unusable(source, error.reason or error) from error


def load_certificate(context: ssl.SSLContext, settings: TlsSettings, option: str) -> None:
    """Has a context show a certificate.

    Args:
        context: of either side.
        settings: have the certificate, its key, and the password of that.
        option: the name that users know the password by.

    Raises:
        ListenError: a file cannot be read, or key and certificate do not match.
    """
    certificate = _pem(settings.certificate, TO_PEM)
    key = None if settings.key is None else _pem(settings.key, TO_PEM)
    _load_chain(context, settings, (certificate, key), option)


def _pem(source: FileName | PemText, conversion: str) -> bytes:
    """Returns certificates or a key in PEM.

    Args:
        source: where they are.
        conversion: the command that makes PEM of another format.
    """
    if isinstance(source, PemText):
        # In a file of properties, and in an option, a line may end with a blank instead.
        text = source.text.replace("\\n", "\n")
        if "-----BEGIN" not in text:
            raise ListenError(f"cannot use {source.source} for TLS: there is no PEM in it")
        return text.encode()
    try:
        with Path(source).open("rb") as file:
            data = file.read(_MAX_PEM_BYTES)
    except OSError as error:
        raise _unusable(source, error.strerror or error) from error
    if b"-----BEGIN" in data:
        return data
    for magic, store in _STORES.items():
        if data.startswith(magic):
            command = conversion.format(source)
            raise _unusable(
                source, f"it is {store}, and PEM is read here; convert it by: {command}"
            )
    raise _unusable(source, "there is no PEM in it")


def _fault(error: ssl.SSLError) -> str:
    hint = _HINTS.get(error.reason or "", "")
    return f"TLS: {error.reason or error}{hint}"


def _unusable(source: FileName | PemText, why: object) -> ListenError:
    name = source.source if isinstance(source, PemText) else source
    return ListenError(f"cannot use {name} for TLS: {why}")


def _load_chain(
    context: ssl.SSLContext, settings: TlsSettings, pair: tuple[bytes, bytes | None], option: str
) -> None:
    certificate, key = pair
    where = settings.certificate if settings.key is None else settings.key
    asked: list[bool] = []

    def password() -> str:
        # Without it OpenSSL would ask on the terminal, and nobody may be there.
        asked.append(True)
        return settings.password or ""

    # OpenSSL reads them from files alone.
    with (
        NamedTemporaryFile(prefix="ottla-") as file,
        NamedTemporaryFile(prefix="ottla-") as key_file,
    ):
        for each, data in ((file, certificate), (key_file, key or certificate)):
            each.write(data)
            each.flush()
        try:
            context.load_cert_chain(file.name, key_file.name, password)
        except ssl.SSLError as error:
            if asked:
                wrong = "is not its password" if settings.password else "is not set"
                why = f"the key is encrypted, and {option} {wrong}"
                raise _unusable(where, why) from error
            reason = (error.reason or str(error)).replace("_", " ").lower()
            if "mismatch" in reason:
                names = _named(settings.certificate, settings.key)
                why = f"certificate and key do not belong together ({reason})"
                raise ListenError(f"cannot use {names} for TLS: {why}") from error
            missing = "" if b"PRIVATE KEY" in certificate + (key or b"") else "; there is no key"
            raise _unusable(where, f"{reason}{missing}") from error


def _named(*sources: FileName | PemText | None) -> str:
    names = [each.source if isinstance(each, PemText) else str(each) for each in sources if each]
    return " and ".join(names)


class TlsStream:
    """The server's side of one connection.

    Attributes:
        is_ready: whether the handshake is done.
        is_at_end: whether the peer has said that it sends no more.
        fault: why the connection has to end; empty until then.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "fault", "is_at_end", "is_ready")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_ready = False
        self.is_at_end = False
        self.fault = ""

    def open(self, data: bytes) -> bytes:
        """Takes bytes off the network and returns what they say, once the handshake is done."""
        self._incoming.write(data)
        opened = []
        try:
            if not self.is_ready:
                self._tls.do_handshake()
                self.is_ready = True
            while chunk := self._tls.read(1 << 16):
                opened.append(chunk)
            self.is_at_end = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_at_end = True
        except ssl.SSLError as error:
            self.fault = _fault(error)
        return b"".join(opened)

    def to_send(self) -> bytes:
        """Returns what the handshake, or an alert, has for the peer."""
        return self._outgoing.read()

    def seal(self, parts: Sequence[bytes | bytearray | memoryview]) -> bytes:
        """Returns bytes for the network, fewer where there is a `fault`."""
        try:
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[self._tls.write(view) :]
        except ssl.SSLError as error:
            self.fault = _fault(error)
        return self._outgoing.read()

    def end(self) -> bytes:
        """Returns what says that nothing more is sent, so that no end is taken for a cut."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()

    def subject(self) -> str:
        """Returns the distinguished name of the peer's certificate, as RFC 2253 writes it."""
        certificate: Any = self._tls.getpeercert() or {}
        pairs = [
            "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in rdn)
            for rdn in certificate.get("subject", ())
        ]
        return ",".join(reversed(pairs))


def _escaped(value: str) -> str:
    text = "".join(f"\\{char}" if char in '\\,+"<>;' else char for char in value)
    if text[:1] in {"#", " "}:
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if len(text) > 1 and text.endswith(" ") else text

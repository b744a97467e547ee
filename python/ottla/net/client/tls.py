"""TLS of a client: what it trusts, who it is, and what is meant by the usual failures."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

from ottla.client.errors import AuthenticationError, InvalidConfigurationError, NetworkError
from ottla.errors import ListenError
from ottla.net.settings import PemText, TlsSettings
from ottla.net.tls import load_authorities, load_certificate

__all__ = ["explained", "tls_context"]

_WRONG_HOST: Final = (62, 64)
"""OpenSSL's numbers for a certificate of another name, and of another address."""

_EXPIRED: Final = 10

_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})
"""OpenSSL's reasons where the other side does not speak TLS at all."""

_WANTS_CERTIFICATE: Final = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")


def tls_context(settings: Any) -> ssl.SSLContext | None:
    """Returns what the connections of a client share; ``None`` where they speak no TLS.

    Args:
        settings: of a client.

    Raises:
        InvalidConfigurationError: a file cannot be read, or key and certificate do not match.
    """
    if not settings.security_protocol.endswith("SSL"):
        return None
    if settings.ssl_context is not None:
        given: ssl.SSLContext = settings.ssl_context
        return given
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    try:
        _trust(context, settings)
        _identify(context, settings)
    except ListenError as error:
        raise InvalidConfigurationError(str(error)) from error
    return context


def _trust(context: ssl.SSLContext, settings: Any) -> None:
    if settings.ssl_ca_pem is not None:
        load_authorities(context, PemText(settings.ssl_ca_pem, "ssl_ca_pem"))
    elif settings.ssl_ca_location is None:
        context.load_default_certs()
    elif Path(settings.ssl_ca_location).is_dir():
        context.load_verify_locations(capath=settings.ssl_ca_location)
    else:
        load_authorities(context, settings.ssl_ca_location)


def _identify(context: ssl.SSLContext, settings: Any) -> None:
    certificate = _source(settings, "ssl_certificate")
    if certificate is not None:
        own = TlsSettings(certificate, _source(settings, "ssl_key"), settings.ssl_key_password)
        load_certificate(context, own, "ssl_key_password")


def _source(settings: Any, what: str) -> str | PemText | None:
    text = getattr(settings, f"{what}_pem")
    location: str | None = getattr(settings, f"{what}_location")
    return location if text is None else PemText(text, f"{what}_pem")


def explained(error: Exception, host: str, port: int, protocol: str) -> Exception:
    """Returns the error of a connection as one that says what to do, where that is known.

    Args:
        error: of a connection that speaks TLS.
        host, port: where it leads to.
        protocol: the client's `security_protocol`.
    """
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(_unverified(error, where))
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        why = str(error) or type(error).__name__
        return NetworkError(
            f"{where} broke off the TLS handshake: {why}; a listener that speaks no TLS does so, "
            f"where security_protocol is {protocol}"
        )
    reason = error.reason or ""
    if reason in _NO_TLS:
        plain = "SASL_PLAINTEXT" if protocol.startswith("SASL") else "PLAINTEXT"
        return AuthenticationError(
            f"{where} speaks no TLS, where security_protocol is {protocol}: set it to {plain}, or "
            "connect to another port"
        )
    if reason.endswith(_WANTS_CERTIFICATE) or "UNKNOWN_CA" in reason:
        return AuthenticationError(
            f"{where} wants a certificate of the client that it trusts ({reason}): set "
            "ssl_certificate_location and ssl_key_location"
        )
    return AuthenticationError(f"the TLS handshake with {where} failed: {reason or error}")


def _unverified(error: ssl.SSLCertVerificationError, where: str) -> str:
    what = f"the certificate of {where} is not accepted: {error.verify_message}"
    if error.verify_code in _WRONG_HOST:
        return (
            f"{what}; connect to it by a name that the certificate has, or set "
            "ssl_endpoint_identification_algorithm to an empty string"
        )
    if error.verify_code == _EXPIRED:
        return f"{what}; the broker needs a new one"
    return f"{what}; set ssl_ca_location to the certificate of the authority that signed it"

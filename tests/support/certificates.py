"""Certificates for tests: an authority, and those that it signs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from ipaddress import IPv4Address
    from pathlib import Path


class Authority:
    """Signs certificates and keeps them, with their keys, in files of PEM."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests")])
        self.file = folder / "authority.pem"
        certificate = self._sign(self._name, self._key.public_key(), is_authority=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        is_authority: bool,
        address: IPv4Address | None = None,
    ) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        for extension in self._by_rule(key, is_authority=is_authority):
            builder = builder.add_extension(extension, critical=False)
        if address is not None:
            names = x509.SubjectAlternativeName([x509.IPAddress(address)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _by_rule(
        self, key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> list[x509.ExtensionType]:
        """What RFC 5280 asks for: Python 3.13 and newer verify that it is there."""
        return [
            x509.SubjectKeyIdentifier.from_public_key(key),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            x509.KeyUsage(
                digital_signature=not is_authority,
                key_cert_sign=is_authority,
                crl_sign=is_authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
        ]

    def issue(self, name: str, address: IPv4Address | None = None) -> Path:
        """Return the file of a certificate and its key, of an organisation Shop."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Shop, Ltd"),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        certificate = self._sign(subject, key.public_key(), is_authority=False, address=address)
        file = self._folder / f"{name}.pem"
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return file

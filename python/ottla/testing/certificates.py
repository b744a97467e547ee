"""A certificate for a broker in a test, made by the program openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from ottla.errors import MissingDependencyError

__all__ = ["Certificates", "make_certificates"]

DAYS = 2
TIMEOUT_S = 60


class Certificates(NamedTuple):
    """A certificate that signs itself, for the addresses of this machine.

    Attributes:
        authority: file of the certificate, which clients trust.
        own: file of certificate and key.
    """

    authority: str
    own: str


def make_certificates(folder: str, host: str) -> Certificates:
    """Returns files in a folder, for a broker that listens on a host.

    Raises:
        MissingDependencyError: there is no openssl, or it cannot make them.
    """
    key, authority, own = (Path(folder, name) for name in ("key.pem", "authority.pem", "own.pem"))
    _make(host, str(key), str(authority))
    own.touch(mode=0o600)
    own.write_bytes(authority.read_bytes() + key.read_bytes())
    return Certificates(str(authority), str(own))


def _make(host: str, key: str, certificate: str) -> None:
    names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    if host not in {"", "localhost", "127.0.0.1", "::1"}:
        is_address = host.replace(".", "").isdigit() or ":" in host
        names.append(f"{'IP' if is_address else 'DNS'}:{host}")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-batch", "-sha256", "-days", str(DAYS), "-subj", "/CN=ottla"),
        *("-addext", f"subjectAltName={','.join(names)}", "-keyout", key, "-out", certificate),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)  # noqa: S603
    except FileNotFoundError:
        raise MissingDependencyError(
            "tls=True makes a certificate by the program openssl (1.1.1 or newer), which is not "
            "installed"
        ) from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        raise MissingDependencyError(
            f"openssl (1.1.1 or newer is needed) made no certificate: {said[-1] if said else error}"
        ) from None

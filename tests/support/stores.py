"""An object store of this machine for tests: moto's S3 server, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Only what hangs takes as long, on any machine.
PATIENCE_S = 120.0

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_REGION": "us-east-1",
}


def missing() -> str | None:
    """Why there is no store, in one line."""
    for module in ("moto", "flask", "flask_cors", "obstore"):
        if importlib.util.find_spec(module) is None:
            return f"no object store to test with: {module} is not installed (constraints.txt)"
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def s3_server(log: Path | None = None) -> Iterator[str]:
    """The URL of a server that is there as long as this, and writes a line for each request."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (
        (log or Path(os.devnull)).open("wb") as lines,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=lines) as server,
    ):
        try:
            _wait_for(url, server)
            yield url
        finally:
            server.terminate()


def requests_in(log: Path) -> Counter[tuple[str, str]]:
    """How often a server was asked, by method and path, as its lines have it."""
    # Answers other than 200 are in colours.
    lines = re.findall(r'"(?:\x1b\[\d+m)*([A-Z]+) ([^ ?]+)\S* HTTP/', log.read_text())
    return Counter(lines)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/moto-api/data.json"):  # noqa: S310
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"moto's server does not answer at {url}")


class Store:
    """An S3 server and its buckets."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._buckets = 0

    @property
    def environment(self) -> Mapping[str, str]:
        """What the environment says of it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.url}

    @property
    def options(self) -> dict[str, str]:
        """The same as options of storage."""
        return {
            "endpoint": self.url,
            "access_key_id": "tests",
            "secret_access_key": "tests",
            "region": "us-east-1",
        }

    def bucket(self) -> str:
        """The URI of a new bucket."""
        self._buckets += 1
        name = f"bucket-of-test-{self._buckets}x"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            answer.read()
        return f"s3://{name}"

    def put(self, uri: str, data: bytes = b"") -> None:
        store, key = self._store_and_key(uri)
        store.put(key, data)

    def delete(self, uri: str) -> None:
        store, key = self._store_and_key(uri)
        store.delete(key)

    def upload(self, directory: Path, uri: str) -> str:
        """Every file below a directory; the URI."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put(f"{uri}/{path.relative_to(directory).as_posix()}", path.read_bytes())
        return uri

    def _store_and_key(self, uri: str) -> tuple[Any, str]:
        from obstore.store import S3Store  # noqa: PLC0415

        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return S3Store(bucket, **self.options, client_options={"allow_http": True}), key

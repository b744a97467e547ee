"""Brokers as processes of their own: ours, franz-go's kfake, librdkafka's mock cluster."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benches.worker import ROOT

OURS, KFAKE, MOCK = "Ottla", "kfake", "librdkafka's mock"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SOURCE = Path(__file__).parent.parent / "peers" / "go"
_BUILT = ROOT / "target" / "kfake"

MOCK_PROGRAM = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 1, "log_level": 0})
broker, = producer.list_topics(timeout=10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
"""A mock cluster lives in a client, here in one that does nothing else."""


def missing() -> str | None:
    """Say what the measurement needs and is not here; nothing where all of it is."""
    if not sys.platform.startswith("linux"):
        return "CPU seconds and memory of a process are asked of Linux"
    if shutil.which("go") is None:
        return "no Go, which builds kfake"
    return None


def build_kfake() -> Path:
    """Build kfake where it is not built yet.

    Raises:
        subprocess.CalledProcessError: Go cannot, for example without its module proxy.
    """
    binary = _BUILT / "kfake"
    sources = [_SOURCE / name for name in ("go.mod", "main.go")]
    newest = max(source.stat().st_mtime for source in sources)
    if binary.exists() and binary.stat().st_mtime >= newest:
        return binary
    # In a copy, so that Go can write down beside it what it has fetched.
    _BUILT.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copy(source, _BUILT)
    subprocess.run(["go", "mod", "tidy"], cwd=_BUILT, check=True)
    subprocess.run(["go", "build", "-o", binary, "."], cwd=_BUILT, check=True)
    return binary


def command_of(name: str) -> list[str]:
    """Return the command that starts a broker."""
    if name == OURS:
        return [str(Path(sys.executable).with_name("ottla")), "serve", "--port", "0"]
    if name == KFAKE:
        return [str(build_kfake())]
    return [sys.executable, "-c", MOCK_PROGRAM]


@dataclass(frozen=True)
class Serving:
    """A broker that serves."""

    name: str
    address: str
    pid: int

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Return where it listens."""
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    @property
    def cpu_s(self) -> float:
        """Return the CPU seconds that it has taken."""
        # Linux has a clock for each process, exact where /proc counts in hundredths of a second.
        return time.clock_gettime((~self.pid << 3) | 2)

    @property
    def resident_bytes(self) -> int:
        """Return the memory that it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES


@contextmanager
def serving(name: str) -> Iterator[Serving]:
    """Run a broker for the length of a block."""
    process = subprocess.Popen(
        command_of(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        line = process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{name} did not start: status {process.wait()}")
        yield Serving(name, line.rpartition("=")[2], process.pid)
    finally:
        process.terminate()
        process.stdin.close()
        process.wait()
        process.stdout.close()

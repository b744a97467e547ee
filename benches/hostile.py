"""CPU time and memory for each MiB of logs that are made to cost much: `python -m benches.hostile`.

Each entry runs in a process of its own; what it takes for a log of one batch is taken off. Sizes
are a share of the largest (`python -m benches.hostile 0.1`). The engine is to be an optimised one.
"""

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import ottla
from crc32c import crc32c

from benches.data import MIB

_TIME = 1_760_000_000_000
_RECORD = [ottla.NewRecord(value=b"v", timestamp=_TIME)]

ENTRIES = {
    "audit": ["audit"],
    "audit json": ["audit", "--format", "json"],
    "read": ["read"],
    "rebuild": ["rebuild", "--output", "OUTPUT"],
}
_RUN = "import sys; from ottla import cli; sys.exit(cli.run(sys.argv[1:]) > 3)"
_PREDICT = "import sys, ottla; ottla.predict_recovery(sys.argv[2])"


def _batch(
    offset: int, producer: int = -1, sequence: int = 0, *, is_transactional: bool = False
) -> bytes:
    if producer < 0:
        return ottla.build_batch(_RECORD, base_offset=offset, partition_leader_epoch=0)
    return ottla.build_batch(
        _RECORD,
        base_offset=offset,
        partition_leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def _far_apart(partition: Path, count: int) -> None:
    data = b"".join(_batch(number << 31) for number in range(count))
    _segment(partition, 0).write_bytes(data)


def _tiny_segments(partition: Path, count: int) -> None:
    for offset in range(count):
        _segment(partition, offset).write_bytes(_batch(offset, 7, offset))
        body = struct.pack(">iqhiqiqiq", 1, 7, 0, offset - 1, offset - 1, 0, _TIME, -1, -1)
        body = body if offset else struct.pack(">i", 0)
        snapshot = struct.pack(">hI", 1, crc32c(body)) + body
        _segment(partition, offset).with_suffix(".snapshot").write_bytes(snapshot)


def _open_transactions(partition: Path, count: int) -> None:
    batches = (_batch(n, n, is_transactional=True) for n in range(count))
    _segment(partition, 0).write_bytes(b"".join(batches))


def _producers(partition: Path, count: int) -> None:
    _segment(partition, 0).write_bytes(b"".join(_batch(n, n) for n in range(count)))


def _producers_twice(partition: Path, count: int) -> None:
    batches = (_batch(n, n % (count // 2), 2 * n // count) for n in range(count))
    _segment(partition, 0).write_bytes(b"".join(batches))


def _zeros(partition: Path, size: int) -> None:
    _segment(partition, 0).write_bytes(_batch(0))
    os.truncate(_segment(partition, 0), size)


def _directories(partition: Path, count: int) -> None:
    _segment(partition, 0).write_bytes(_batch(0))
    for number in range(count):
        (partition.parent / f"d{number:06}").mkdir()


def _segment(partition: Path, offset: int) -> Path:
    return partition / f"{offset:020}.log"


SERIES: list[tuple[Callable[[Path, int], None], int, tuple[str, ...]]] = [
    (_far_apart, 3_000, ("audit", "audit json", "predict", "read", "rebuild")),
    (_tiny_segments, 4_000, ("audit", "audit json", "predict", "read", "rebuild")),
    (_open_transactions, 60_000, ("audit", "audit json", "predict", "read", "rebuild")),
    (_producers, 150_000, ("audit", "audit json", "predict", "read", "rebuild")),
    (_producers_twice, 150_000, ("audit", "predict")),
    (_zeros, 1 << 40, ("audit", "predict", "read", "rebuild")),
    (_directories, 1_000_000, ("audit",)),
]


def _measured(entry: str, partition: Path, output: Path) -> tuple[float, int]:
    """The CPU seconds and the most memory of one entry over a log, in bytes."""
    arguments = [os.fspath(output) if a == "OUTPUT" else a for a in ENTRIES.get(entry, [entry])]
    given = partition.parent if entry.startswith("audit") else partition
    code = _PREDICT if entry == "predict" else _RUN
    command = [sys.executable, "-c", code, arguments[0], os.fspath(given), *arguments[1:]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{entry} of {partition} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _bytes_of(directory: Path) -> int:
    """Bytes on disk: a hole has none, a file or directory of few bytes a block."""
    total = 0
    for folder, folders, files in os.walk(directory):
        stats = [Path(folder, name).stat() for name in files]
        total += sum(stat.st_blocks * 512 for stat in stats) + 4096 * len(folders)
    return total


def main(share: float = 1.0, only: str = "") -> None:
    """Print a row for each series and entry."""
    print(f"{'series':20} {'entry':10} {'MiB':>8} {'ms/MiB':>8} {'memory/bytes':>13}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plain = root / "plain" / "orders-0"
        plain.mkdir(parents=True)
        _segment(plain, 0).write_bytes(_batch(0))
        for make, count, entries in SERIES:
            if only not in make.__name__:
                continue
            partition = root / make.__name__ / "orders-0"
            partition.mkdir(parents=True)
            make(partition, int(count * share))
            size = _bytes_of(partition.parent)
            for entry in entries:
                base = _measured(entry, plain, root / f"{make.__name__}-{entry}-plain")
                cpu_s, memory = _measured(entry, partition, root / f"{make.__name__}-{entry}")
                ms = 1000 * (cpu_s - base[0]) / (size / MIB)
                times = (memory - base[1]) / size
                row = f"{make.__name__[1:]:20} {entry:10} {size / MIB:8.2f} {ms:8.0f} {times:13.1f}"
                print(row, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 1.0, "".join(sys.argv[2:3]))

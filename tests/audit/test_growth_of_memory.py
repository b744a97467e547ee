"""Memory grows with the log by a few times its bytes, of a whole process with all that it prints.

Each process reads one log, of n batches or of four times as many. What all processes have, from
the interpreter to the bounds on findings, is in both, and falls out: also the windows of 2 MiB that
files are read through, as the smaller log has no less.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ottla
import pytest
from audit.test_growth import open_transactions, plain, produced, producers
from support.logs import TIMESTAMP, segment_name

# Bytes that a process may take for a byte of the log.
MAX_TIMES = 4

PEAK = """
import re
import sys

import ottla
from ottla import cli

entry, partition, log_directory = sys.argv[1:]
if entry == "predict":
    ottla.predict_recovery(partition)
else:
    cli.run(["audit", log_directory])
with open("/proc/self/status") as status:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", status.read())
print(peak[1], file=sys.stderr)
"""

Make = Callable[[Path, int], None]


def peak(entry: str, partition: Path) -> int:
    """Bytes that a process of its own holds at the most."""
    command = [sys.executable, "-c", PEAK, entry, os.fspath(partition), os.fspath(partition.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1]) * 1024


def damaged(make: Make) -> Make:
    """With a damaged segment behind it: starts are predicted, and what may be done before."""

    def make_damaged(partition: Path, size: int) -> None:
        make(partition, size)
        end = size * (2 if make is aborted_transactions else 1)
        last = bytearray(plain(end))
        last[-1] ^= 1
        (partition / segment_name(end)).write_bytes(plain(end) + last)
        (partition / segment_name(end, "index")).write_bytes(b"")

    return make_damaged


def aborted_transactions(partition: Path, size: int) -> None:
    """Of few producers, one transaction after the other; no index lists them."""
    data = b"".join(
        produced(2 * n, producer=n % 8, transactional=True)
        + ottla.build_control_batch(
            "abort",
            base_offset=2 * n + 1,
            producer_id=n % 8,
            producer_epoch=0,
            timestamp=TIMESTAMP,
            coordinator_epoch=0,
        )
        for n in range(size)
    )
    (partition / segment_name(0)).write_bytes(data)


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.skipif(
    not (Path("/proc/self/status").exists() or os.environ.get("CI")),
    reason="Linux alone tells a peak; CI runs there",
)
@pytest.mark.parametrize(
    ("make", "size"),
    [(producers, 37_500), (open_transactions, 37_500), (aborted_transactions, 15_000)],
    ids=["producers", "open", "aborted"],
)
@pytest.mark.parametrize("entry", ["predict", "audit", "audit-of-damage"])
def test_a_process_takes_at_most_four_times_the_bytes_of_a_log(
    entry: str, make: Make, size: int, tmp_path: Path
) -> None:
    peaks, sizes = [], []
    for factor in (1, 4):
        partition = tmp_path / f"{factor}" / "orders-0"
        partition.mkdir(parents=True)
        (partition / "partition.metadata").write_text(
            "version: 0\ntopic_id: va8YOpSrRK6fWBUV4XmPLw"
        )
        (damaged(make) if entry == "audit-of-damage" else make)(partition, factor * size)
        peaks.append(peak(entry, partition))
        sizes.append(sum(path.stat().st_size for path in partition.glob("*.log")))
    taken = (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
    assert taken <= MAX_TIMES, (taken, peaks, sizes)

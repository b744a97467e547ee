"""What a leader knows once a broker's log is read again: that broker's snapshot, every byte."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import ottla
import pytest

if TYPE_CHECKING:
    from pathlib import Path


def snapshots(root: Path) -> list[Path]:
    """Return the snapshots beside a log without missing offsets, which was never compacted."""
    return [path for path in sorted(root.rglob("*.snapshot")) if is_whole(path)]


def is_whole(snapshot: Path) -> bool:
    batches = [batch for data in segments(snapshot) for batch in ottla.read_batches(data)]
    follow = all(one.last_offset + 1 == next_.base_offset for one, next_ in pairwise(batches))
    return follow and all(
        batch.record_count in (None, batch.last_offset - batch.base_offset + 1) for batch in batches
    )


def segments(snapshot: Path) -> list[bytes]:
    return [log.read_bytes() for log in sorted(snapshot.parent.glob("*.log"))]


def again(snapshot: Path, before: Path | None = None) -> bytes:
    """Return the snapshot of a leader that has read the log up to the offset that a file names."""
    offset = int(snapshot.stem)
    first = int(min(snapshot.parent.glob("*.log")).stem)
    leader = ottla.Leader.restore(
        before.read_bytes() if before else None,
        segments(snapshot),
        snapshot_offset=int(before.stem) if before else first,
        log_start_offset=first,
        log_end_offset=offset,
        # Nobody had expired when the broker wrote it.
        now_ms=0,
    )
    return leader.snapshot()


def written_otherwise(paths: list[Path]) -> list[Path]:
    """Return the snapshots that cannot be rebuilt from the log or from the snapshot before."""
    previous = {one: other for other, one in pairwise(paths) if other.parent == one.parent}
    return [
        path
        for path in paths
        if {again(path), again(path, previous.get(path))} != {path.read_bytes()}
    ]


def producers(snapshot: Path) -> int:
    return len(snapshot.read_bytes()) // 46


def test_the_snapshots_of_the_demo_are_had_again_byte_for_byte(demo: Path) -> None:
    paths = snapshots(demo)
    assert max(map(producers, paths)) == 3
    assert written_otherwise(paths) == []


@pytest.mark.shared
@pytest.mark.slow
def test_every_snapshot_of_the_corpora_is_had_again_byte_for_byte(shared: Path) -> None:
    brokers = [*sorted((shared / "corpus" / "kafka").glob("kafka-*")), shared / "corpus" / "demo"]
    paths = [path for broker in brokers for path in snapshots(broker)]
    assert (len(paths), sum(producers(path) > 1 for path in paths)) == (194, 34)
    assert written_otherwise(paths) == []

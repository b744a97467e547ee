"""A broker's log directory of many small partitions, as after a clean stop.

Every file that a broker would have is there, and fits: the segment, both of its indexes, the leader
epochs and the topic's id, and the checkpoints above. The partitions of a topic share their files by
hard links, so that a hundred thousand are written in seconds.
"""

import base64
import itertools
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from benches.data import Shape, generate, produced, renumbered

PARTITIONS_PER_TOPIC = 1000

_SHAPE = Shape(100, 10)
# `log.index.interval.bytes` of a broker with default settings.
_INDEX_INTERVAL = 4096
_STEM = f"{0:020d}"


def _segment_files(size: int) -> dict[str, bytes]:
    """Return a segment of about a size with the indexes that a broker writes while it appends."""
    batches = produced(generate(_SHAPE, size)).batches
    log = bytearray()
    offsets = bytearray()
    times = bytearray()
    next_offset = unindexed = 0
    newest = 0, 0
    for batch in batches:
        run, behind = renumbered([batch], next_offset)
        newest = max(newest, (int.from_bytes(batch[35:43], "big"), behind - 1))
        if unindexed > _INDEX_INTERVAL:
            offsets += struct.pack(">ii", behind - 1, len(log))
            times += struct.pack(">qi", *newest)
            unindexed = 0
        unindexed += len(run)
        log += run
        next_offset = behind
    if times[-12:] != struct.pack(">qi", *newest):
        times += struct.pack(">qi", *newest)
    return {
        f"{_STEM}.log": bytes(log),
        f"{_STEM}.index": bytes(offsets),
        f"{_STEM}.timeindex": bytes(times),
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }


def _next_offset(files: Iterable[bytes]) -> int:
    """Return the offset behind the last batch of a segment."""
    count = 0
    for log in files:
        position = 0
        while position < len(log):
            count += int.from_bytes(log[position + 23 : position + 27], "big") + 1
            position += 12 + int.from_bytes(log[position + 8 : position + 12], "big")
    return count


def write_partitions(directory: Path, partitions: int, size: int = 10_000) -> int:
    """Write so many partitions of about so many bytes into a directory; return the bytes of all."""
    files = _segment_files(size)
    log = files[f"{_STEM}.log"]
    names = []
    for topic, start in enumerate(range(0, partitions, PARTITIONS_PER_TOPIC)):
        topic_id = base64.urlsafe_b64encode(struct.pack(">QQ", 1, topic + 1)).rstrip(b"=")
        contents = files | {"partition.metadata": b"version: 0\ntopic_id: " + topic_id + b"\n"}
        first: Path | None = None
        for partition in range(min(PARTITIONS_PER_TOPIC, partitions - start)):
            folder = directory / f"topic-{topic:03d}-{partition}"
            folder.mkdir(parents=True)
            for name, content in contents.items():
                if first is None:
                    (folder / name).write_bytes(content)
                else:
                    os.link(first / name, folder / name)
            first = first or folder
            names.append(f"topic-{topic:03d} {partition}")
    end_offset = _next_offset([log])
    for checkpoint, offset in (
        ("recovery-point-offset-checkpoint", end_offset),
        ("replication-offset-checkpoint", end_offset),
        ("log-start-offset-checkpoint", 0),
    ):
        lines = itertools.chain(("0", str(len(names))), (f"{name} {offset}" for name in names))
        (directory / checkpoint).write_text("\n".join(lines) + "\n")
    (directory / "cleaner-offset-checkpoint").write_text("0\n0\n")
    (directory / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\n"
        "directory.id=AAAAAAAAAAAAAAAAAAAAAg\n"
    )
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return partitions * len(log)

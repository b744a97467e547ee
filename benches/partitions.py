"""A broker's log directory of many small partitions, as after a clean stop.

Every file that a broker would have is there, and fits: the segment, both of its indexes, the leader
epochs and the topic's id, and the checkpoints above. The partitions of a topic share their files by
hard links, so that a hundred thousand are written in seconds.
"""

import base64
import os
import struct
from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path

from benches.data import Shape, generate, produced, renumbered

PARTITIONS_PER_TOPIC = 1000

_SHAPE = Shape(100, 10)
# `log.index.interval.bytes` of a broker with default settings.
_INDEX_INTERVAL = 4096


def indexes(log: bytes | mmap, base_offset: int) -> tuple[bytes, bytes]:
    """Return the offset and time index of a segment that a broker writes while it appends."""
    offsets = bytearray()
    times = bytearray()
    position = unindexed = indexed = 0
    newest = 0, 0
    while position < len(log):
        base, size = struct.unpack_from(">qi", log, position)
        (delta,) = struct.unpack_from(">i", log, position + 23)
        (timestamp,) = struct.unpack_from(">q", log, position + 35)
        last = base + delta - base_offset
        if timestamp > newest[0]:
            newest = timestamp, last
        if unindexed > _INDEX_INTERVAL:
            offsets += struct.pack(">ii", last, position)
            if newest[0] > indexed:
                times += struct.pack(">qi", *newest)
                indexed = newest[0]
            unindexed = 0
        unindexed += 12 + size
        position += 12 + size
    if newest[0] > indexed:
        times += struct.pack(">qi", *newest)
    return bytes(offsets), bytes(times)


def write_beside(folder: Path, topic: int) -> None:
    """Write what a broker has beside the segments of a partition."""
    for path in folder.glob("*.log"):
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as log:
            offsets, times = indexes(log, int(path.stem))
        path.with_suffix(".index").write_bytes(offsets)
        path.with_suffix(".timeindex").write_bytes(times)
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    topic_id = base64.urlsafe_b64encode(struct.pack(">QQ", 1, topic + 1)).rstrip(b"=")
    (folder / "partition.metadata").write_bytes(b"version: 0\ntopic_id: " + topic_id + b"\n")


def write_checkpoints(directory: Path, ends: Mapping[tuple[str, int], int]) -> None:
    """Write what a broker that stops cleanly leaves in a log directory: where partitions end."""
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = (f"{topic} {partition} {end}\n" for (topic, partition), end in ends.items())
        (directory / checkpoint).write_text(f"0\n{len(ends)}\n" + "".join(lines))
    (directory / "log-start-offset-checkpoint").write_text("0\n0\n")
    (directory / "cleaner-offset-checkpoint").write_text("0\n0\n")
    (directory / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\n"
        "directory.id=AAAAAAAAAAAAAAAAAAAAAg\n"
    )
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')


def write_partitions(directory: Path, partitions: int, size: int = 10_000) -> int:
    """Write so many partitions of about so many bytes into a directory; return the bytes of all."""
    log, end_offset = renumbered(produced(generate(_SHAPE, size)).batches, 0)
    ends = {}
    for topic, start in enumerate(range(0, partitions, PARTITIONS_PER_TOPIC)):
        first: Path | None = None
        for partition in range(min(PARTITIONS_PER_TOPIC, partitions - start)):
            folder = directory / f"topic-{topic:03d}-{partition}"
            folder.mkdir(parents=True)
            if first is None:
                (folder / f"{0:020d}.log").write_bytes(log)
                write_beside(folder, topic)
                first = folder
            else:
                for path in first.iterdir():
                    os.link(path, folder / path.name)
            ends[f"topic-{topic:03d}", partition] = end_offset
    write_checkpoints(directory, ends)
    return partitions * len(log)

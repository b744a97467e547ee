"""What compaction left of a partition's directory, told so that two of them can be compared."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import ottla
from ottla._engine import DataPlane, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# What a batch says of itself beside its records; sizes and checksums differ with the encoder.
_FIELDS = (
    "magic",
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "compression",
    "timestamp_type",
    "is_transactional",
    "is_control",
    "delete_horizon_ms",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)

HOUR_MS = 3_600_000
MAGICS: tuple[Literal[0, 1], ...] = (0, 1, 1)
CODECS: tuple[Literal["none", "gzip", "snappy"], ...] = ("none", "gzip", "snappy")


class Settings(NamedTuple):
    """What of a topic's settings decides what is left."""

    delete_retention_ms: int = 86_400_000
    segment_bytes: int = 1 << 20
    index_interval_bytes: int = 4096


def batches_in(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """The batches of each segment with their records."""
    return {
        path.name: [_told(batch) for batch in ottla.read_batches(path.read_bytes())]
        for path in sorted(directory.glob("*.log"))
    }


def _told(batch: ottla.RecordBatch) -> dict[str, Any]:
    told: dict[str, Any] = {name: getattr(batch, name, None) for name in _FIELDS}
    told["records"] = [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in batch.records()
    ]
    return told


def aborted_in(directory: Path) -> dict[str, bytes]:
    """The transaction indexes that say something."""
    found = {path.name: path.read_bytes() for path in sorted(directory.glob("*.txnindex"))}
    return {name: data for name, data in found.items() if data}


def indexed_in(directory: Path) -> dict[str, list[int]]:
    """The offsets that the indexes of the segments below the active one have, relative to these."""
    return {
        path.name: [offset for offset, _ in struct.iter_unpack(">ii", path.read_bytes())]
        for path in sorted(directory.glob("*.index"))[:-1]
    }


def modified_in(directory: Path) -> dict[str, int]:
    """When segments below the active one were appended to last, in ms."""
    return {
        path.name: path.stat().st_mtime_ns // 1_000_000
        for path in sorted(directory.glob("*.log"))[:-1]
    }


def snapshots_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.snapshot"))


def horizons_in(directory: Path) -> set[tuple[int, int]]:
    """Each delete horizon, with the base offset of its batch."""
    return {
        (batch["base_offset"], batch["delete_horizon_ms"])
        for batches in batches_in(directory).values()
        for batch in batches
        if batch["delete_horizon_ms"] is not None
    }


def mixed_wrapper(rows: Sequence[ottla.NewRecord], base_offset: int) -> bytes:
    """Records of magic 0 in a wrapper of magic 1, as early brokers stored them (KAFKA-4298)."""
    inner = gzip.compress(ottla.build_message_set(rows, magic=0), mtime=0)
    timestamp = max(row.timestamp for row in rows)
    body = struct.pack(">bbqii", 1, 1, timestamp, -1, len(inner)) + inner
    last_offset = base_offset + len(rows) - 1
    return struct.pack(">qiI", last_offset, len(body) + 4, zlib.crc32(body)) + body


def write_old_formats(directory: Path, *, modified_ms: int) -> dict[bytes, bytes]:
    """Puts segments of magic 0 and 1 in the place of what a directory holds, an hour between them.

    The last one, which is not compacted, holds nothing that an audit finds fault with.

    Returns the values by key.
    """
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    random = Random(1)
    newest: dict[bytes, bytes | None] = {}
    offset = 0
    for number in range(12):
        data, base_offset = b"", offset
        for _ in range(3):
            rows = [
                ottla.NewRecord(
                    key=random.choice([None, *(b"key-%d" % key for key in range(20))]),
                    value=random.choice([None, b"%d" % (offset + index), random.randbytes(80_000)]),
                    timestamp=modified_ms + index,
                )
                for index in range(random.randrange(1, 5))
            ]
            newest.update((row.key, row.value) for row in rows if row.key is not None)
            magic, codec = random.choice(MAGICS), random.choice(CODECS)
            data += (
                mixed_wrapper(rows, offset)
                if random.random() < 0.2 and number < 11
                else ottla.build_message_set(
                    rows,
                    magic=magic,
                    base_offset=offset,
                    compression=codec,
                    log_append_time_ms=modified_ms if random.random() < 0.2 else None,
                )
            )
            offset += len(rows)
        path = directory / f"{base_offset:020}.log"
        path.write_bytes(data)
        at_ns = (modified_ms + number * HOUR_MS) * 1_000_000
        os.utime(path, ns=(at_ns, at_ns))
    return {key: value for key, value in newest.items() if value is not None}


def states_of_a_swap(old: dict[str, bytes], cleaned: dict[str, bytes]) -> list[dict[str, bytes]]:
    """The files of a directory behind each step in which segments take the place of others."""
    kinds = ["log", "txnindex", "timeindex", "index"]
    names = sorted(cleaned, key=lambda name: (name[:20], kinds.index(name.split(".")[1])))
    # As `PartitionLog::replace` goes on: one file after the other.
    files = old | cleaned
    states = [dict(files)]

    def rename(name: str, to: str) -> None:
        files[to] = files.pop(name)
        states.append(dict(files))

    for base_offset in sorted({name[:20] for name in names}):
        group = [name for name in names if name.startswith(base_offset)]
        for name in group:
            rename(name, name.replace(".cleaned", ".swap"))
        for name in group:
            rename(name.removesuffix(".cleaned"), name.replace(".cleaned", ".deleted"))
            del files[name.replace(".cleaned", ".deleted")]
        for name in group:
            rename(name.replace(".cleaned", ".swap"), name.removesuffix(".cleaned"))
    return states


def compact(
    directory: Path,
    settings: Settings,
    *,
    now_ms: int,
    cleaned_to: int | None,
    log_start_offset: int,
) -> int | None:
    """Compacts a partition in its directory. Returns where the next compaction begins."""
    topic, _, partition = directory.name.rpartition("-")
    plane = DataPlane()
    options = [("cleanup_policy", "compact"), ("segment_bytes", str(settings.segment_bytes))]
    handle = plane.open(
        topic,
        bytes(16),
        int(partition),
        now_ms=now_ms,
        settings=TopicSettings(options),
        index_interval_bytes=settings.index_interval_bytes,
        directory=directory,
        log_start_offset=log_start_offset,
        recovery_point=1 << 62,
        is_clean=True,
    )
    if cleaned_to is not None:
        plane.set_cleaner_offset(handle, cleaned_to)
    job = plane.compact_job(
        handle,
        now_ms=now_ms,
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=settings.delete_retention_ms,
    )
    done = None
    if job is not None:
        job.run()
        done = plane.compacted(job)
        assert done is not None
    plane.shut_down(handle)
    plane.close(handle)
    return None if done is None else done.first_dirty_offset

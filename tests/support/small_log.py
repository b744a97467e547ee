"""One small log, written byte by byte without the engine, and the files beside it.

It is partition 0 of `orders` in the log directory of a broker that stopped cleanly:

    orders-0/00000000000000000000.log    offsets 0 to 8, three batches of three records
    orders-0/00000000000000000009.log    offsets 9 to 17, the same

Every batch is `SIZE` bytes. Whoever writes another log keeps these offsets, so that the checkpoints
of the directory agree with it.
"""

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from crc32c import crc32c
from support.logs import META_PROPERTIES, TIMESTAMP, segment_name, write_partition

from benches.data import encode_batch

PARTITION = "orders-0"
FIRST_LOG = f"{PARTITION}/{segment_name(0)}"
SECOND_LOG = f"{PARTITION}/{segment_name(9)}"
LOG_END_OFFSET = 18

TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5


def batch(
    base_offset: int,
    records: int = 3,
    *,
    timestamp: int = TIMESTAMP,
    value: bytes = b"value",
    producer_id: int = -1,
    producer_epoch: int = 0,
    base_sequence: int = 0,
    is_transactional: bool = False,
    partition_leader_epoch: int = 0,
) -> bytes:
    """A batch of magic 2; without a producer id it has no epoch and no sequence."""
    has_producer = producer_id >= 0
    return encode_batch(
        [(timestamp + base_offset + index, b"key", value, ()) for index in range(records)],
        base_offset=base_offset,
        attributes=TRANSACTIONAL if is_transactional else 0,
        producer_id=producer_id,
        producer_epoch=producer_epoch if has_producer else -1,
        base_sequence=base_sequence if has_producer else -1,
        partition_leader_epoch=partition_leader_epoch,
    )


def marker(
    kind: Literal["abort", "commit"],
    offset: int,
    *,
    producer_id: int,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    kind_number: int | None = None,
) -> bytes:
    """The control batch that ends a transaction; another `kind_number` is none of Kafka's."""
    number = ("abort", "commit").index(kind) if kind_number is None else kind_number
    key = struct.pack(">hh", 0, number)
    value = struct.pack(">hi", 0, coordinator_epoch)
    return encode_batch(
        [(TIMESTAMP + offset, key, value, ())],
        base_offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def with_last_offset_delta(encoded: bytes, delta: int) -> bytes:
    """The batch with another last offset delta, under a right checksum."""
    changed = bytearray(encoded)
    struct.pack_into(">i", changed, 23, delta)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


SIZE = len(batch(0))
FIRST = (batch(0), batch(3), batch(6))
SECOND = (batch(9), batch(12), batch(15))


def producer_batches(*sequences: int) -> list[bytes]:
    """Batches of producer 7 from offset 0 on, which begin with these sequences."""
    return [
        batch(3 * index, producer_id=7, base_sequence=sequence)
        for index, sequence in enumerate(sequences)
    ]


def write_orders(
    directory: Path, first: Sequence[bytes] = FIRST, second: Sequence[bytes] = SECOND
) -> None:
    """Write the log directory, with these batches in the two segments."""
    write_partition(directory / PARTITION, {0: b"".join(first), 9: b"".join(second)})
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(directory / name, {PARTITION: LOG_END_OFFSET})
    write_checkpoint(directory / "log-start-offset-checkpoint", {})
    (directory / "meta.properties").write_text(META_PROPERTIES)
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def write_checkpoint(path: Path, offsets: dict[str, int]) -> None:
    """Write offsets by partition as a checkpoint file of a log directory."""
    entries = [f"{' '.join(name.rsplit('-', 1))} {offset}\n" for name, offset in offsets.items()]
    path.write_text("".join(("0\n", f"{len(entries)}\n", *entries)))


def write_committed_offset(directory: Path, offset: int, *, record_type: int = 1) -> None:
    """Write the coordinator's topic, where group `billing` has committed an offset of the log."""
    topic, _, partition = PARTITION.partition("-")
    key = struct.pack(">h", record_type) + _text("billing") + _text(topic)
    key += struct.pack(">i", int(partition))
    # Version 3: no leader epoch, no metadata.
    value = struct.pack(">hqi", 3, offset, -1) + _text("") + struct.pack(">q", TIMESTAMP)
    write_partition(
        directory / "__consumer_offsets-0", {0: encode_batch([(TIMESTAMP, key, value, ())])}
    )


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def overwrite(path: Path, position: int, content: bytes) -> None:
    """Put other bytes in the place of some of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def offset_index(*entries: tuple[int, int]) -> bytes:
    """An `.index` of relative offsets and positions."""
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    """A `.timeindex` of timestamps and relative offsets."""
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def transaction_index(
    *, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
) -> bytes:
    """A `.txnindex` of one aborted transaction."""
    return struct.pack(">hqqqq", 0, producer_id, first_offset, last_offset, last_stable_offset)


class SnapshotEntry(NamedTuple):
    """A producer as a snapshot keeps it, field by field in the order of the file."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int = -1
    current_transaction_first_offset: int = -1


def producer_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """A `.snapshot` with a right checksum."""
    listed = [struct.pack(">qhiqiqiq", *entry) for entry in entries]
    covered = struct.pack(">i", len(listed)) + b"".join(listed)
    return struct.pack(">hI", 1, crc32c(covered)) + covered

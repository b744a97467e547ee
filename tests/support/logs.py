"""Small logs for the tests of the audit and its commands, written without the engine."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benches.data import encode_batch

TIMESTAMP = 1_760_000_000_000
TOPIC_ID = "va8YOpSrRK6fWBUV4XmPLw"
META_PROPERTIES = "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n"


def batches(
    count: int, *, base_offset: int = 0, records: int = 3, value_size: int = 20
) -> list[bytes]:
    """Batches that follow each other, records of one key and a value of one letter."""
    return [
        encode_batch(
            [
                (TIMESTAMP + base_offset + index, b"key", b"v" * value_size, ())
                for index in range(start, start + records)
            ],
            base_offset=base_offset + start,
        )
        for start in range(0, count * records, records)
    ]


def segment(count: int, *, base_offset: int = 0, records: int = 3, value_size: int = 20) -> bytes:
    """The same as the bytes of a segment."""
    return b"".join(batches(count, base_offset=base_offset, records=records, value_size=value_size))


def segment_name(base_offset: int, suffix: str = "log") -> str:
    return f"{base_offset:020}.{suffix}"


def write_partition(
    directory: Path, segments: Mapping[int, bytes], *, topic_id: str = TOPIC_ID
) -> Path:
    """A partition directory as a broker leaves it, its indexes empty."""
    directory.mkdir(parents=True)
    for base_offset, data in segments.items():
        (directory / segment_name(base_offset)).write_bytes(data)
        for suffix in ("index", "timeindex"):
            (directory / segment_name(base_offset, suffix)).write_bytes(b"")
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return directory


def write_log_directory(
    directory: Path, partitions: Sequence[str] = ("orders-0", "orders-1", "payments-0")
) -> Path:
    """A log directory of sound partitions, two segments of 12 records each, stopped cleanly."""
    directory.mkdir(parents=True)
    for name in partitions:
        write_partition(directory / name, {0: segment(4), 12: segment(4, base_offset=12)})
    entries = "".join(f"{n.rpartition('-')[0]} {n.rpartition('-')[2]} 24\n" for n in partitions)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / name).write_text(f"0\n{len(partitions)}\n{entries}")
    (directory / "log-start-offset-checkpoint").write_text("0\n0\n")
    (directory / "meta.properties").write_text(META_PROPERTIES)
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    return directory


def hurt_partition(directory: Path) -> Path:
    """Three segments, of which the next start of a broker cuts off the second and the third."""
    write_partition(directory, {n: segment(4, base_offset=n) for n in (0, 12, 24)})
    path = directory / segment_name(12)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return directory


def files_under(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Every file with its bytes: what must be the same after an audit."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path.read_bytes()

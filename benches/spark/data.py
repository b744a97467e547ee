"""The files that the jobs read: made once from a seed, kept in `target/bench-spark`.

Segments repeat the same few batches under rising offsets, as `benches.whole` writes them; further
partitions are links to the first ones, so that a job lasts long beside what it costs to start one,
and the page cache holds all of it.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benches.data import MIB, Shape, generate, renumbered
from benches.worker import ROOT

KEPT = ROOT / "target" / "bench-spark"
_UNIT = 16 * MIB


@dataclass(frozen=True)
class Segments:
    """A log directory of partitions with one closed segment each."""

    directory: Path
    paths: tuple[Path, ...]
    """The files that are no link to another."""
    size: int
    """Bytes of those."""
    records: int
    """In those."""
    links: int
    """How often the same files are there, the first time included."""


def write_segment(path: Path, shape: Shape, size: int) -> int:
    """Write a segment of at most a size, as a broker rolls it; give its records."""
    unit = generate(shape, min(size, _UNIT) // 2).batches
    offset = 0
    with path.open("wb") as file:
        while True:
            run, following = renumbered(unit, offset)
            if file.tell() + len(run) > size:
                return offset
            file.write(run)
            offset = following


def segments(shape: Shape, size: int, *, count: int = 2, links: int = 1) -> Segments:
    """Give a log directory of `count` segments of a size, each there `links` times."""
    directory = KEPT / f"{shape}-{size // MIB}MiB-x{count}-x{links}"
    records = directory / "records"
    if not records.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        written = 0
        for number in range(count * links):
            folder = directory / "logs" / f"bench-{number}"
            folder.mkdir(parents=True)
            path = folder / f"{0:020d}.log"
            if number < count:
                written += write_segment(path, shape, size)
            else:
                os.link(directory / "logs" / f"bench-{number % count}" / path.name, path)
        records.write_text(str(written))
    paths = tuple(directory / "logs" / f"bench-{n}" / f"{0:020d}.log" for n in range(count))
    return Segments(
        directory / "logs",
        paths,
        sum(path.stat().st_size for path in paths),
        int(records.read_text()),
        links,
    )


@dataclass(frozen=True)
class Captured:
    """Record sets in a column of Parquet, one produce request a row."""

    directory: Path
    rows: int
    size: int
    """Bytes of the record sets."""


def captured(shape: Shape, size: int, *, codec: str, files: int = 8) -> Captured:
    """Give a directory of Parquet files with about so many bytes of record sets."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A producer's base offset is 0; it stands before what the CRC covers.
    batches = [bytes(8) + batch[8:] for batch in generate(shape, _UNIT).batches]
    directory = KEPT / f"captured-{shape}-{size // MIB}MiB-x{files}-{codec}"
    a_file = max(1, size // files // (sum(map(len, batches)) // len(batches)))
    rows = [batches[number % len(batches)] for number in range(a_file)]
    if not (directory / "_SUCCESS").exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        table = pa.table(
            {
                "topic": pa.array(["bench"] * a_file),
                "partition": pa.array(range(a_file), pa.int32()),
                "records": pa.array(rows, pa.binary()),
            }
        )
        for number in range(files):
            pq.write_table(
                table,
                directory / f"part-{number:05d}.parquet",
                row_group_size=max(1, 32 * MIB // len(rows[0])),
                compression=codec,
                # A dictionary would hold repeated record sets once.
                use_dictionary=["topic"],
            )
        (directory / "_SUCCESS").touch()
    return Captured(directory, a_file * files, files * sum(map(len, rows)))


def warm(*directories: Path) -> None:
    """Have every file in the page cache."""
    window = bytearray(8 * MIB)
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                with path.open("rb", buffering=0) as file:
                    while file.readinto(window):
                        pass

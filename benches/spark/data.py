"""The files that the jobs read: made once from a seed, kept in `target/bench-spark`.

Segments repeat the same few batches under rising offsets, as `benches.whole` writes them; further
partitions are links to the first ones, so that a job lasts long beside what it costs to start one,
and the page cache holds all of it.
"""

import os
import shutil
from collections.abc import Iterable
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

    @property
    def whole_size(self) -> int:
        """Bytes of the directory."""
        return self.size * self.links

    @property
    def whole_records(self) -> int:
        """Records in the directory."""
        return self.records * self.links


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


def _link(path: Path, others: Iterable[Path]) -> None:
    """Have the same file elsewhere, too."""
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        if not other.exists():
            os.link(path, other)


def segments(shape: Shape, size: int, *, count: int = 2, links: int = 1) -> Segments:
    """Return a log directory of `count` segments of a size, each there `links` times."""
    kept = KEPT / f"{shape}-{size // MIB}MiB-x{count}"
    names = [f"{number}.log" for number in range(count)]
    records = kept / "records"
    if not records.exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        records.write_text(str(sum(write_segment(kept / name, shape, size) for name in names)))
    logs, log = kept / f"logs-x{links}", f"{0:020d}.log"
    for at, name in enumerate(names):
        _link(kept / name, (logs / f"bench-{n * count + at}" / log for n in range(links)))
    paths = tuple(logs / f"bench-{number}" / log for number in range(count))
    size = sum(path.stat().st_size for path in paths)
    return Segments(logs, paths, size, int(records.read_text()), links)


@dataclass(frozen=True)
class Captured:
    """Record sets in a column of Parquet, one produce request a row."""

    directory: Path
    once: Path
    """The files of it that are no link to another."""
    rows: int
    """In those."""
    size: int
    """Bytes of the record sets in those."""
    links: int
    """How often the same files are there, the first time included."""


def captured(shape: Shape, size: int, *, codec: str, files: int = 8, links: int = 1) -> Captured:
    """Return a directory of Parquet files of about this size in record sets, `links` times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A producer's base offset is 0; it stands before what the CRC covers.
    batches = [bytes(8) + batch[8:] for batch in generate(shape, _UNIT).batches]
    kept = KEPT / f"captured-{shape}-{size // MIB}MiB-x{files}-{codec}"
    names = [f"part-{number:05d}.parquet" for number in range(files)]
    a_file = max(1, size // files // (sum(map(len, batches)) // len(batches)))
    rows = [batches[number % len(batches)] for number in range(a_file)]
    if not (kept / "_SUCCESS").exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        table = pa.table(
            {
                "topic": pa.array(["bench"] * a_file),
                "partition": pa.array(range(a_file), pa.int32()),
                "records": pa.array(rows, pa.binary()),
            }
        )
        for name in names:
            pq.write_table(
                table,
                kept / name,
                row_group_size=max(1, 32 * MIB // len(rows[0])),
                compression=codec,
                # A dictionary would hold repeated record sets once.
                use_dictionary=["topic"],
            )
        (kept / "_SUCCESS").touch()
    for times in (1, links):
        for name in names:
            _link(kept / name, (kept / f"x{times}" / f"{n}-{name}" for n in range(times)))
    sizes = sum(map(len, rows))
    return Captured(kept / f"x{links}", kept / "x1", a_file * files, files * sizes, links)


def record_sets(data: Captured) -> list[bytes]:
    """Return the record sets of captured files, in memory."""
    import pyarrow.parquet as pq

    sets: list[bytes] = pq.read_table(data.once, columns=["records"])["records"].to_pylist()
    return sets


def warm(*directories: Path) -> None:
    """Have every file in the page cache."""
    window = bytearray(8 * MIB)
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                with path.open("rb", buffering=0) as file:
                    while file.readinto(window):
                        pass

"""What Spark does with the reader of a stream, without Spark: plan, read, commit, and be killed."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.spark.source.options import parse_options
from ottla.spark.source.reader import TableReader
from ottla.spark.source.stream import ReadMaxBytes, make_stream_reader
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

COLUMNS = "topic,partition,offset,value"

TYPES = {
    "string": StringType(),
    "int64": LongType(),
    "int32": IntegerType(),
    "bool": BooleanType(),
    "binary": BinaryType(),
}

DAMAGE = StructType(
    [
        StructField("file", StringType()),
        *(StructField(n, LongType()) for n in ("position", "size", "first_offset", "last_offset")),
        StructField("reason", StringType()),
        StructField("bytes", BinaryType()),
    ]
)

STEPS = ("planned", "divided", "reading", "read")
"""Where a driver can be killed: after a plan was written down, before a batch was committed."""


class KilledError(Exception):
    """The driver of a query died."""


def schema(columns: str = COLUMNS, table: str = "records") -> StructType:
    """The schema Spark would hand to the reader."""
    request = parse_options({"path": "x", "columns": columns, "table": table})
    return StructType([StructField(c.name, TYPES[c.type]) for c in request.column_definitions])


class Query:
    """A query with a checkpoint and an idempotent sink."""

    def __init__(self, path: Path | str, **options: str) -> None:
        self.options = {"path": str(path), "columns": COLUMNS, **options}
        self.schema = schema(self.options["columns"], self.options.get("table", "records"))
        if options.get("on_damage") == "quarantine":
            self.schema.add("damage", DAMAGE)
        self.start: dict[str, Any] | None = None
        """The end of the last batch that was committed."""
        self.planned: dict[str, Any] | None = None
        """The end of a batch that was planned and not committed."""
        self.sink: dict[int, list[tuple[Any, ...]]] = {}
        self.triggers = 0
        self.restart()

    def restart(self, **options: str) -> None:
        self.options |= options
        self.reader = make_stream_reader(self.options, self.schema)

    @property
    def offset(self) -> dict[str, Any]:
        return self.start or {}

    def trigger(
        self,
        limit: int | None = None,
        *,
        says_start: bool = True,
        kill: Callable[[str], None] = lambda _: None,
    ) -> bool:
        """Read what there is; whether it was anything."""
        start = self.reader.initialOffset() if self.start is None else self.start
        if self.planned is None:
            if not says_start:
                end = self.reader.latestOffset()
            elif limit is None:
                end = self.reader.latestOffset(start, None)
            else:
                end = self.reader.latestOffset(start, ReadMaxBytes(limit))
            end = json.loads(json.dumps(end))
            if end == start:
                return False
            self.planned = end
        kill("planned")
        tasks = self.reader.partitions(start, self.planned)
        kill("divided")
        rows: list[tuple[Any, ...]] = []
        for task in tasks:
            for batch in self.reader.read(task):
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
            kill("reading")
        self.sink[self.triggers] = rows
        kill("read")
        self.start, self.planned = self.planned, None
        self.triggers += 1
        return True

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for _, rows in sorted(self.sink.items()) for row in rows]

    def offsets(self, topic: str = "orders") -> list[int]:
        return [row[2] for row in self.rows if row[0] == topic]

    def entry(self) -> dict[str, Any]:
        """What the checkpoint has of the only partition."""
        (entry,) = self.offset["partitions"].values()
        return dict(entry)

    def killed_at(self, step: str, limit: int | None = None) -> None:
        """Kill the driver at a step of the next trigger, and start it again."""

        def kill(at: str) -> None:
            if at == step:
                raise KilledError

        try:
            self.trigger(limit, kill=kill)
        except KilledError:
            self.restart()
            return
        raise AssertionError(f"never came to {step}")


def one_read(path: Path, **options: str) -> list[tuple[Any, ...]]:
    """The rows of one read of what is there now."""
    reader = TableReader(parse_options({"path": str(path), "columns": COLUMNS, **options}))
    return [
        row
        for task in reader.partitions()
        for rows in reader.read(task)
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    ]


def waiting(query: Query) -> list[str]:
    """Why partitions wait."""
    report = query.reader.reportLatestOffset()
    assert report is not None
    return [behind["waits"] for behind in report["behind"].values() if "waits" in behind]


class Growing:
    """A log that comes bit by bit into a directory that a stream follows."""

    def __init__(self, source: Path, root: Path) -> None:
        self.files = {p.name: p.read_bytes() for p in sorted(source.glob("*.log"))}
        self.directory = root / "orders-0"
        self.directory.mkdir(parents=True)
        self.size = 0

    @property
    def whole(self) -> int:
        return sum(map(len, self.files.values()))

    def grow_to(self, size: int) -> None:
        self.size = size
        before = 0
        for name, data in self.files.items():
            if size > before or before == 0:
                (self.directory / name).write_bytes(data[: size - before])
            before += len(data)


def drain(query: Query, rng: random.Random) -> None:
    """Read what there is, with kills and restarts."""
    while True:
        step = rng.choice(STEPS) if rng.random() < 0.4 else None

        def kill(at: str, step: str | None = step) -> None:
            if at == step:
                raise KilledError

        try:
            if not query.trigger(rng.choice([None, 1, 300]) if ReadMaxBytes else None, kill=kill):
                return
        except KilledError:
            query.restart()

"""What an audit gives back: a verdict, numbers, and tables."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.catalogue.explain import commands, transaction_commands
from ottla.audit.catalogue.findings import UNREADABLE, by_place, severity_counts
from ottla.audit.judge.coordinators import COORDINATOR_TABLES
from ottla.audit.judge.gathered import OUTCOME_TABLES
from ottla.audit.result.columns import FINDINGS, TABLES
from ottla.audit.result.save import Format, save_tables
from ottla.audit.result.split import condemns, split_file
from ottla.audit.result.tables import Table, json_line, missing
from ottla.errors import FindingsError
from ottla.logs.names import display
from ottla.logs.segment import batch_chunks, offset_of_timestamp, record_chunks, segment_table
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ottla._engine import TableBatch
    from ottla.audit.catalogue.findings import Finding, PlacedFinding
    from ottla.audit.judge.gathered import Outcome
    from ottla.audit.judge.packed import ScannedFile
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.logs.inventory import FileEntry, Inventory, Partition
    from ottla.storage import Files, Place

# Names of tables that are written out by `save` and `json_chunks` unasked.
ROW_TABLES = (*OUTCOME_TABLES, "recovery", *COORDINATOR_TABLES)
SAVED_TABLES = ("files", "batches", "findings", *ROW_TABLES)
JSON_TABLES = ("findings", *ROW_TABLES, "files")

# Records that are looked for in their batches because they hold retention back.
MAX_BLAMED = 1000


@dataclass(frozen=True, slots=True)
class Summary:
    """The audit in numbers."""

    files: int
    """Segments and snapshots that were read."""
    partitions: int
    batches: int
    records: int
    bytes: int
    findings: dict[Severity, int]
    """How many of each severity."""
    not_read: int
    """Things asked for that could not be read."""
    exit_code: int
    """Status of `ottla audit`: 0 nothing worse than info, 1 warnings, 2 errors, 3 not all read."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit.

    `batches` and `records` are read from the files when they are used, the other tables are in
    memory. `docs/tables.md` tells every column.
    """

    summary: Summary
    files: Table
    batches: Table
    records: Table
    findings: Table
    gaps: Table
    transactions: Table
    producers: Table
    epochs: Table
    timeline: Table
    metrics: Table
    differences: Table
    recovery: Table
    """What the next start of a broker makes of the partitions that have a finding."""
    groups: Table
    transactional_ids: Table
    directory: str
    """What the names of files are relative to."""
    level: str
    fail_on: Severity
    elapsed_s: float
    _segment_files: Callable[[], Iterator[tuple[int, Place, Row, list[PlacedFinding]]]] = field(
        repr=False, compare=False
    )
    """Path, place columns and findings of every file with records."""
    finding_places: tuple[str, ...] = field(repr=False, compare=False)
    """Of each finding the directory of its partition, or else its file."""

    @property
    def exit_code(self) -> int:
        """Status of `ottla audit`: 0 nothing worse than info, 1 warnings, 2 errors, 3 not read."""
        return self.summary.exit_code

    def raise_for_findings(self) -> None:
        """Raises when there is a finding as grave as `fail_on`, or something was not read.

        Raises:
            FindingsError: with these findings.
        """
        grave = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        findings = [f for f in self.findings if f["severity"] in grave]
        if findings:
            more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
            first = findings[0]
            place = f" in {first['file']}" if first["file"] else ""
            raise FindingsError(f"{first['name']}{place}: {first['message']}{more}", findings)

    def split_records(self) -> tuple[Table, Table]:
        """The good records, and those in quarantine with the reason: two tables.

        The first has the columns of `records`, the second those of `quarantine`
        (`docs/tables.md`). Error findings about the bytes of a segment keep records out: the one
        record that a finding names, where the rest of its batch can be read, else every record of
        the batch or range. What cannot be read as records is there with its bytes, a range of more
        than 4 MiB in several rows. Where a file has more than a thousand findings of a kind, all
        that lies behind the last one told is in quarantine.

        Both read the files when they are used, a bounded piece at a time, and see as much as the
        audit's level did.

            >>> from ottla.audit import audit  # the same as ottla.audit
            >>> valid, quarantine = audit("examples/data", topics=["orders"]).split_records()
            >>> len(valid), len(quarantine)
            (172, 0)
        """

        def chunks(half: int) -> Iterator[Sequence[Row]]:
            for _, place, prefix, findings in self._segment_files():
                yield from split_file(place, prefix, findings)[half]

        return Table("records", lambda: chunks(0)), Table("quarantine", lambda: chunks(1))

    def sql(self, query: str) -> Any:
        """A `duckdb.DuckDBPyRelation` of a query over the tables, each under its own name.

            >>> from ottla.audit import audit  # the same as ottla.audit
            >>> result = audit("examples/data", topics=["refunds"])
            >>> query = "select state, count(*) from transactions group by state order by state"
            >>> result.sql(query).fetchall()
            [('aborted', 3), ('committed', 2), ('hanging', 2)]

        Raises:
            MissingDependencyError: DuckDB is not installed.
            duckdb.Error: the query is not one of DuckDB's, or names no table.
        """
        try:
            import duckdb
        except ImportError as error:
            raise missing("duckdb", "ottla[duckdb]") from error
        connection = duckdb.connect()
        for name in TABLES:
            connection.register(name, getattr(self, name))
        return connection.sql(query)

    def save(
        self,
        directory: str | os.PathLike[str],
        format: Format = "jsonl",  # noqa: A002
        *,
        records: bool = False,
    ) -> None:
        """Writes every table as a file into a new directory, and `summary.json`.

        The directory appears whole or not at all. `records` is written on request only: it is as
        large as the log.

        Raises:
            FileExistsError: the directory exists and is not empty.
            MissingDependencyError: Parquet was asked for without pyarrow.
        """
        save(self, directory, (format,), records=records)

    def json_chunks(self) -> Iterator[str]:
        """The result as one JSON object, piece by piece, without `batches` and `records`."""
        from ottla._engine import __version__

        yield f'{{"version": {json.dumps(__version__)},\n "summary": '
        yield json.dumps(asdict(self.summary))
        for name in JSON_TABLES:
            table: Table = getattr(self, name)
            yield f',\n "{name}": ['
            for number, row in enumerate(table.rows()):
                yield ("\n  " if number == 0 else ",\n  ") + json_line(table.columns, row)
            yield "]"
        yield "}\n"


def make_result(plan: Plan, outcome: Outcome, *, level: str, fail_on: Severity) -> AuditResult:
    """Puts the outcome of a run into tables."""
    counts = severity_counts(outcome.findings)
    printed = _printed(plan, outcome.findings)
    not_read = sum(f.name == UNREADABLE for f in outcome.findings)
    batches = records = size = 0
    for file in outcome.files.values():
        batches += file.batches
        records += file.records
        size += file.size
    summary = Summary(
        files=len(outcome.files),
        partitions=sum(p.state != "delete" for p in plan.partitions),
        batches=batches,
        records=records,
        bytes=size,
        findings=counts,
        not_read=not_read,
        exit_code=_exit_code(counts, not_read),
    )
    files = sum(len(place.names) for place in plan.partitions)
    files += sum(len(directory.files) for directory in plan.log_directories)
    return AuditResult(
        summary=summary,
        files=Table.of_iterator("files", lambda: _file_rows(plan, outcome), files),
        batches=_segment_table("batches", batch_chunks, plan, outcome),
        records=_segment_table("records", record_chunks, plan, outcome),
        findings=Table.of_rows("findings", list(_finding_rows(outcome, printed))),
        recovery=Table.of_rows("recovery", outcome.recovery),
        **{
            name: _engine_table(name, plan, outcome)
            for name in (*OUTCOME_TABLES, *COORDINATOR_TABLES)
        },
        directory=display(plan.inventory.base),
        level=level,
        fail_on=fail_on,
        elapsed_s=outcome.elapsed_s,
        _segment_files=lambda: split_work(plan, outcome),
        finding_places=tuple(
            _place_of(finding, placed, plan.inventory) for finding, placed in printed
        ),
    )


def save(
    result: AuditResult,
    directory: str | os.PathLike[str],
    formats: Sequence[Format],
    *,
    records: bool = False,
) -> None:
    """`AuditResult.save` in several formats side by side."""
    tables = [getattr(result, name) for name in SAVED_TABLES]
    if records:
        tables.append(result.records)
    save_tables(tables, asdict(result.summary), directory, formats)


def _exit_code(counts: dict[Severity, int], not_read: int) -> int:
    if not_read:
        return 3
    if counts["error"]:
        return 2
    return 1 if counts["warning"] else 0


def _file_rows(plan: Plan, outcome: Outcome) -> Iterator[Row]:
    for partition, logs in _by_partition(plan):
        scanned = {
            path: file for index in logs for path, file in outcome.files.of_log(index).items()
        }
        for file in partition.files:
            yield _file_row(plan, outcome, file, partition, scanned)
    alone = [index for index, log in enumerate(plan.logs) if log.partition is None]
    scanned = {p: file for index in alone for p, file in outcome.files.of_log(index).items()}
    for directory in plan.log_directories:
        for file in directory.files:
            yield _file_row(plan, outcome, file, None, scanned)


def _by_partition(plan: Plan) -> Iterator[tuple[Partition, Sequence[int]]]:
    """The partitions of a plan, each with the indexes of its logs."""
    index = 0
    for partition in plan.partitions:
        start = index
        while index < len(plan.logs) and plan.logs[index].partition is partition:
            index += 1
        yield partition, range(start, index)


def _file_row(
    plan: Plan,
    outcome: Outcome,
    file: FileEntry,
    partition: Partition | None,
    all_scanned: Mapping[bytes, ScannedFile],
) -> Row:
    path = file.path
    scanned = all_scanned.get(path)
    return (
        plan.inventory.display(path),
        partition.topic if partition else None,
        partition.partition if partition else None,
        file.kind,
        file.state,
        partition.state if partition else None,
        file.size,
        file.base_offset,
        scanned is not None,
        scanned.batches if scanned else None,
        scanned.records if scanned else None,
        scanned.first_offset if scanned else None,
        scanned.next_offset if scanned else None,
        scanned.min_timestamp if scanned else None,
        scanned.max_timestamp if scanned else None,
        scanned.magics if scanned else None,
        scanned.codecs if scanned else None,
        file.fault or outcome.reasons.get(path),
    )


def _printed(plan: Plan, findings: Sequence[PlacedFinding]) -> list[tuple[Finding, PlacedFinding]]:
    """The findings as they are shown, by file and position, each with what it was made of."""
    wanted = {finding.directory for finding in findings}
    partitions = {p.directory: p for p in plan.partitions if p.directory in wanted}
    printed = []
    for placed in findings:
        partition = partitions.get(placed.directory or b"")
        finding = placed.printed(
            file=None if placed.path is None else plan.inventory.display(placed.path),
            topic=partition.topic if partition else placed.pattern,
            partition=partition.partition if partition else None,
        )
        printed.append((finding, placed))
    printed.sort(key=lambda pair: (pair[0].file or "", *by_place(pair[1])[1:]))
    return printed


def _place_of(finding: Finding, placed: PlacedFinding, inventory: Inventory) -> str:
    if placed.directory not in (None, inventory.base):
        return inventory.display(placed.directory)
    return finding.file or finding.topic or ""


def _finding_rows(
    outcome: Outcome, printed: Sequence[tuple[Finding, PlacedFinding]]
) -> Iterator[Row]:
    names = [column.name for column in FINDINGS]
    values = attrgetter(*names)
    wanted = {f.directory for f in outcome.findings if f.name == "open-transaction"}
    producers = {
        (partition.directory, row["producer_id"]): row
        for partition, row in (outcome.tables["producers"] if wanted else ())
        if partition.directory in wanted
    }
    for finding, placed in printed:
        row = dict(zip(names, values(finding), strict=True))
        path = None if placed.path is None else display(placed.path)
        producer = producers.get((placed.directory or b"", placed.producer_id))
        row["commands"] = finding.commands or tuple(commands(row, path, producer))
        yield tuple(row.values())


def _engine_table(name: str, plan: Plan, outcome: Outcome) -> Table:
    """A table of the engine's."""
    blamed: dict[int, int | None] = {}
    if name == "timeline":
        for number, (_, row) in enumerate(outcome.tables[name]):
            if row["retention"] == "held-back" and len(blamed) < MAX_BLAMED:
                blamed[number] = _blamed(row, plan.inventory.files)
    return Table.of_iterator(
        name,
        lambda: _engine_rows(name, outcome, plan.inventory.display, blamed),
        len(outcome.tables[name]),
    )


def _engine_rows(
    name: str,
    outcome: Outcome,
    shown: Callable[[bytes], str],
    blamed: Mapping[int, int | None],
) -> Iterator[Row]:
    """Rows of the engine, which knows no names of partitions and files, with theirs."""
    values = itemgetter(*(column.name for column in TABLES[name]))
    for number, (partition, row) in enumerate(outcome.tables[name]):
        named = {"topic": partition.topic, "partition": partition.partition, **row}
        if name == "transactions":
            named["commands"] = transaction_commands(named)
        elif name == "timeline":
            named["blamed_offset"] = blamed.get(number)
        elif name == "differences":
            named["files"] = [None if path is None else shown(path) for path in row["files"]]
        if "file" in row:
            named["file"] = shown(row["file"])
        yield values(named)


def _blamed(row: Mapping[str, Any], files: Files) -> int | None:
    """The record with the largest timestamp of a segment."""
    try:
        place = files.place(row["file"])
        return offset_of_timestamp(place, row["max_timestamp_position"], row["max_timestamp"])
    except OSError:
        return None


def split_work(
    plan: Plan, outcome: Outcome
) -> Iterator[tuple[int, Place, Row, list[PlacedFinding]]]:
    """Size of every file with records, in the order of the plan, and what `split_file` is told."""
    condemning: dict[bytes, list[PlacedFinding]] = defaultdict(list)
    for finding in filter(condemns, outcome.findings):
        condemning[finding.path or b""].append(finding)
    for index, log in enumerate(plan.logs):
        partition = log.partition
        place = (partition.topic, partition.partition) if partition else (None, None)
        for path, scanned in outcome.files.of_log(index).items():
            file = plan.inventory.display(path)
            read_from = plan.inventory.files.place(path, scanned.size)
            yield scanned.size, read_from, (file, *place), condemning.get(path, [])


def _segment_table(
    name: str,
    read: Callable[[Place], Iterator[list[Row]]],
    plan: Plan,
    outcome: Outcome,
) -> Table:
    """A table that reads the files when it is read, a bounded piece at a time."""

    def files() -> Iterator[tuple[Place, tuple[str, str | None, int | None]]]:
        for index, log in enumerate(plan.logs):
            partition = log.partition
            place = (partition.topic, partition.partition) if partition else (None, None)
            for path, scanned in outcome.files.of_log(index).items():
                read_from = plan.inventory.files.place(path, scanned.size)
                yield read_from, (plan.inventory.display(path), *place)

    def chunks() -> Iterator[Sequence[Row]]:
        for read_from, place in files():
            for rows in read(read_from):
                yield [(*place, *row) for row in rows]

    def batches(columns: Sequence[str] | None) -> Iterator[TableBatch]:
        for read_from, place in files():
            yield from segment_table(read_from, name, columns=columns, prefix=place)

    return Table.of_segments(name, chunks, batches)

"""The result of an audit: counts and tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import Field, asdict, dataclass, field, fields
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.audit.catalogue.explain import transaction_commands
from ottla.audit.catalogue.findings import UNREADABLE, count_of, severity_counts
from ottla.audit.judge.collector import OUTCOME_TABLES
from ottla.audit.judge.packed import NOTHING_BESIDE, PackedRows
from ottla.audit.judge.transaction_rows import BESIDE_TRANSACTIONS, COORDINATOR_TABLES
from ottla.audit.result.columns import TABLES
from ottla.audit.result.selection import EVERYTHING, Baseline, Selection
from ottla.audit.result.shown import ShownFindings
from ottla.audit.result.tables import Table, json_rows, missing
from ottla.audit.result.topics import topic_totals
from ottla.audit.result.verdict import Verdict, exit_code_of, verdict_of
from ottla.errors import FindingsError
from ottla.logs.names import display
from ottla.severity import SEVERITIES, Severity
from ottla.text import json_text
from ottla.words import count

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ottla._engine import TableBatch
    from ottla.audit.advice.deed import Deed
    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.judge.packed import ScannedFile
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.rows import (
        BatchRow,
        DifferenceRow,
        EpochRow,
        EventRow,
        FileRow,
        FindingRow,
        GapRow,
        GroupRow,
        MetricRow,
        ProducerRow,
        RecordRow,
        RecoveryRow,
        TimelineRow,
        TransactionalIdRow,
        TransactionRow,
    )
    from ottla.audit.result.save import Format
    from ottla.audit.result.topics import TopicTotals
    from ottla.logs.columns import Row
    from ottla.logs.inventory import FileEntry, Partition
    from ottla.storage import Files, Place

# Tables that `save` and `json_chunks` always write. `batches` and `records` are as many as the logs
# have, and are written on request.
ROW_TABLES = (*OUTCOME_TABLES, "recovery", *COORDINATOR_TABLES)
SAVED_TABLES = ("files", "events", "findings", *ROW_TABLES)
JSON_TABLES = ("events", "findings", *ROW_TABLES, "files")

# Maximum number of records looked up because they keep segments from retention.
MAX_BLAMED = 1000


class _Compared:
    """Equality, hash and repr of dataclasses by their fields.

    Those that a dataclass has of its own are compiled for each class whenever it is loaded, which
    takes longer than an audit of a small log.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, self.__class__):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
        return f"{type(self).__name__}({', '.join(values)})"

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.compare)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary(_Compared):
    """Counts of what the logs hold and of the findings."""

    files: int
    """Number of segments and snapshots read."""
    partitions: int
    batches: int
    records: int
    bytes: int
    findings: dict[Severity, int]
    """Number of findings of each severity."""
    not_read: int
    """Number of given paths that could not be read."""
    exit_code: int
    """Exit status of `ottla audit`: 0 nothing worse than info, 1 warnings, 2 errors, 3 not read."""
    verdict: Verdict
    """What is true of the logs, whatever is left out."""
    events: dict[Severity, int]
    """Number of events of each severity."""
    left_out: dict[Severity, int]
    """Number of findings of each severity that do not count; see `AuditResult.select`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AuditResult(_Compared):
    """The result of an audit.

    `batches` and `records` are read from the files when they are used; the other tables are in
    memory. `docs/tables.md` describes every column.
    """

    summary: Summary
    files: Table[FileRow]
    batches: Table[BatchRow]
    records: Table[RecordRow]
    events: Table[EventRow]
    """What happened, each with the findings that show it, the gravest first."""
    findings: Table[FindingRow]
    gaps: Table[GapRow]
    transactions: Table[TransactionRow]
    producers: Table[ProducerRow]
    epochs: Table[EpochRow]
    timeline: Table[TimelineRow]
    metrics: Table[MetricRow]
    differences: Table[DifferenceRow]
    recovery: Table[RecoveryRow]
    """What the next start of a broker does to the partitions that have a finding."""
    groups: Table[GroupRow]
    transactional_ids: Table[TransactionalIdRow]
    advice: tuple[Deed, ...]
    """What to do before the next start: for each log directory whose next start changes or refuses
    anything, or that has side files to be made anew, deeds with their price, the best first.
    `docs/advice.md` tells more."""
    directory: str
    """The directory that file names are relative to."""
    level: str
    fail_on: Severity
    elapsed_s: float
    started_ms: int
    """When the audit began, in ms since 1970."""
    _segment_files: Callable[[], Iterator[tuple[int, Place, Row, list[PlacedFinding]]]] = field(
        compare=False
    )
    """Size, place, place columns and findings of every file with records."""
    sources: tuple[bytes, ...] = field(compare=False)
    """The given paths, below which nothing is written."""
    _shown: ShownFindings = field(compare=False)
    _topic_totals: Callable[[], Sequence[TopicTotals]] = field(compare=False)
    paths: tuple[str, ...]
    """The audited paths, absolute or as URIs."""
    _select: Callable[[Selection], AuditResult] = field(compare=False)
    _selection: Selection = field(compare=False)

    def __repr__(self) -> str:
        found = self.summary.findings
        told = " and ".join(count(found[each], each) for each in ("error", "warning"))
        place = count(self.summary.partitions, "partition")
        return f"<AuditResult {self.summary.verdict}: {told} in {place}>"

    def _repr_html_(self) -> str:
        from ottla.notebook import text_html

        return text_html(repr(self)) + self.events._repr_html_()

    @property
    def finding_places(self) -> Sequence[str]:
        """For each finding, the directory of its partition, or its file."""
        return self._shown.places

    @property
    def finding_segments(self) -> Mapping[str, Sequence[str]]:
        """The names of the live segments in each directory of a partition that has a finding."""
        return self._shown.segments

    @property
    def topic_totals(self) -> Sequence[TopicTotals]:
        """What the logs of each topic hold, as far as they were read."""
        return self._topic_totals()

    @property
    def exit_code(self) -> int:
        """Exit status of `ottla audit`: 0 sound, 1 warnings, 2 errors, 3 not read."""
        return self.summary.exit_code

    def raise_for_findings(self) -> None:
        """Raises if a finding has at least the severity `fail_on`, or something was not read.

        Raises:
            FindingsError: with these findings.
        """
        severities = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        findings = [f for f in self.findings if f["severity"] in severities]
        if findings:
            more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
            first = findings[0]
            place = f" in {first['file']}" if first["file"] else ""
            raise FindingsError(f"{first['name']}{place}: {first['message']}{more}", findings)

    def select(
        self,
        *,
        severity: Severity = "info",
        ignore: Iterable[str] = (),
        baseline: Iterable[Mapping[str, Any]] | Baseline | None = None,
    ) -> AuditResult:
        """Returns the same result with fewer findings, as linters report them.

        The other findings do not count for `events` and the exit code, but they do for the verdict
        in `summary`, which has their number.

            >>> from ottla.audit import audit  # the same as ottla.audit
            >>> result = audit("examples/data", topics=["refunds"])
            >>> known = result.select(ignore=["open-transaction"])
            >>> known.exit_code, known.summary.verdict, known.summary.left_out["warning"]
            (0, 'SUSPECT', 2)

        Args:
            severity: the lowest severity that counts.
            ignore: names of findings that do not count.
            baseline: findings of an earlier audit of the same logs; they count only where they are
                graver now.

        Raises:
            ValueError: there is no such severity or finding.
        """
        if baseline is not None and not isinstance(baseline, Baseline):
            baseline = Baseline.of(baseline)
        wanted = Selection.of(severity, ignore, baseline)
        return self if wanted == self._selection else self._select(wanted)

    def split_records(self) -> tuple[Table, Table]:
        """Returns the valid records, and those in quarantine with the reason, as two tables.

        The first has the columns of `records`, the second those of `quarantine`
        (`docs/tables.md`). Error findings about the bytes of a segment send records to quarantine:
        only the record that a finding names if the rest of its batch can be read, else every record
        of the batch or range. What cannot be read as records is included as bytes, a range of more
        than 4 MiB in several rows. If a file has more than a thousand findings of one name,
        everything after the last one listed is in quarantine.

        Both tables read the files in chunks when they are used, and depend on the level of the
        audit.

            >>> from ottla.audit import audit  # the same as ottla.audit
            >>> valid, quarantine = audit("examples/data", topics=["orders"]).split_records()
            >>> len(valid), len(quarantine)
            (172, 0)
        """
        halves = (partial(_half_of_files, self._segment_files, half) for half in (0, 1))
        return Table("records", next(halves)), Table("quarantine", next(halves))

    def sql(self, query: str) -> Any:
        """Runs a DuckDB query over the tables, each under its own name.

        Returns a `duckdb.DuckDBPyRelation`.

            >>> from ottla.audit import audit  # the same as ottla.audit
            >>> result = audit("examples/data", topics=["refunds"])
            >>> query = "select state, count(*) from transactions group by state order by state"
            >>> result.sql(query).fetchall()
            [('aborted', 3), ('committed', 2), ('open', 2)]

        Raises:
            MissingDependencyError: DuckDB is not installed.
            duckdb.Error: the query is invalid, or names an unknown table.
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
        format: Format | None = None,  # noqa: A002
        *,
        batches: bool = False,
        records: bool = False,
    ) -> None:
        """Writes every table as a file into a new directory, and `summary.json`.

        The directory appears complete or not at all.

        Args:
            directory: a new or an empty one.
            format: Parquet where pyarrow is installed and nothing else is asked for, else JSON
                lines.
            batches: whether the table `batches` is written too, some hundred bytes a batch.
            records: whether the table `records` is written too, which is as large as the log.

        Raises:
            FileExistsError: the directory exists and is not empty.
            ValueError: it is inside a directory that was audited.
            MissingDependencyError: Parquet is requested without pyarrow.
        """
        formats = () if format is None else (format,)
        save(self, directory, formats, batches=batches, records=records)

    def json_chunks(self) -> Iterator[str]:
        """Yields the result as one JSON object in pieces, without `batches` and `records`."""
        from ottla._engine import __version__

        yield f'{{"version": {json_text(__version__)},\n "summary": '
        yield json_text(asdict(self.summary))
        yield f',\n "paths": {json_text(self.paths)}'
        yield f',\n "started_ms": {self.started_ms},\n "elapsed_s": {self.elapsed_s:.3f}'
        for name in JSON_TABLES:
            table: Table = getattr(self, name)
            yield f',\n "{name}": ['
            for number, chunk in enumerate(table.chunks()):
                yield "\n  " if number == 0 else ",\n  "
                yield json_rows(table.columns, chunk, ",\n  ").decode()
            yield "]"
        yield ',\n "advice": ['
        for number, deed in enumerate(self.advice):
            yield ("\n  " if number == 0 else ",\n  ") + json_text(asdict(deed))
        yield "]}\n"


def make_result(
    plan: Plan,
    outcome: Outcome,
    *,
    level: str,
    fail_on: Severity,
    selection: Selection = EVERYTHING,
) -> AuditResult:
    """Fills the tables from the outcome of a run, with the findings that count."""
    shown = ShownFindings(plan, outcome, selection)
    files = sum(len(place.names) for place in plan.partitions)
    files += sum(len(directory.files) for directory in plan.log_directories)
    return AuditResult(
        summary=_summary(plan, outcome, shown),
        files=Table.of_iterator("files", partial(_file_rows, plan, outcome), files),
        batches=_segment_table("batches", plan, outcome),
        records=_segment_table("records", plan, outcome),
        events=Table.of_iterator("events", shown.event_rows, shown.event_count),
        findings=Table.of_iterator("findings", shown.finding_rows, len(shown.counting)),
        recovery=Table.of_rows("recovery", outcome.recovery),
        **{
            name: _engine_table(name, plan, outcome)
            for name in (*OUTCOME_TABLES, *COORDINATOR_TABLES)
        },
        advice=outcome.advice,
        directory=display(plan.inventory.base),
        level=level,
        fail_on=fail_on,
        elapsed_s=outcome.elapsed_s,
        started_ms=outcome.started_ms,
        _segment_files=partial(split_work, plan, outcome),
        sources=tuple(path for path, _ in plan.inventory.sources),
        _shown=shown,
        _topic_totals=partial(topic_totals, plan, outcome),
        paths=tuple(sorted(display(source) for source, _ in plan.inventory.sources)),
        _select=partial(_selected, plan, outcome, level, fail_on),
        _selection=selection,
    )


def _selected(
    plan: Plan, outcome: Outcome, level: str, fail_on: Severity, selection: Selection
) -> AuditResult:
    return make_result(plan, outcome, level=level, fail_on=fail_on, selection=selection)


def _summary(plan: Plan, outcome: Outcome, shown: ShownFindings) -> Summary:
    totals = outcome.files.totals
    kinds, all_kinds = shown.counting.kinds, outcome.findings.kinds
    counts, all_counts = severity_counts(kinds), severity_counts(all_kinds)
    not_read = count_of(UNREADABLE, kinds)
    return Summary(
        files=totals.files,
        partitions=sum(p.state != "delete" for p in plan.partitions),
        batches=totals.batches,
        records=totals.records,
        bytes=totals.bytes,
        findings=counts,
        not_read=not_read,
        exit_code=exit_code_of(counts, not_read),
        verdict=verdict_of(all_counts, count_of(UNREADABLE, all_kinds)),
        events=shown.event_counts,
        left_out={severity: all_counts[severity] - counts[severity] for severity in counts},
    )


def save(
    result: AuditResult,
    directory: str | os.PathLike[str],
    formats: Sequence[Format],
    *,
    batches: bool = False,
    records: bool = False,
) -> None:
    """`AuditResult.save` for any number of formats at once."""
    from ottla.audit.result.save import default_format, save_tables
    from ottla.logs.output import check_output

    check_output(directory, result.sources)
    names = saved_tables(batches=batches, records=records)
    tables = [getattr(result, name) for name in names]
    save_tables(tables, asdict(result.summary), directory, formats or (default_format(),))


def saved_tables(*, batches: bool, records: bool) -> Sequence[str]:
    """Returns the names of the tables that are written."""
    return (*SAVED_TABLES, *(["batches"] if batches else []), *(["records"] if records else []))


def _file_rows(plan: Plan, outcome: Outcome) -> Iterator[Row]:
    for partition, logs in _by_partition(plan):
        scanned = {
            path: file for index in logs for path, file in outcome.files.of_log(index).items()
        }
        for file in partition.files:
            yield _file_row(plan, outcome, file, partition, scanned)
    alone = [index for index, owner in enumerate(plan.logs.partitions) if owner is None]
    scanned = {p: file for index in alone for p, file in outcome.files.of_log(index).items()}
    for directory in plan.log_directories:
        for file in directory.files:
            yield _file_row(plan, outcome, file, None, scanned)


def _by_partition(plan: Plan) -> Iterator[tuple[Partition, Sequence[int]]]:
    """Yields the partitions of a plan, each with the indexes of its logs."""
    index, owners = 0, plan.logs.partitions
    for partition in plan.partitions:
        start = index
        while index < len(owners) and owners[index] is partition:
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


def _engine_table(name: str, plan: Plan, outcome: Outcome) -> Table[Any]:
    """Returns a table of the engine."""
    blamed: dict[int, int | None] = {}
    if name == "timeline" and outcome.files.totals.held_back_segments:
        for number, (_, row) in enumerate(outcome.tables[name]):
            if row["retention"] == "held-back" and len(blamed) < MAX_BLAMED:
                blamed[number] = _blamed(row, plan.inventory.files)
    return Table.of_iterator(
        name,
        partial(_engine_rows, name, outcome, plan.inventory.display, blamed),
        len(outcome.tables[name]),
    )


def _engine_rows(
    name: str,
    outcome: Outcome,
    display_path: Callable[[bytes], str],
    blamed: Mapping[int, int | None],
) -> Iterator[Row]:
    """Yields rows of the engine with the names of their partitions and files."""
    columns = [column.name for column in TABLES[name]]
    show, rows = cache(display_path), outcome.tables[name]
    beside = BESIDE_TRANSACTIONS if name == "transactions" else NOTHING_BESIDE
    if isinstance(rows, PackedRows) and rows.has(columns, beside):
        yield from rows.rows_in(columns, show, beside)
        return
    values = itemgetter(*columns)
    for number, (partition, row) in enumerate(rows):
        named = {"topic": partition.topic, "partition": partition.partition, **row}
        if name == "transactions":
            named["commands"] = transaction_commands(named)
        elif name == "timeline":
            named["blamed_offset"] = blamed.get(number)
        elif name == "differences":
            named["files"] = [None if path is None else show(path) for path in row["files"]]
        if "file" in row:
            named["file"] = show(row["file"])
        yield values(named)


def _blamed(row: Mapping[str, Any], files: Files) -> int | None:
    """Returns the offset of the record with the largest timestamp of a segment."""
    from ottla.logs.segment import offset_of_timestamp

    try:
        place = files.place(row["file"])
        return offset_of_timestamp(place, row["max_timestamp_position"], row["max_timestamp"])
    except OSError:
        return None


def split_work(
    plan: Plan, outcome: Outcome
) -> Iterator[tuple[int, Place, Row, list[PlacedFinding]]]:
    """Yields the size of every file with records, in order, and the arguments of `split_file`."""
    from ottla.audit.result.split import condemns

    condemning: dict[bytes, list[PlacedFinding]] = defaultdict(list)
    for finding in filter(condemns, outcome.findings):
        condemning[finding.path or b""].append(finding)
    for index, partition in enumerate(plan.logs.partitions):
        place = (partition.topic, partition.partition) if partition else (None, None)
        for path, scanned in outcome.files.of_log(index).items():
            file = plan.inventory.display(path)
            read_from = plan.inventory.files.place(path, scanned.size)
            yield scanned.size, read_from, (file, *place), condemning.get(path, [])


def _half_of_files(
    files: Callable[[], Iterator[tuple[int, Place, Row, list[PlacedFinding]]]], half: int
) -> Iterator[Sequence[Row]]:
    from ottla.audit.result.split import split_file

    for _, place, prefix, findings in files():
        yield from split_file(place, prefix, findings)[half]


def _segment_table(name: str, plan: Plan, outcome: Outcome) -> Table[Any]:
    """Returns a table that reads the files in chunks when it is read."""
    return Table.of_segments(
        name,
        partial(_chunks_of_files, name, plan, outcome),
        partial(_batches_of_files, name, plan, outcome),
    )


def _files_of(
    plan: Plan, outcome: Outcome
) -> Iterator[tuple[Place, tuple[str, str | None, int | None]]]:
    for index, partition in enumerate(plan.logs.partitions):
        place = (partition.topic, partition.partition) if partition else (None, None)
        for path, scanned in outcome.files.of_log(index).items():
            read_from = plan.inventory.files.place(path, scanned.size)
            yield read_from, (plan.inventory.display(path), *place)


def _chunks_of_files(name: str, plan: Plan, outcome: Outcome) -> Iterator[Sequence[Row]]:
    from ottla.logs.segment import batch_chunks, record_chunks

    read = batch_chunks if name == "batches" else record_chunks
    for read_from, place in _files_of(plan, outcome):
        for rows in read(read_from):
            yield [(*place, *row) for row in rows]


def _batches_of_files(
    name: str, plan: Plan, outcome: Outcome, columns: Sequence[str] | None
) -> Iterator[TableBatch]:
    from ottla.logs.segment import segment_table

    for read_from, place in _files_of(plan, outcome):
        yield from segment_table(read_from, name, columns=columns, prefix=place)

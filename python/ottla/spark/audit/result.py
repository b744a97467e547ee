"""The result of an audit on Spark: that of the embedded audit, with data frames as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.audit.result.columns import SEGMENT_TABLES, TABLES
from ottla.audit.result.result import saved_tables
from ottla.logs.output import check_output
from ottla.spark.audit.frames import segment_frame, split_frames, table_frame
from ottla.spark.audit.views import create_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

    from pyspark.sql import DataFrame, SparkSession

    from ottla.audit import AuditResult, Severity, Summary
    from ottla.audit.advice.deed import Deed
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan


class SparkAuditResult:
    """The result of an audit on Spark, with the names and methods of `ottla.audit.AuditResult`.

    Every table is a `DataFrame` with the columns of `docs/tables.md`, in an attribute of its name:
    `result.findings.where("severity = 'error'")`. Nothing is scanned again for them; only `batches`
    and `records` read the files, when they are used.
    """

    def __init__(
        self, spark: SparkSession, plan: Plan, outcome: Outcome, collected: AuditResult
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._outcome = outcome
        self._collected = collected
        self._frames: dict[str, DataFrame] = {}

    def __getattr__(self, name: str) -> DataFrame:
        """Returns the table of a name."""
        # Copying an object looks up names with an underscore before it has any attributes.
        if name.startswith("_") or name not in TABLES:
            raise AttributeError(f"no attribute or table {name!r}; tables: {', '.join(TABLES)}")
        if name not in self._frames:
            self._frames[name] = self._frame(name)
        return self._frames[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *TABLES]

    def __repr__(self) -> str:
        numbers = self.summary
        return (
            f"<AuditResult on Spark of {self.directory}: {numbers.partitions} partitions,"
            f" {numbers.batches} batches, exit code {self.exit_code}>"
        )

    @property
    def summary(self) -> Summary:
        """Counts of what the logs hold and of the findings."""
        return self._collected.summary

    @property
    def exit_code(self) -> int:
        """Exit status of `ottla audit`: 0 sound, 1 warnings, 2 errors, 3 not read."""
        return self._collected.exit_code

    @property
    def advice(self) -> tuple[Deed, ...]:
        """What to do before the next start, as `ottla.audit.AuditResult.advice`."""
        return self._collected.advice

    @property
    def directory(self) -> str:
        """The directory that file names are relative to."""
        return self._collected.directory

    @property
    def level(self) -> str:
        """What was checked: crc, decode or full."""
        return self._collected.level

    @property
    def fail_on(self) -> Severity:
        """The lowest severity for which `raise_for_findings` raises."""
        return self._collected.fail_on

    @property
    def elapsed_s(self) -> float:
        """Duration in seconds."""
        return self._collected.elapsed_s

    def collect(self) -> AuditResult:
        """Returns the same result with tables on the driver, as returned by `ottla.audit`.

        Nothing is scanned or fetched, since the driver has the findings. `batches` and `records` of
        the returned result read the files from the driver.
        """
        return self._collected

    def raise_for_findings(self) -> None:
        """Raises if a finding has at least the severity `fail_on`, or something was not read.

        Raises:
            FindingsError: with these findings.
        """
        self._collected.raise_for_findings()

    def split_records(self) -> tuple[DataFrame, DataFrame]:
        """Returns the valid records, and those in quarantine with the reason.

        See `ottla.audit.AuditResult.split_records`. Both frames read the files when they are used;
        the second only files with findings.
        """
        return split_frames(self._spark, self._plan, self._outcome)

    def create_views(self, prefix: str = "", *, replace: bool = False) -> tuple[str, ...]:
        """Creates a temporary view of the session for every table, and returns their names.

        Views of an earlier audit under the same names are replaced.

        Args:
            prefix: what the names begin with, before that of the table: letters, digits and ``_``.
            replace: replaces views of other origin as well, and hides tables of these names.

        Raises:
            SparkError: the session has a view or a table of such a name that is not of Ottla. No
                view is created.
            ValueError: the prefix has other characters.

        >>> from ottla.spark import audit, session  # doctest: +SKIP
        >>> result = audit(session(), "examples/data")  # doctest: +SKIP
        >>> result.create_views("monday_")[0]  # doctest: +SKIP
        'monday_files'
        """
        return create_views(
            self._spark, {table: getattr(self, table) for table in TABLES}, prefix, replace=replace
        )

    def sql(self, query: str) -> DataFrame:
        """Runs a Spark SQL query over the tables, each under its own name.

        They remain as temporary views of the session; see `create_views` for other names.

        Raises:
            SparkError: the session has a view or a table of such a name that is not of Ottla.

        >>> from ottla.spark import audit, session  # doctest: +SKIP
        >>> result = audit(session(), "examples/data")  # doctest: +SKIP
        >>> result.sql("select name, count(*) from findings group by name")  # doctest: +SKIP
        """
        self.create_views()
        return self._spark.sql(query)

    def save(
        self,
        directory: str,
        format: Literal["jsonl", "parquet"] = "parquet",  # noqa: A002
        *,
        batches: bool = False,
        records: bool = False,
    ) -> None:
        """Writes every table with Spark's writers, each into a directory of its name.

        Any location that Spark can write to is possible. `batches`, and `records`, as large as the
        log, are written on request only. A table is complete when it has a file `_SUCCESS`.

        Raises:
            pyspark.errors.AnalysisException: a table exists there already.
            ValueError: it is inside a local directory that was audited.
        """
        if "://" not in directory:
            check_output(directory, [path for path, _ in self._plan.inventory.sources])
        for name in saved_tables(batches=batches, records=records):
            frame = getattr(self, name)
            frame.write.format({"jsonl": "json"}.get(format, format)).save(f"{directory}/{name}")

    def json_chunks(self) -> Iterator[str]:
        """Yields the result as one JSON object in pieces, without `batches` and `records`."""
        return self._collected.json_chunks()

    def _frame(self, name: str) -> DataFrame:
        if name in SEGMENT_TABLES:
            return segment_frame(self._spark, name, self._plan, self._outcome)
        return table_frame(self._spark, getattr(self._collected, name))

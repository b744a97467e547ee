"""Spark's data source `ottla`, found automatically where Ottla is installed.

::

    spark.read.format("ottla").option("table", "records").load("/var/lib/kafka")

Spark imports every top-level module named `pyspark_…` in its Python environment. The source itself
is in `ottla.spark.source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark.sql.datasource import DataSource
except ImportError:
    from ottla.spark.work.kind import require_source

    require_source()
    raise

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, DataSourceWriter
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):  # type: ignore[misc]
    """Tables of `ottla.audit` as DataFrames; `docs/spark/source.md` describes the options."""

    @classmethod
    def name(cls) -> str:
        """The name to pass to `format`."""
        return "ottla"

    def schema(self) -> str | StructType:
        """Returns the columns of the table that the options name."""
        from ottla.spark.source.tables import schema_for

        return schema_for(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of a table."""
        from ottla.spark.source.reader import make_reader
        from ottla.spark.source.tables import options_for

        return make_reader(options_for(self.options, schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Returns a reader that follows logs as they grow."""
        from ottla.spark.source.stream import make_stream_reader
        from ottla.spark.source.tables import options_for

        return make_stream_reader(options_for(self.options, schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer of rows as logs in a new directory."""
        from ottla.spark.sink.writer import make_writer

        return make_writer(self.options, schema, is_overwrite=overwrite)

    def __reduce__(self) -> tuple[object, ...]:
        from ottla.spark.work.worker import by_value

        return by_value("pyspark_ottla:DefaultSource", (dict(self.options),))

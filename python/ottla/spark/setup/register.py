"""Registers the data source `ottla` where the driver's Python does not have it installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.work.kind import SOURCE_VERSION, require_pyspark, spark_version
from ottla.spark.work.worker import find_ottla

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["register_source"]


def register_source(spark: SparkSession) -> None:
    """Makes `format("ottla")` available to a session from what `ottla.spark.ship` sent.

    Where Ottla is installed, Spark finds the data source by itself, and nothing happens; so it does
    with PySpark 3.5, which has no data sources in Python.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    if spark_version(require_pyspark().__version__) < SOURCE_VERSION:
        return
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(_source(spark))
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _source(spark: SparkSession) -> type[DataSource]:
    """Returns a class that is pickled by value and imports the actual source where it is used."""
    from pyspark.sql.datasource import DataSource

    find = find_ottla(spark)

    class ShippedSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "ottla"

        def _source(self) -> DataSource:
            find()
            from pyspark_ottla import DefaultSource

            return DefaultSource(self.options)

        def schema(self) -> str | StructType:
            return self._source().schema()

        def reader(self, schema: StructType) -> DataSourceReader:
            return self._source().reader(schema)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return self._source().streamReader(schema)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            return self._source().writer(schema, overwrite)

    return ShippedSource

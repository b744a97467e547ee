"""The data source `ottla` where the Python that plans reads has no Ottla of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.worker import find_ottla

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_source"]


def register_source(spark: SparkSession) -> None:
    """Let a session read `format("ottla")` with what `ottla.spark.ship` put there.

    Where Ottla is installed Spark finds the data source by itself, and nothing is done.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    require_pyspark()
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(_source())
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _source() -> Any:
    """A class that is pickled by value, and finds the other one where it is used."""
    from pyspark.sql.datasource import DataSource

    find = find_ottla()

    class ShippedSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "ottla"

        def found(self) -> Any:
            find()
            from pyspark_ottla import DefaultSource

            return DefaultSource(self.options)

        def schema(self) -> str:
            columns: str = self.found().schema()
            return columns

        def reader(self, schema: Any) -> Any:
            return self.found().reader(schema)

        def streamReader(self, schema: Any) -> Any:  # noqa: N802
            return self.found().streamReader(schema)

    return ShippedSource

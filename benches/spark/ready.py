"""A data source of Spark that returns ready-made columns: what it takes is Spark's."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benches.spark import peer


class ReadySource(DataSource):  # type: ignore[misc]
    """The columns of its schema, from the first rows of the segment `path`, `count` a task."""

    @classmethod
    def name(cls) -> str:
        """Return the format."""
        return "ottla_bench_ready"

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader."""
        return ReadyReader(dict(self.options), schema.fieldNames())


class ReadyReader(DataSourceReader):  # type: ignore[misc]
    """Returns the same rows again and again."""

    def __init__(self, options: dict[str, str], columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        return [InputPartition(number) for number in range(int(self._options["tasks"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        """Yield record batches."""
        first = peer.first_of_segment(self._options["path"], self._columns)
        return peer.repeated(first, int(self._options["count"]))

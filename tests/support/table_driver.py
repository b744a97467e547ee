"""The driver of a stream into a table, which waits where a test wants it.

    python -m support.table_driver delta HOME local[2]

runs a stream over `HOME/logs` until it is killed, or told to end. It waits, in the middle of what
it does, where `HOME/stops` has a file of that name: see `stopping_source`.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla.spark
from ottla.spark.source.options import parse_options
from ottla.spark.source.stream import LogStreamReader
from pyspark_ottla import DefaultSource
from support.clusters import CLUSTER_SETTINGS, SETTINGS
from support.table_streams import END, WITHIN_S, Moment, settings, stream


def _wait_at(stops: Path, moment: Moment) -> None:
    """Wait while a test wants it; the name of a file says which process does."""
    ends_at = time.monotonic() + WITHIN_S
    with contextlib.suppress(FileNotFoundError):
        while time.monotonic() < ends_at:
            asked = (stops / moment).read_text()
            (stops / f"{moment}-{asked}-{os.getpid()}").touch()
            time.sleep(0.02)


def stopping_source(stops: Path) -> type[Any]:
    """The data source under another name, which waits where `stops` has a file of the moment.

    *planning*: before it looks how far the logs go; *planned*: when the checkpoint has what is to
    be read; *reading*: a task has returned its first rows.
    """

    class StoppingReader(LogStreamReader):
        def latestOffset(self, *arguments: Any) -> dict[str, Any]:  # noqa: N802
            _wait_at(stops, "planning")
            return super().latestOffset(*arguments)

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
            _wait_at(stops, "planned")
            return super().partitions(start, end)

        def read(self, partition: Any) -> Iterator[Any]:
            for rows in super().read(partition):
                yield rows
                _wait_at(stops, "reading")

        def __reduce__(self) -> tuple[object, ...]:
            return StoppingReader, (self._request,)

    class StoppingSource(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return "stopping_ottla"

        def streamReader(self, schema: Any) -> Any:  # noqa: N802
            return StoppingReader(parse_options(self.options, schema))

        def __reduce__(self) -> tuple[object, ...]:
            return StoppingSource, (dict(self.options),)

    return StoppingSource


def main() -> None:
    """Run a stream until it is killed, or told to end."""
    kind: Any = sys.argv[1]
    home, master = Path(sys.argv[2]), sys.argv[3]
    stops = home / "stops"
    basis = CLUSTER_SETTINGS if master.startswith("local-cluster") else SETTINGS
    spark = ottla.spark.session(master, **{**basis, **settings(home.parent)})
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(stopping_source(stops))
    query = stream(spark, kind, home, source="stopping_ottla", processingTime="0 seconds")
    while not (stops / END).exists():
        # Whatever ends the query ends this program with its error.
        query.awaitTermination(0.1)
        if not query.isActive:
            sys.exit("the query ended")
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()

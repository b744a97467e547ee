"""Following logs that grow: every record once, wherever writing and reading stop."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import ottla
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import stores
from support.logs import segment, segment_name

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import DataLossWarning, SparkError
from ottla.spark.source.growing import list_logs
from ottla.spark.source.options import parse_options, schema_of
from ottla.spark.source.stream import ReadMaxBytes, make_stream_reader
from ottla.spark.source.tables import struct_of
from pyspark.sql import SparkSession
from support.streams import COLUMNS, Query


def expected(path: Path) -> list[tuple[Any, ...]]:
    names = COLUMNS.split(",")
    records = map(dict[str, Any], ottla.audit(path).records)
    return [tuple(row[name] for name in names) for row in records]


class Writer:
    """Writes logs as a broker does: at the end of the last segment, never in whole batches."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.rng = rng
        self.left: dict[Path, bytes] = {}
        self.order: dict[str, list[Path]] = {}
        for name in ("orders-0", "orders-1", "refunds-0"):
            base = 0
            self.order[name] = []
            for _ in range(rng.randrange(1, 5)):
                records, count = rng.randrange(1, 4), rng.randrange(1, 9)
                path = root / name / segment_name(base)
                data = segment(
                    count, base_offset=base, records=records, value_size=rng.randrange(80)
                )
                self.left[path] = data
                self.order[name].append(path)
                base += records * count

    def write(self) -> bool:
        """Append some bytes to some partition; whether any were left."""
        names = [name for name, paths in self.order.items() if paths]
        if not names:
            return False
        name = self.rng.choice(names)
        path = self.order[name][0]
        size = self.rng.choice((1, 7, 61, 200, 1000, 5000))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(self.left[path][:size])
        self.left[path] = self.left[path][size:]
        if not self.left[path]:
            self.order[name].pop(0)
        return True


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_every_record_comes_once_wherever_writing_and_reading_stop(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    root = tmp_path_factory.mktemp("logs")
    writer, query = Writer(root, rng), Query(root)
    says_start = rng.random() < 0.8
    limits = [None, 1, 300, 2000] if ReadMaxBytes and says_start else [None]
    while writer.write():
        if rng.random() < 0.3:
            query.trigger(rng.choice(limits), says_start=says_start)
        if rng.random() < 0.1:
            query.restart()
    while query.trigger(rng.choice(limits), says_start=says_start):
        pass
    assert sorted(query.rows) == sorted(expected(root))


def test_half_a_batch_waits_for_its_other_half(tmp_path: Path) -> None:
    data = segment(2)
    path = tmp_path / "orders-0" / segment_name(0)
    path.parent.mkdir()
    query = Query(tmp_path)
    path.write_bytes(data[: len(data) - 1])
    assert query.trigger()
    assert query.offsets() == [0, 1, 2]
    assert not query.trigger()
    path.write_bytes(data)
    assert query.trigger()
    assert query.offsets() == [0, 1, 2, 3, 4, 5]


def test_a_batch_whose_bytes_are_not_all_there_yet_waits_though_its_length_is(
    tmp_path: Path,
) -> None:
    data = segment(2)
    path = tmp_path / "orders-0" / segment_name(0)
    path.parent.mkdir()
    query = Query(tmp_path)
    path.write_bytes(data[:-10] + bytes(10))
    assert query.trigger()
    assert query.offsets() == [0, 1, 2]
    path.write_bytes(data)
    assert query.trigger()
    assert query.offsets() == [0, 1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
def test_damage_is_passed_where_it_is_to_be_skipped(tmp_path: Path) -> None:
    data = bytearray(segment(3))
    size = len(data) // 3
    data[size + 8 : size + 12] = b"\xff" * 4
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / segment_name(0)).write_bytes(data)
    query = Query(tmp_path)
    with pytest.raises(SparkError, match=r"damage at position \d+, where offset 3 is expected"):
        query.trigger()
    query.restart(on_damage="skip")
    query.trigger()
    assert query.offsets() == [0, 1, 2, 6, 7, 8]
    (directory / segment_name(9)).write_bytes(segment(1, base_offset=9))
    query.trigger()
    assert query.offsets() == [0, 1, 2, 6, 7, 8, 9, 10, 11]


def test_a_stream_has_the_columns_of_sparks_kafka_source(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / segment_name(0)
    path.parent.mkdir()
    path.write_bytes(segment(2))
    options = {"path": str(tmp_path), "schema": "kafka", "columns": "topic,offset,timestampType"}
    reader = make_stream_reader(options, struct_of(schema_of(options)))
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, None))
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert {(row["topic"], row["timestampType"]) for row in rows} == {("orders", 0)}


def test_what_a_checkpoint_holds_does_not_grow_with_segments(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    query = Query(tmp_path)
    sizes = []
    for number in range(20):
        (directory / segment_name(3 * number)).write_bytes(segment(1, base_offset=3 * number))
        query.trigger()
        sizes.append(len(json.dumps(query.offset)))
    assert query.offsets() == list(range(60))
    assert max(sizes) - min(sizes) < 20
    entry = query.entry()
    size = len(segment(1, base_offset=57))
    assert (entry["segment"], entry["position"]) == (57, size)
    assert (entry["first_offset"], entry["next_offset"]) == (0, 60)
    assert entry["planned"]["first_offset"] == 57


def _read_to_the_middle(root: Path, **options: str) -> tuple[Query, Path]:
    """A query that has read all of one segment of 6 records."""
    directory = root / "orders-0"
    directory.mkdir()
    (directory / segment_name(0)).write_bytes(segment(2))
    query = Query(root, **options)
    query.trigger()
    return query, directory


def test_retention_may_take_what_was_read(tmp_path: Path) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    (directory / segment_name(6)).write_bytes(segment(2, base_offset=6))
    (directory / segment_name(0)).unlink()
    query.trigger()
    assert query.offsets() == list(range(12))


def test_retention_may_not_take_unsaid_what_was_not_read(tmp_path: Path) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    (directory / segment_name(9)).write_bytes(segment(1, base_offset=9))
    (directory / segment_name(0)).unlink()
    with pytest.raises(SparkError, match=r"offsets 6 to 8 are gone.*fail_on_data_loss=false"):
        query.trigger()
    query.restart(fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="offsets 6 to 8 are gone"):
        query.trigger()
    assert query.offsets() == [*range(6), 9, 10, 11]
    assert query.entry()["passed_offsets"] == 3


def test_a_segment_that_was_cut_is_told(tmp_path: Path) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    (directory / segment_name(0)).write_bytes(segment(1))
    with pytest.raises(SparkError, match=r"was cut, .* bytes of it were read"):
        query.trigger()


def test_a_log_that_was_cut_and_written_again_is_told_and_goes_on_behind_what_was_read(
    tmp_path: Path,
) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    size = len(segment(1))
    other = next(
        batch
        for value_size in range(size)
        if len(batch := segment(1, base_offset=3, records=1, value_size=value_size)) == size
    )
    (directory / segment_name(0)).write_bytes(segment(1) + other + segment(3, base_offset=4))
    with pytest.raises(SparkError, match=f"position {2 * size} has a batch of offset 4, but rec"):
        query.trigger()
    query.restart(fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="was rewritten"):
        query.trigger()
    assert query.offsets() == list(range(13))


def test_a_partition_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    (tmp_path / "refunds-0").mkdir()
    (tmp_path / "refunds-0" / segment_name(0)).write_bytes(segment(1))
    shutil.rmtree(directory)
    query.trigger()
    assert query.offsets("refunds") == [0, 1, 2]


@pytest.mark.skipif(ReadMaxBytes is None, reason="PySpark before 4.2 knows no limits")
def test_a_limit_is_shared_and_every_trigger_gets_on(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "refunds-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / segment_name(0)).write_bytes(segment(20))
    size = len(segment(1))
    query = Query(tmp_path)
    assert query.trigger(6 * size)
    assert len(query.rows) == 6 * 3
    assert {(topic, partition) for topic, partition, *_ in query.rows} == {
        ("orders", 0),
        ("orders", 1),
        ("refunds", 0),
    }
    while query.trigger(1):
        pass
    assert sorted(query.rows) == sorted(expected(tmp_path))
    assert query.triggers == 1 + 54


@pytest.mark.skipif(ReadMaxBytes is None, reason="PySpark before 4.2 prepares by itself")
def test_a_query_of_what_is_available_ends_there(tmp_path: Path) -> None:
    query, directory = _read_to_the_middle(tmp_path)
    query.start, query.sink = None, {}
    query.reader.prepareForTriggerAvailableNow()
    with (directory / segment_name(0)).open("ab") as file:
        file.write(segment(1, base_offset=6))
    (directory / segment_name(9)).write_bytes(segment(1, base_offset=9))
    while query.trigger(1):
        pass
    assert query.offsets() == list(range(6))


def test_batches_come_as_a_stream_too(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / segment_name(0)).write_bytes(segment(4))
    query = Query(tmp_path, table="batches", columns="topic,file,base_offset,position,is_valid")
    query.trigger()
    size = len(segment(1))
    name = f"orders-0/{segment_name(0)}"
    assert query.rows == [("orders", name, 3 * n, n * size, True) for n in range(4)]


def test_other_tables_do_not_stream(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="table gaps needs whole logs: streams have batches or"):
        Query(tmp_path, table="gaps", columns="topic")


def test_only_patterns_of_topics_are_followed(tmp_path: Path) -> None:
    for name in ("orders-0", "refunds-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / segment_name(0)).write_bytes(segment(1))
    query = Query(tmp_path, topics="ref*")
    query.trigger()
    assert {row[0] for row in query.rows} == {"refunds"}


def test_a_directory_may_be_empty_at_first_and_must_be_there(tmp_path: Path) -> None:
    request = parse_options({"path": str(tmp_path)})
    assert list_logs(request) == {}
    with pytest.raises(SparkError, match="no such file or directory"):
        list_logs(parse_options({"path": str(tmp_path / "nowhere")}))


def test_segments_are_followed_in_a_store() -> None:
    if reason := stores.missing():
        pytest.skip(reason)
    with stores.s3_server() as url:
        store = stores.Store(url)
        bucket = store.bucket()
        options = {f"storage.{name}": value for name, value in store.options.items()}
        query = Query(f"{bucket}/logs", **options)
        data = segment(4)
        store.put(f"{bucket}/logs/orders-0/{segment_name(0)}", data[:-1])
        query.trigger()
        assert query.offsets() == list(range(9))
        store.put(f"{bucket}/logs/orders-0/{segment_name(0)}", data)
        store.put(f"{bucket}/logs/orders-0/{segment_name(12)}", segment(2, base_offset=12))
        query.trigger()
        assert query.offsets() == list(range(18))


@pytest.mark.spark
def test_a_query_goes_on_from_its_checkpoint(everywhere: SparkSession, tmp_path: Path) -> None:
    root, table, checkpoint = (tmp_path / name for name in ("logs", "table", "checkpoint"))
    root.mkdir()
    rng = random.Random(7)
    writer = Writer(root, rng)
    is_writing = True
    while is_writing:
        for _ in range(20):
            is_writing = writer.write()
        frame = everywhere.readStream.format("ottla").option("columns", COLUMNS).load(str(root))
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(checkpoint))
            .option("path", str(table))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    rows = everywhere.read.parquet(str(table)).collect()
    assert sorted(map(tuple, rows)) == sorted(expected(root))

"""Records as a consumer gets them: the data source against `ottla.read_partition`."""

import datetime as dt
import os
import pickle
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import ottla
import pytest
from support.damage import unpack
from support.logs import segment, segment_name, write_log_directory, write_partition
from support.transactions import transactional_log

from benches.data import encode_batch

pytest.importorskip("pyspark", minversion="4.0")

import ottla.spark
from ottla.errors import DamageWarning, SparkError
from ottla.spark.source import spans
from ottla.spark.source.options import parse_options, schema_of
from ottla.spark.source.reader import TableReader

SAMPLES = Path(__file__).parents[2] / "samples" / "damage.tar.xz"
Isolation = Literal["read_uncommitted", "read_committed"]
LEVELS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
SMALL = str(64 << 10)


def read(path: object, **options: str) -> list[dict[str, Any]]:
    """Return the rows of all tasks, each sent as Spark sends it."""
    reader = TableReader(parse_options({"path": str(path), **options}))
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))  # noqa: S301 - our own
        for row in batch.to_pylist()
    ]


def consumed(path: Path, isolation: Isolation = "read_uncommitted") -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return [
            (r.offset, r.timestamp, r.key, r.value, r.headers)
            for r in ottla.read_partition(path, isolation=isolation)
        ]


def partitions_below(root: Path) -> Iterator[Path]:
    for directory, _, files in sorted(os.walk(root)):
        # No consumer gets what is to be deleted.
        is_deleted = directory.endswith("-delete")
        if not is_deleted and any(len(name) == 24 and name.endswith(".log") for name in files):
            yield Path(directory)


def assert_agreement(root: Path) -> int:
    """Compare the source with a consumer's view of each partition. Return how many there are."""
    count = 0
    for path in partitions_below(root):
        for isolation in LEVELS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamageWarning)
                rows = read(path, on_damage="skip", isolation_level=isolation)
            found = [
                (r["offset"], r["timestamp"], r["key"], r["value"],
                 [(h["key"], h["value"]) for h in r["headers"]])
                for r in rows
                if r["control"] is None
            ]  # fmt: skip
            expected = [(*row[:4], list(row[4])) for row in consumed(path, isolation)]
            assert found == expected, (path, isolation)
        count += 1
    return count


@pytest.mark.slow
def test_the_source_counts_what_a_consumer_counts_in_every_damaged_sample(tmp_path: Path) -> None:
    assert assert_agreement(unpack(SAMPLES, tmp_path)) > 100


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", ["corpus", "damage"])
def test_the_source_counts_what_a_consumer_counts_in_every_corpus(name: str) -> None:
    assert assert_agreement(Path(__file__).parents[4] / "shared" / name) > 50


# Transactions.


@pytest.mark.parametrize("seed", range(40))
def test_records_of_aborted_and_open_transactions_are_left_out_in_any_division(
    seed: int, tmp_path: Path
) -> None:
    path = transactional_log(tmp_path, random.Random(seed))
    for isolation in LEVELS:
        rows = read(path, schema="kafka", isolation_level=isolation, partition_bytes=SMALL)
        expected = consumed(path, isolation)
        assert [(r["offset"], r["value"]) for r in rows] == [(r[0], r[3]) for r in expected]


# Columns.


def test_the_columns_are_those_of_sparks_kafka_source() -> None:
    plain = (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint,"
        " `timestamp` timestamp, `timestampType` int"
    )
    options = {"path": "x", "schema": "kafka"}
    assert schema_of(options) == plain
    with_headers = plain + ", `headers` array<struct<key:string,value:binary>>"
    assert schema_of({**options, "includeHeaders": "true"}) == with_headers


def two_kinds(root: Path) -> Path:
    """A log of three batches: plain with headers, by the broker's clock, of a producer."""
    headers = (("a", b"1"), ("none", None), ("a", b"\xff"))
    plain = [ottla.NewRecord(b"k", b"v", timestamp=7, headers=headers), ottla.NewRecord(None, None)]
    first = ottla.build_batch(plain, base_offset=0)
    second = ottla.build_batch(
        [ottla.NewRecord(b"", b"")], base_offset=2, log_append_time_ms=1_700_000_000_123
    )
    third = ottla.build_batch(
        [ottla.NewRecord(b"k", b"w", timestamp=9)],
        base_offset=3,
        producer_id=41,
        producer_epoch=2,
        base_sequence=5,
    )
    return write_partition(root / "orders-3", {0: first + second + third})


def test_rows_are_those_of_sparks_kafka_source(tmp_path: Path) -> None:
    rows = read(two_kinds(tmp_path), schema="kafka", includeHeaders="true")

    def at(millis: int) -> dt.datetime:
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
        return epoch + dt.timedelta(milliseconds=millis)

    first = {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 3,
        "offset": 0,
        "timestamp": at(7),
        "timestampType": 0,
        "headers": [
            {"key": "a", "value": b"1"},
            {"key": "none", "value": None},
            {"key": "a", "value": b"\xff"},
        ],
    }
    assert rows[0] == first
    # As there, a record without headers has null, not an empty array.
    assert (rows[1]["key"], rows[1]["value"], rows[1]["headers"]) == (None, None, None)
    assert (rows[2]["timestamp"], rows[2]["timestampType"]) == (at(1_700_000_000_123), 1)
    assert [row["offset"] for row in rows] == [0, 1, 2, 3]


def test_our_own_columns_say_what_the_batch_says(tmp_path: Path) -> None:
    path = two_kinds(tmp_path)
    rows = read(path)
    assert [row["timestamp_type"] for row in rows] == ["create_time"] * 2 + [
        "log_append_time",
        "create_time",
    ]
    assert [row["producer_id"] for row in rows] == [-1, -1, -1, 41]
    assert [row["producer_epoch"] for row in rows] == [-1, -1, -1, 2]
    assert [row["sequence"] for row in rows] == [-1, -1, -1, 5]
    assert {row["is_transactional"] for row in rows} == {False}
    assert rows[1]["headers"] == []
    [text, *_] = [row["headers"] for row in read(path, headers="json")]
    assert text == '[["a", "1"], ["none", null], ["a", {"base64": "/w=="}]]'


def test_timestamps_that_spark_cannot_hold_are_an_error_null_or_the_nearest(tmp_path: Path) -> None:
    impossible = 2**62
    batch = encode_batch([(impossible, b"k", b"v", ()), (5, b"k", b"w", ())])
    path = write_partition(tmp_path / "orders-0", {0: batch})
    with pytest.raises(SparkError, match=rf"offset 0 has timestamp {impossible}.*=null or clamp"):
        read(path, schema="kafka")
    found = read(path, schema="kafka", impossible_timestamps="null", columns="timestamp")
    assert [row["timestamp"] is None for row in found] == [True, False]
    # The year is none of Python's.
    options = {"path": str(path), "schema": "kafka", "impossible_timestamps": "clamp"}
    reader = TableReader(parse_options({**options, "columns": "timestamp"}))
    [times] = [b.column(0).cast("int64") for p in reader.partitions() for b in reader.read(p)]
    assert times.to_pylist() == [2**63 // 1000 * 1000, 5000]
    # In our own columns every number is possible.
    assert [row["timestamp"] for row in read(path)] == [impossible, 5]


# Damage.


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a log of three batches of three records, the second of them damaged."""
    data = bytearray(segment(3))
    data[len(data) // 2] ^= 1
    return write_partition(tmp_path / "orders-0", {0: bytes(data), 9: segment(1, base_offset=9)})


def test_damage_ends_the_read_unless_told_otherwise(damaged: Path) -> None:
    for schema in ("ottla", "kafka"):
        with pytest.raises(SparkError, match=r"has a wrong CRC; offsets 3 to 5 .*on_damage=skip"):
            read(damaged, schema=schema)


def test_damage_that_is_skipped_is_a_warning(damaged: Path) -> None:
    with pytest.warns(DamageWarning, match=r"has a wrong CRC; offsets 3 to 5 are lost"):
        rows = read(damaged, on_damage="skip")
    assert [row["offset"] for row in rows] == [0, 1, 2, *range(6, 12)]


@pytest.mark.parametrize("schema", ["ottla", "kafka"])
def test_damage_in_quarantine_is_a_row_with_its_bytes(damaged: Path, schema: str) -> None:
    rows = read(damaged, on_damage="quarantine", schema=schema)
    assert [row["offset"] for row in rows if row["damage"] is None] == [0, 1, 2, *range(6, 12)]
    [row] = [row for row in rows if row["damage"] is not None]
    assert (row["topic"], row["partition"], row["offset"], row["value"]) == (
        "orders",
        0,
        None,
        None,
    )
    found = row["damage"]
    data = (damaged / segment_name(0)).read_bytes()
    size = len(data) // 3
    assert found["bytes"] == data[size : 2 * size]
    assert (found["position"], found["size"]) == (size, size)
    assert (found["first_offset"], found["last_offset"]) == (3, 5)
    assert found["file"].endswith(segment_name(0))
    assert "wrong CRC" in found["reason"]


def test_much_damage_takes_several_rows(tmp_path: Path) -> None:
    lost = random.Random(1).randbytes(2_500_000)
    data = segment(1) + lost + segment(1, base_offset=90)
    path = write_partition(tmp_path / "orders-0", {0: data})
    rows = [row["damage"] for row in read(path, on_damage="quarantine") if row["damage"]]
    assert [len(row["bytes"]) for row in rows] == [1 << 20, 1 << 20, 2_500_000 - (2 << 20)]
    assert b"".join(row["bytes"] for row in rows) == lost


def test_the_torn_end_that_a_killed_broker_leaves_is_no_damage(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(3)[:-5]})
    assert [row["offset"] for row in read(path)] == list(range(6))
    path = write_partition(tmp_path / "zeros-0", {0: segment(3) + bytes(5000)})
    assert len(read(path)) == 9


def test_segments_that_overlap_are_an_error_and_not_rows_twice(tmp_path: Path) -> None:
    first, second = segment(4), segment(2, base_offset=6)
    path = write_partition(tmp_path / "orders-0", {0: first, 6: second})
    with pytest.raises(SparkError, match=r"which came before"):
        read(path)
    with pytest.raises(SparkError, match="read with a larger partition_bytes"):
        read(path, partition_bytes=SMALL)


def overlapping_log(root: Path, seed: int) -> Path:
    """A log with transactions whose last offset comes again in a segment of its own."""
    path = transactional_log(root, random.Random(seed))
    *_, last = read(path)
    (path / segment_name(last["offset"])).write_bytes(segment(1, base_offset=last["offset"]))
    return path


COMMITTED = {"isolation_level": "read_committed", "on_damage": "skip", "schema": "kafka"}


@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
@pytest.mark.parametrize("seed", [10, 29])
def test_segments_that_overlap_are_read_by_one_task_or_where_nobody_asks_for_them(
    seed: int, tmp_path: Path
) -> None:
    path = overlapping_log(tmp_path, seed)
    assert len(read(path, **COMMITTED)) == len(consumed(path, "read_committed"))


@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
def test_segments_that_overlap_are_an_error_where_a_task_knows_some_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = overlapping_log(tmp_path, 29)
    monkeypatch.setattr(spans, "MAX_TRANSACTIONS", 0)
    with pytest.raises(SparkError, match=r"a task knows only.*ottla\.read_partition reads"):
        read(path, **COMMITTED)


# Offsets.


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log directory of two partitions, each with offsets 0 to 23 in two segments."""
    return write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])


def offsets(path: Path, **options: str) -> list[list[int]]:
    rows = read(path, **options)
    return [[r["offset"] for r in rows if r["partition"] == number] for number in (0, 1)]


def test_a_read_begins_and_ends_where_it_is_told(logs: Path) -> None:
    [everything, _] = offsets(logs)
    end = everything[-1] + 1
    start = '{"orders": {"0": 5, "1": -2}}'
    assert offsets(logs, startingOffsets=start) == [everything[5:], everything]
    stop = '{"orders": {"0": -1, "1": 14}}'
    assert offsets(logs, endingOffsets=stop) == [everything, everything[:14]]
    assert offsets(logs, startingOffsets="earliest", endingOffsets="latest") == [everything] * 2
    beyond = f'{{"orders": {{"0": {end}, "1": {end - 1}}}}}'
    assert offsets(logs, startingOffsets=beyond) == [[], everything[-1:]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets is latest for orders-0: that is for"),
        ({"startingOffsets": '{"orders": {"0": 5}}'}, "does not name orders-1: name all"),
        ({"endingOffsets": '{"refunds": {"0": 5}}'}, "endingOffsets names refunds-0, which is not"),
        ({"startingTimestamp": str(2**60)}, "no record of orders-0 is at 1152921504606846976"),
    ],
)
def test_a_beginning_that_cannot_be_is_an_error(
    options: dict[str, str], message: str, logs: Path
) -> None:
    with pytest.raises(SparkError, match=message):
        read(logs, **options)


def test_offsets_that_are_gone_are_an_error_unless_loss_is_allowed(logs: Path) -> None:
    (logs / "orders-0" / segment_name(0)).unlink()
    start = '{"orders": {"0": 5, "1": -2}}'
    with pytest.raises(SparkError, match="offsets 5 to 11 of orders-0 are gone"):
        read(logs, startingOffsets=start)
    assert offsets(logs, startingOffsets=start, failOnDataLoss="false")[0][0] == 12


def test_a_time_stands_for_the_first_record_at_or_after_it(tmp_path: Path) -> None:
    times = [10, 30, 20, 40, 35, 50]
    data = b"".join(
        ottla.build_batch([ottla.NewRecord(b"k", b"v", timestamp=time)], base_offset=offset)
        for offset, time in enumerate(times)
    )
    path = write_partition(tmp_path / "orders-0", {0: data})
    for time in range(5, 55, 5):
        first = next((n for n, found in enumerate(times) if found >= time), None)
        rows = [r["offset"] for r in read(path, endingTimestamp=str(time))]
        assert rows == list(range(len(times) if first is None else first))
        if first is not None:
            assert read(path, startingTimestamp=str(time))[0]["offset"] == first
    options = {"startingTimestamp": "99", "startingOffsetsByTimestampStrategy": "latest"}
    assert read(path, **options) == []


def test_copies_of_a_partition_are_no_input_in_place_of_a_broker(logs: Path) -> None:
    copy = write_log_directory(logs.parent / "copy", ["orders-1"])
    request = parse_options({"path": str(copy.parent), "schema": "kafka"})
    with pytest.raises(SparkError, match=r"orders-1 is here twice, in .* and .*: give one copy"):
        TableReader(request).partitions()


# In Spark itself.


@pytest.mark.spark
def test_a_job_for_kafka_reads_a_backup_with_another_format_and_a_path(
    everywhere: Any, tmp_path: Path
) -> None:
    path = two_kinds(tmp_path)
    reader = everywhere.read.format("ottla").option("schema", "kafka").option("subscribe", "orders")
    for name, value in {
        "kafka.bootstrap.servers": "broker:9092",
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }.items():
        reader = reader.option(name, value)
    frame = reader.load(str(path))
    columns = ("CAST(key AS STRING) k", "unix_millis(timestamp) t", "timestampType", "headers")
    rows = frame.selectExpr(*columns).collect()
    assert [(row.k, row.t, row.timestampType) for row in rows] == [
        *(("k", 7, 0), (None, rows[1].t, 0)),
        *(("", 1_700_000_000_123, 1), ("k", 9, 0)),
    ]
    assert [header.key for header in rows[0].headers] == ["a", "none", "a"]
    assert rows[1].headers is None


@pytest.mark.spark
def test_read_takes_isolation_and_damage_too(spark: Any, damaged: Path, tmp_path: Path) -> None:
    frame = ottla.spark.read(spark, damaged, columns=["offset"], on_damage="quarantine")
    rows = frame.collect()
    assert [row.offset for row in rows if row.damage is None] == [0, 1, 2, *range(6, 12)]
    assert [row.damage.first_offset for row in rows if row.damage] == [3]
    path = transactional_log(tmp_path / "logs", random.Random(3))
    frame = ottla.spark.read(spark, path, columns=["offset"], isolation="read_committed")
    expected = [row[0] for row in consumed(path, "read_committed")]
    assert [row.offset for row in frame.collect()] == expected

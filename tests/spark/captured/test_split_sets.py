"""One captured record set split by record, without Spark."""

import base64
import gzip
import json
import pickle
import zlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ottla
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.records import split_column
from ottla.spark.captured.files import Read, ReadTask
from ottla.spark.captured.options import JudgeContext
from ottla.spark.captured.parquet import split_files
from ottla.spark.captured.split import (
    QUARANTINE_COLUMNS,
    VALID_COLUMNS,
    Half,
    SplitJob,
    split_rows,
)
from records.crafting import resealed
from support import vectors
from support.naive_split import Halves, split_set
from support.strategies import DrawnRecord, batches_of_records, compressions

from benches.data import Compression, encode_batch

NOW_MS = 1_700_000_000_000
COMPACTED = ottla.TopicConfig(cleanup_policy="compact")
OPTIONS: dict[str, Any] = {
    "now_ms": NOW_MS,
    "api_version": 11,
    "origin": "client",
    "transactional_id": None,
    "base_offset": 0,
    "leader_epoch": 0,
}
BATCH = ottla.build_batch(
    [ottla.NewRecord(b"a", b"1", headers=[("h", b"\xff")]), ottla.NewRecord(None, b"2")]
)


def rows_of(batch: pa.RecordBatch, context: JudgeContext, half: Half, size: int) -> list[Any]:
    """Return the rows of a half, the index of the set first."""
    pieces = split_rows(batch, context, half, size)
    return [row for piece in pieces for row in zip(*piece.to_pydict().values(), strict=True)]


def split_all(
    sets: list[bytes | None], context: JudgeContext, size: int = 1 << 20, *beside: list[Any]
) -> list[Halves]:
    """Split the sets of a column; `beside` are further columns."""
    arrays = [pa.array(sets, pa.binary()), *(pa.array(column) for column in beside)]
    batch = pa.RecordBatch.from_arrays(arrays, [str(index) for index in range(len(arrays))])
    found = [Halves() for _ in sets]
    for origin, *row in rows_of(batch, context, "valid", size):
        found[origin].valid.append(tuple(row))
    for origin, *row in rows_of(batch, context, "quarantine", size):
        found[origin].quarantine.append(tuple(row))
    return found


def split(records: bytes | None, **given: Any) -> Halves:
    config = given.pop("config", None)
    profile = given.pop("profile", "strict")
    context = JudgeContext(0, config, OPTIONS | given, {}, None, profile)
    (halves,) = split_all([records], context)
    return halves


def valid(halves: Halves) -> list[dict[str, Any]]:
    names = [column.name for column in VALID_COLUMNS]
    return [dict(zip(names, row, strict=True)) for row in halves.valid]


def quarantine(halves: Halves) -> list[dict[str, Any]]:
    names = [column.name for column in QUARANTINE_COLUMNS]
    return [dict(zip(names, row, strict=True)) for row in halves.quarantine]


def test_records_of_an_accepted_set_are_decoded() -> None:
    halves = split(BATCH)
    assert halves.quarantine == []
    assert valid(halves)[0] == {
        "batch_position": 0,
        "offset": 0,
        "timestamp": -1,
        "key": b"a",
        "value": b"1",
        "headers": '[["h", {"base64": "/w=="}]]',
        "sequence": -1,
        "control": None,
    }


def test_only_the_blamed_records_are_kept_out() -> None:
    halves = split(BATCH, config=COMPACTED)
    assert [row["value"] for row in valid(halves)] == [b"1"]
    (bad,) = quarantine(halves)
    assert (bad["value"], bad["offset"], bad["record_index"]) == (b"2", 1, 1)
    assert (bad["error"], bad["reason"]) == (87, "INVALID_RECORD")
    assert "no key" in bad["message"]
    assert bad["bytes"] is None
    assert bad["size"] is None


def test_a_batch_that_is_refused_whole_is_one_row_with_its_bytes() -> None:
    damaged = bytearray(BATCH)
    damaged[-1] ^= 1
    halves = split(bytes(damaged))
    assert halves.valid == []
    (bad,) = quarantine(halves)
    assert (bad["error"], bad["reason"]) == (2, "CORRUPT_MESSAGE")
    assert (bad["bytes"], bad["size"]) == (bytes(damaged), len(damaged))
    assert bad["offset"] is None
    assert bad["record_index"] is None


def test_an_incomplete_batch_at_the_end_is_kept_with_its_bytes() -> None:
    halves = split(BATCH + BATCH[:30])
    assert len(halves.valid) == 2
    (bad,) = quarantine(halves)
    assert (bad["batch_position"], bad["bytes"]) == (len(BATCH), BATCH[:30])
    assert bad["reason"] == "truncated-batch"


def test_a_null_is_a_row_of_quarantine() -> None:
    (bad,) = quarantine(split(None))
    assert (bad["reason"], bad["error"], bad["bytes"]) == ("not-judged", None, None)
    assert "null" in bad["message"]


def test_a_request_with_two_batches_is_refused_whole() -> None:
    halves = split(BATCH * 2)
    assert halves.valid == []
    assert [row["bytes"] for row in quarantine(halves)] == [BATCH * 2]


def test_batches_of_a_fetch_response_are_judged_one_by_one() -> None:
    first = ottla.build_batch([ottla.NewRecord(value=b"1")], base_offset=40)
    damaged = bytearray(first)
    damaged[-1] ^= 1
    last = ottla.build_batch([ottla.NewRecord(value=b"3")], base_offset=42)
    halves = split(first + damaged + last, api_version=None, origin="replication")
    assert [(row["offset"], row["value"]) for row in valid(halves)] == [(40, b"1"), (42, b"3")]
    assert [row["batch_position"] for row in valid(halves)] == [0, 2 * len(first)]
    (bad,) = quarantine(halves)
    assert (bad["batch_position"], bad["bytes"]) == (len(first), bytes(damaged))


def test_a_response_is_held_against_the_rules_of_the_format() -> None:
    # Deltas 0 and 2 where nothing says that compaction took a record.
    wrong = ottla.build_batch(
        [ottla.NewRecord(value=b"1"), ottla.NewRecord(value=b"2", offset_delta=2)], base_offset=7
    )
    good = split(wrong, api_version=None, origin="replication")
    assert len(good.valid) == 2
    marker = ottla.build_control_batch(
        "commit", producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5
    )
    (row,) = valid(split(marker, api_version=None, origin="replication"))
    assert row["control"] == "COMMIT"


def test_batches_that_are_only_wrong_together_are_kept_together() -> None:
    v2, v1 = BATCH, ottla.build_message_set([ottla.NewRecord(b"a", b"1")], magic=1)
    halves = split(v2 + v1, api_version=None)
    assert halves.valid == []
    assert [row["bytes"] for row in quarantine(halves)] == [v2 + v1]


def test_a_record_of_another_error_than_its_batch_has_the_name_of_its_own() -> None:
    late = ottla.NewRecord(b"k", b"1", timestamp=NOW_MS * 2)
    halves = split(ottla.build_batch([late, ottla.NewRecord(None, b"2")]), config=COMPACTED)
    found = [(row["record_index"], row["error"], row["reason"]) for row in quarantine(halves)]
    assert found == [(0, 32, "INVALID_TIMESTAMP"), (1, 87, "INVALID_RECORD")]


def test_a_response_with_a_damaged_batch_is_held_against_the_rules_besides() -> None:
    batch = bytearray(
        ottla.build_batch([ottla.NewRecord(value=b"1"), ottla.NewRecord(value=b"2")], base_offset=7)
    )
    # The offset delta of the second record, 1 as a varint: both are at offset 7 then.
    assert batch[-5] == 2
    batch[-5] = 0
    wrong = resealed(bytes(batch))
    damaged = bytearray(BATCH)
    damaged[-1] ^= 1
    for data in (wrong, wrong + damaged):
        halves = split(data, api_version=None, origin="replication")
        assert halves.valid == []
        assert quarantine(halves)[0]["reason"] == "offset-delta-mismatch"


@st.composite
def captured_sets(draw: st.DrawFn) -> bytes:
    """Several batches, perhaps with a flipped bit each, perhaps cut."""
    parts = []
    for number in range(draw(st.integers(1, 3))):
        plain = [(r.timestamp, r.key, r.value, r.headers) for r in draw(batches_of_records(6))]
        codec: Compression = draw(compressions())
        batch = bytearray(encode_batch(plain, base_offset=1000 * number, compression=codec))
        if draw(st.booleans()):
            batch[draw(st.integers(0, len(batch) - 1))] ^= 1 << draw(st.integers(0, 7))
        parts.append(bytes(batch))
    data = b"".join(parts)
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@given(captured_sets(), st.sampled_from([None, 2, 11]), st.sampled_from(["client", "replication"]))
def test_every_record_is_in_one_half_or_inside_bytes_of_quarantine(
    data: bytes, api_version: int | None, origin: str
) -> None:
    halves = split(data, api_version=api_version, origin=origin, config=COMPACTED)
    # The bytes of quarantine and the batches of the decoded records make up the whole set.
    whole = {row["batch_position"]: row["bytes"] for row in quarantine(halves) if row["bytes"]}
    read = {row["batch_position"] for row in valid(halves)}
    read |= {row["batch_position"] for row in quarantine(halves) if row["bytes"] is None}
    assert not read & set(whole)
    rebuilt, found = b"", Counter[int]()
    for position in sorted(read | set(whole)):
        assert position == len(rebuilt)
        if position in whole:
            rebuilt += whole[position]
            continue
        batch = next(ottla.read_batches(data[position:]))
        rebuilt += data[position : position + batch.size]
        rows = (*valid(halves), *quarantine(halves))
        offsets = [row["offset"] for row in rows if row["batch_position"] == position]
        assert sorted(offsets) == sorted(record.offset for record in batch.records())
        found.update(offsets)
    assert rebuilt == data
    assert all(count == 1 for count in found.values())


@st.composite
def legacy_sets(draw: st.DrawFn) -> bytes:
    """Return records of magic 0 or 1, perhaps damaged, perhaps behind a batch of magic 2."""
    records = [ottla.NewRecord(r.key, r.value, 5) for r in draw(batches_of_records(6))]
    codec: Any = draw(st.sampled_from(["none", "gzip", "snappy", "lz4"]))
    data = bytearray(
        ottla.build_message_set(records, magic=draw(st.sampled_from([0, 1])), compression=codec)
    )
    if draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return (BATCH if draw(st.booleans()) else b"") + bytes(data)


CONFIGS = {
    "plain": ottla.TopicConfig(),
    "compacted": COMPACTED,
    "stamped": ottla.TopicConfig(message_timestamp_type="LogAppendTime"),
    "small": ottla.TopicConfig(max_message_bytes=100, message_timestamp_before_max_ms=5),
    "recoded": ottla.TopicConfig(compression_type="gzip"),
}


@given(st.data())
def test_a_column_is_split_as_each_set_is_record_by_record(data: st.DataObject) -> None:
    sets = data.draw(st.lists(st.one_of(st.none(), captured_sets(), legacy_sets()), max_size=4))

    def each(values: list[Any]) -> list[Any]:
        return [data.draw(st.sampled_from(values)) for _ in sets]

    topics = each([*CONFIGS, "unknown"])
    times = each([NOW_MS, 0, None, -5])
    origins = each(["client", "replication", "coordinator", "nobody", None])
    constants = {
        "api_version": data.draw(st.sampled_from([None, 2, 7, 11])),
        "transactional_id": data.draw(st.sampled_from([None, "t"])),
        "base_offset": data.draw(st.sampled_from([0, 7])),
        "leader_epoch": 0,
    }
    profile = data.draw(st.sampled_from(["strict", "kafka"]))
    columns = {"now_ms": 1, "origin": 2}
    context = JudgeContext(0, CONFIGS, constants, columns, 3, profile)
    size = data.draw(st.sampled_from([1, 200, 1 << 20]))
    types = (pa.int64(), pa.string(), pa.string())
    beside = [pa.array(c, t) for c, t in zip((times, origins, topics), types, strict=True)]
    found = split_all(sets, context, size, *beside)
    for records, halves, now_ms, origin, topic in zip(
        sets, found, times, origins, topics, strict=True
    ):
        options = constants | {"now_ms": now_ms, "origin": origin, "profile": profile}
        assert halves == split_set(records, CONFIGS.get(topic, topic), options)


@settings(max_examples=25)
@given(
    st.lists(st.one_of(st.none(), captured_sets(), legacy_sets()), max_size=3),
    st.permutations([column.name for column in VALID_COLUMNS]),
    st.integers(1, len(VALID_COLUMNS)),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_columns_that_are_not_named_are_left_out_and_change_no_other(
    sets: list[bytes | None], names: list[str], count: int, size: int
) -> None:
    context = JudgeContext(0, COMPACTED, OPTIONS | {"api_version": None}, {}, None, "strict")
    batch = pa.RecordBatch.from_arrays([pa.array(sets, pa.binary())], ["records"])
    wanted = tuple(names[:count])
    halves: tuple[Half, Half] = ("valid", "quarantine")
    for half in halves:
        every = pa.Table.from_batches(split_rows(batch, context, half), schema_of(half))
        pieces = split_rows(batch, context, half, size, columns=wanted)
        reasons = [c.name for c in QUARANTINE_COLUMNS[len(VALID_COLUMNS) :]]
        expected = ["row", *wanted, *(reasons if half == "quarantine" else ())]
        assert [row for piece in pieces for row in piece.to_pylist()] == [
            {name: row[name] for name in expected} for row in every.to_pylist()
        ]


@settings(max_examples=25)
@given(
    st.lists(st.one_of(st.none(), captured_sets(), legacy_sets()), max_size=5),
    st.integers(1, 3),
    st.floats(0, 1),
)
def test_sets_in_files_are_split_record_by_record_wherever_tasks_divide_them(
    sets: list[bytes | None], group_size: int, cut: float
) -> None:
    options = OPTIONS | {"api_version": None}
    context = JudgeContext(0, COMPACTED, options, {}, None, "strict")
    names = tuple(column.name for column in VALID_COLUMNS)
    found: dict[str, list[Any]] = {"valid": [], "quarantine": []}
    with TemporaryDirectory() as directory:
        path = f"{directory}/captures.parquet"
        columns = {"records": pa.array(sets, pa.binary()), "id": range(len(sets))}
        pq.write_table(pa.table(columns), path, row_group_size=group_size)
        size = Path(path).stat().st_size
        parts = (0, int(size * cut)), (int(size * cut), size)
        tasks = [(Read(path, start, stop, size),) for start, stop in parts]
        packed = {at: zlib.compress(pickle.dumps(reads)) for at, reads in enumerate(tasks)}
        halves: tuple[Half, Half] = ("valid", "quarantine")
        for half in halves:
            told = names if half == "valid" else [c.name for c in QUARANTINE_COLUMNS]
            job = SplitJob(context, (1,), ("id", *told), half, names)
            task = ReadTask(job, ("records", "id"), ("binary", "bigint"), {})
            numbers = pa.RecordBatch.from_arrays([pa.array(range(len(tasks)))], ["id"])
            for piece in split_files((task, packed))(iter([numbers])):
                found[half] += zip(*piece.to_pydict().values(), strict=True)
    expected = [split_set(records, COMPACTED, options | {"profile": "strict"}) for records in sets]
    for half in halves:
        assert found[half] == [
            (at, *row) for at, each in enumerate(expected) for row in getattr(each, half)
        ]


def schema_of(half: Half) -> pa.Schema:
    """Return the columns of a half, of which a column without sets has no rows."""
    context = JudgeContext(0, None, OPTIONS, {}, None, "strict")
    sets = pa.array([BATCH, None], pa.binary())
    batch = pa.RecordBatch.from_arrays([sets], ["records"])
    return next(split_rows(batch, context, half)).schema


def test_a_piece_ends_after_as_many_bytes_wherever_that_is() -> None:
    """Batches, records to blame and bytes are cut there, and come whole."""
    records = [
        ottla.NewRecord(b"k" if number % 3 else None, b"%05d" % number) for number in range(5000)
    ]
    good = ottla.build_batch(records, compression="zstd")
    plain = ottla.build_batch(records)
    sets = [good, plain, None, plain[:-1], good, BATCH]
    context = JudgeContext(0, COMPACTED, OPTIONS, {}, None, "strict")
    whole = split_all(sets, context)
    assert split_all(sets, context, 3000) == whole
    assert [len(halves.valid) for halves in whole] == [3333, 3333, 0, 0, 3333, 1]
    batch = pa.RecordBatch.from_arrays([pa.array(sets, pa.binary())], ["records"])
    sizes = [piece.nbytes for piece in split_rows(batch, context, "valid", 3000)]
    assert len(sizes) > 100
    assert max(sizes) < 20_000


def test_a_column_that_is_a_slice_or_of_large_binaries_is_split_alike() -> None:
    context = JudgeContext(0, None, OPTIONS, {}, None, "strict")
    for kind in (pa.binary(), pa.large_binary()):
        sets = pa.array([b"no batch", BATCH, None, BATCH], kind).slice(1)
        batch = pa.RecordBatch.from_arrays([sets], ["records"])
        assert [row[0] for row in rows_of(batch, context, "valid", 99)] == [0, 0, 2, 2]
        (bad,) = rows_of(batch, context, "quarantine", 99)
        assert (bad[0], bad[-1]) == (1, None)


def test_arguments_that_split_nothing_are_refused() -> None:
    ends, data = np.array([0, 5], np.int64), np.zeros(4, np.uint8)
    options: Any = OPTIONS | {"base_offset": 0, "leader_epoch": 0, "profile": "strict"}
    with pytest.raises(ValueError, match=r"a set lies at \[0, 5\], in data of 4 bytes"):
        split_column(ends, data, None, "valid", **options)
    with pytest.raises(ValueError, match="half is 'valid' or 'quarantine', not 'both'"):
        split_column(ends - ends, data, None, "both", **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="piece_bytes is 1 or more"):
        split_column(ends - ends, data, None, "valid", piece_bytes=0, **options)
    with pytest.raises(ValueError, match="there is no column 'price', only batch_position, offset"):
        split_column(ends - ends, data, None, "valid", columns=["price"], **options)


@given(st.lists(batches_of_records(6), min_size=1, max_size=3), compressions())
def test_an_undamaged_response_is_decoded_as_it_was_put(
    batches: list[list[DrawnRecord]], codec: Compression
) -> None:
    data, put = b"", []
    for number, records in enumerate(batches):
        plain = [(r.timestamp, r.key, r.value, r.headers) for r in records]
        data += encode_batch(plain, base_offset=1000 * number, compression=codec)
        put += [(1000 * number + index, r.key, r.value) for index, r in enumerate(records)]
    halves = split(data, api_version=None, origin="replication")
    assert halves.quarantine == []
    assert [(row["offset"], row["key"], row["value"]) for row in valid(halves)] == put


def covered(data: bytes, halves: Halves) -> int:
    """Return up to where rows and bytes of the two halves make up a set, nothing twice."""
    bad = quarantine(halves)
    whole = {row["batch_position"]: row["bytes"] for row in bad if row["bytes"] is not None}
    read = {row["batch_position"] for row in (*valid(halves), *bad)} - set(whole)
    end = 0
    for position in sorted({len(data), *read, *whole}):
        # Batches without a record have no row.
        for batch in ottla.read_batches(data[end:position]):
            assert list(batch.records()) == []
            end += batch.size
        assert end == position
        if position in whole:
            end += len(whole[position])
        elif position in read:
            end += next(ottla.read_batches(data[position:])).size
    return end


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("profile", ["strict", "kafka"])
@pytest.mark.parametrize("origin", ["", "replication"])
def test_nothing_is_lost_of_any_vector(shared: Path, profile: str, origin: str) -> None:
    with gzip.open(shared / "vectors" / "decide.jsonl.gz", "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            data, cfg = base64.b64decode(case["in"]), case.get("cfg", {})
            given = vectors.circumstances_of(cfg)
            if origin:
                given |= {"origin": origin, "api_version": None}
            config = ottla.TopicConfig(**vectors.topic_of(cfg))
            halves = split(data, config=config, profile=profile, **given)
            assert covered(data, halves) == len(data), case["id"]
            if not origin and profile == "kafka" and case["out"]["code"]:
                assert halves.quarantine, case["id"]

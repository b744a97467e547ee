"""Record batches from the engine hold what the tables hold as tuples, row for row."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.audit.result.columns import TABLES
from ottla.audit.result.tables import Table, arrow_stream
from ottla.logs.segment import batch_chunks, record_chunks, segment_table
from ottla.storage import LocalPlace
from ottla.text import json_text
from records.crafting import (
    COMPRESSED,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch,
    compressed_batch,
    entry,
    message,
    patched,
    record,
    records,
    varint,
    wrapper,
)
from support.logs import batches as plain_batches
from support.logs import segment, write_log_directory
from support.strategies import batches_of_records

from benches.data import CODECS, encode_batch

if TYPE_CHECKING:
    from ottla.logs.columns import Row

SEGMENT_TABLES = ("batches", "records")
PREFIX = ("orders-0/00000000000000000000.log", "orders", 0)
NAMES = {name: [column.name for column in TABLES[name]] for name in SEGMENT_TABLES}

TIMESTAMP = 1_500_000_000_000
BATCH = batch(records(4), count=4)
"""Offsets 0 to 3, a millisecond apart."""


def arrow(table: str, path: Path, **options: Any) -> pa.Table:
    read = segment_table(bytes(path), table, prefix=PREFIX, **options)
    batches = [pa.record_batch(item) for item in read]
    for item in batches:
        item.validate(full=True)
        assert item.num_rows > 0
    return pa.Table.from_batches(batches, pa.schema(read)).combine_chunks()


def by_tuples(table: str, path: Path) -> pa.Table:
    chunks = batch_chunks if table == "batches" else record_chunks
    rows: list[Row] = [
        (*PREFIX, *row) for chunk in chunks(LocalPlace(bytes(path))) for row in chunk
    ]
    return pa.table(arrow_stream(TABLES[table], rows)).combine_chunks()


def same_by_both(path: Path, *, sizes: Sequence[int] = (8 << 20, 1)) -> int:
    """Rows of both tables, which are the same in any pieces."""
    count = 0
    for table in SEGMENT_TABLES:
        wanted = by_tuples(table, path)
        for size in sizes:
            found = arrow(table, path, batch_bytes=size)
            assert found.schema == wanted.schema
            assert found.equals(wanted), f"{table} of {path} in pieces of {size}"
        count += len(wanted)
    return count


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.log"


@pytest.mark.parametrize("table", SEGMENT_TABLES)
def test_the_engine_has_the_columns_of_the_table(log: Path, table: str) -> None:
    log.write_bytes(b"")
    read = segment_table(bytes(log), table)
    assert pa.schema(read) == pa.table(arrow_stream(TABLES[table], [])).schema
    assert list(read) == []


def test_the_demo_is_the_same_by_both(demo: Path) -> None:
    assert sum(same_by_both(path, sizes=(8 << 20, 5_000)) for path in demo.glob("*/*.log")) > 1_000


@pytest.mark.shared
@pytest.mark.parametrize("where", ["corpus", "damage"])
def test_the_corpora_are_the_same_by_both(shared: Path, where: str) -> None:
    paths = sorted((shared / where).rglob("*.log"))
    assert sum(same_by_both(path, sizes=(8 << 20, 3_000)) for path in paths) > 10_000


HEADERS = (
    (b"plain", b"text"),
    (b"none", None),
    (b"empty", b""),
    (b"", b"\xff\x00"),
    (b"\xffbad", 'a"b\\c/\n\r\t\b\f\x01\x7f\u00fc\u2028\U0001f600'.encode()),
    (b"surrogate", b"\xed\xa0\x80"),
)

TORN = batch(record(value=b"v" * 2_000))[:1024].ljust(2_100, b"\0")
"""Its second half was never written."""

ODD_BATCHES = {
    "ordinary": BATCH,
    "with headers": batch(record(headers=HEADERS) + record(1), count=2),
    "more headers than fit one byte": batch(record(headers=[(b"h", b"v")] * 70)),
    "a count of no headers in two bytes": batch(record(header_count=0, spare=b"")),
    "no key and no value": batch(record(value=None)),
    "an empty key and an empty value": batch(record(key=b"", value=b"")),
    "a null of another length": batch(
        varint(9) + b"\0" + varint(0) * 2 + varint(-5) + varint(1) + b"v" + varint(0) + b""
    ),
    "thin": batch(record(2) + record(5), count=2, last_offset_delta=9),
    "emptied": batch(b"", count=0, last_offset_delta=3),
    "log append time": batch(records(3), count=3, attributes=LOG_APPEND_TIME),
    "a delete horizon": batch(records(2), count=2, attributes=DELETE_HORIZON),
    "idempotent": batch(
        records(3), count=3, producer_id=7, producer_epoch=1, base_sequence=2**31 - 2
    ),
    "transactional": batch(
        records(2),
        count=2,
        attributes=TRANSACTIONAL,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    ),
    "an end marker": batch(
        record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\5"),
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=0,
    ),
    "a control record that is none": batch(record(key=b"x"), attributes=CONTROL),
    "offsets that go down": batch(record(1) + record(0), count=2),
    "a time above the maximum": batch(record(timestamp_delta=50), max_timestamp=TIMESTAMP),
    "times before the base": batch(record(timestamp_delta=-70), max_timestamp=TIMESTAMP),
    "a fault in the third record": batch(records(2) + record(2, longer=3), count=3),
    "a fault in the first record": batch(record(longer=1)),
    "bytes behind the last record": batch(records(2) + b"\0", count=2),
    "fewer records than counted": batch(records(2), count=3),
    "a negative count": batch(records(1), count=-1),
    "a codec that does not exist": batch(records(1), codec=6),
    "a payload that does not inflate": batch(b"no gzip", codec=1),
    "a wrong checksum": BATCH[:-1] + b"!",
    "torn": TORN,
    "another magic": BATCH[:16] + b"\x01" + BATCH[17:],
    "damage": b"\x01" * 100,
    "magic 0": entry(3, message(0)),
    "magic 1": entry(4, message(1, key=None)),
    "magic 1, null value": entry(4, message(1, value=None, attributes=LOG_APPEND_TIME)),
    **{codec: compressed_batch(records(5), codec, count=5) for codec in COMPRESSED},
    **{
        f"{codec} with headers": compressed_batch(record(headers=HEADERS), codec)
        for codec in COMPRESSED
    },
    **{
        f"{codec}, thin": patched(
            compressed_batch(record(1) + record(3), codec, count=2), 23, b"\0\0\0\7"
        )
        for codec in COMPRESSED
    },
    **{
        f"{codec} with a fault": compressed_batch(records(2) + record(2, longer=3), codec, count=3)
        for codec in COMPRESSED
    },
    **{
        f"wrapper of magic {magic}, {codec}": wrapper(
            magic,
            codec,
            b"".join(entry(index, message(magic)) for index in range(3)),
            offset=2 if magic == 0 else 9,
        )
        for magic in (0, 1)
        for codec in ("gzip", "snappy", "lz4")
    },
    "a wrapper with a wrong inner checksum": wrapper(
        1, "gzip", entry(0, message(1)) + entry(1, message(1)[:-1] + b"!"), offset=1
    ),
    "a wrapper of nothing": wrapper(1, "gzip", b"", offset=1),
}


@pytest.mark.parametrize("name", ODD_BATCHES)
def test_an_odd_batch_is_the_same_by_both(log: Path, name: str) -> None:
    log.write_bytes(ODD_BATCHES[name])
    same_by_both(log)
    log.write_bytes(BATCH + ODD_BATCHES[name] + BATCH)
    assert same_by_both(log) > 0


def test_headers_are_the_json_of_the_dictionaries(log: Path) -> None:
    log.write_bytes(ODD_BATCHES["with headers"])
    first, second = arrow("records", log)["headers"].to_pylist()
    assert first == (
        '[["plain", "text"], ["none", null], ["empty", ""], ["", {"base64": "/wA="}],'
        ' ["\ufffdbad", "a\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\\u007f\u00fc\\u2028\U0001f600"],'
        ' ["surrogate", {"base64": "7aCA"}]]'
    )
    assert second == "[]"


def test_every_character_is_escaped_in_headers_as_in_all_json(log: Path) -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(characters[at : at + 4096]) for at in range(0, len(characters), 4096)]
    headers = tuple((f"{number}", text.encode()) for number, text in enumerate(texts))
    log.write_bytes(encode_batch([(0, None, None, headers)], base_offset=0))
    [written] = arrow("records", log)["headers"].to_pylist()
    assert written == json_text([[f"{number}", text] for number, text in enumerate(texts)])


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches in any codec with all they may hold, odd ones and damage between them."""
    parts = []
    offset = 0
    for drawn in draw(st.lists(batches_of_records(8), max_size=5)):
        listed = [(r.timestamp, r.key, r.value, r.headers) for r in drawn]
        parts.append(
            encode_batch(
                listed,
                base_offset=offset,
                compression=draw(st.sampled_from(CODECS)),
                producer_id=draw(st.sampled_from([-1, 5])),
                producer_epoch=0,
                base_sequence=draw(st.integers(0, 2**31 - 1)),
            )
        )
        offset += len(listed)
        if draw(st.integers(0, 3)) == 0:
            parts.append(draw(st.sampled_from([*ODD_BATCHES.values()])))
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2)) if data else 0):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@given(data=logs(), size=st.integers(1, 2_000))
def test_any_log_is_the_same_by_both(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(data)
    same_by_both(path, sizes=(8 << 20, size))


@pytest.fixture
def mixed(log: Path) -> Path:
    """Batches of every codec and format, some with headers, with offsets that go up."""
    parts = [
        wrapper(1, "gzip", b"".join(entry(i, message(1)) for i in range(3)), offset=2),
        entry(3, message(1, timestamp=TIMESTAMP + 3)),
    ]
    for number, codec in enumerate(CODECS * 3):
        listed = [
            (
                TIMESTAMP + 100 * number + 7 * index % 60,
                None if index % 3 else b"key",
                b"v" * index,
                (("header", b"\xff"),) if index == 5 and number % 2 else (),
            )
            for index in range(20)
        ]
        parts.append(encode_batch(listed, base_offset=4 + 20 * number, compression=codec))
    log.write_bytes(b"".join(parts))
    return log


@pytest.mark.parametrize("table", SEGMENT_TABLES)
def test_a_subset_of_columns_is_that_of_the_whole(mixed: Path, table: str) -> None:
    whole = arrow(table, mixed)
    names = NAMES[table]
    for columns in (names, names[::-1], ["file"], names[3:4], names[5:9], names[-3:]):
        for size in (8 << 20, 500):
            assert arrow(table, mixed, columns=columns, batch_bytes=size).equals(
                whole.select(columns).combine_chunks()
            )
    for name in names:
        assert arrow(table, mixed, columns=[name]).column(0).equals(whole[name])


@pytest.mark.parametrize("table", SEGMENT_TABLES)
def test_no_columns_at_all_still_count_rows(mixed: Path, table: str) -> None:
    read = list(segment_table(bytes(mixed), table, columns=[], batch_bytes=300))
    assert sum(map(len, read)) == len(by_tuples(table, mixed))
    assert all(pa.record_batch(item).num_rows == len(item) for item in read)


BOUNDS = ("min_offset", "max_offset", "min_timestamp", "max_timestamp")


def inside(table: str, row: dict[str, Any], bounds: dict[str, int]) -> bool:
    """What the bounds are documented to ask."""
    first, last, time = (
        ("offset", "offset", "timestamp")
        if table == "records"
        else ("base_offset", "last_offset", "max_timestamp")
    )
    return (
        row[last] >= bounds.get("min_offset", row[last])
        and row[first] <= bounds.get("max_offset", row[first])
        and row[time] >= bounds.get("min_timestamp", row[time])
        and (table == "batches" or row[time] <= bounds.get("max_timestamp", row[time]))
    )


@given(data=st.data())
def test_bounds_leave_out_what_lies_outside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "bounds.log"
    if not path.exists():
        path.write_bytes(b"")
    bounds = {}
    for name in data.draw(st.sets(st.sampled_from(BOUNDS))):
        start = 0 if name.endswith("offset") else TIMESTAMP - 50
        bounds[name] = start + data.draw(st.integers(-10, 400))
    parts = []
    for number in range(6):
        listed = [
            (TIMESTAMP + data.draw(st.integers(0, 300)), b"k", b"v" * index, ())
            for index in range(12)
        ]
        codec = data.draw(st.sampled_from(CODECS))
        attributes = data.draw(st.sampled_from([0, LOG_APPEND_TIME]))
        parts.append(
            encode_batch(listed, base_offset=20 * number, compression=codec, attributes=attributes)
        )
    path.write_bytes(b"".join(parts))
    size = data.draw(st.sampled_from([1, 700, 8 << 20]))
    for table in SEGMENT_TABLES:
        whole = by_tuples(table, path).to_pylist()
        found = arrow(table, path, batch_bytes=size, **bounds).to_pylist()
        assert found == [row for row in whole if inside(table, row, bounds)]


def test_a_batch_that_its_header_excludes_is_not_inflated(log: Path) -> None:
    early = encode_batch([(TIMESTAMP, None, b"v", ())], compression="gzip")
    bomb = patched(BATCH, 21, b"\0\1")
    log.write_bytes(early + bomb)
    with_late = arrow("records", log, max_offset=0)
    assert with_late["offset"].to_pylist() == [0]
    assert arrow("records", log, min_timestamp=TIMESTAMP + 10**9).num_rows == 0


@pytest.mark.parametrize("table", SEGMENT_TABLES)
def test_ranges_cut_at_batches_give_the_whole(mixed: Path, table: str) -> None:
    whole = arrow(table, mixed)
    positions = arrow("batches", mixed)["position"].to_pylist()
    for step in (1, 2, 5):
        cuts = [*positions[::step], mixed.stat().st_size + 5]
        parts = [arrow(table, mixed, start=a, stop=b) for a, b in pairwise(cuts)]
        assert pa.concat_tables(parts).combine_chunks().equals(whole)
    assert arrow(table, mixed, start=positions[3], stop=positions[3]).num_rows == 0
    assert arrow(table, mixed, start=positions[3], stop=positions[3] + 1).equals(
        arrow(table, mixed, start=positions[3], stop=positions[4])
    )
    assert arrow(table, mixed, start=10**12).num_rows == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_larger_than_a_piece_comes_in_pieces(log: Path, codec: Any) -> None:
    listed = [(TIMESTAMP, b"k", b"v" * 100, ()) for _ in range(500)]
    log.write_bytes(encode_batch(listed, compression=codec) * 2)
    pieces = [len(item) for item in segment_table(bytes(log), "records", batch_bytes=10_000)]
    assert sum(pieces) == 1_000
    assert max(pieces) < 100
    same_by_both(log, sizes=(10_000,))


class Memory:
    """Bytes as an object to read from."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.reads: list[tuple[int, int]] = []

    def read_at(self, position: int, size: int) -> bytes:
        self.reads.append((position, size))
        return self.data[position : position + size]


def test_an_object_is_read_as_a_file_and_every_byte_once(log: Path) -> None:
    data = b"".join(plain_batches(3_000, value_size=1_000))
    log.write_bytes(data)
    place = Memory(data)
    read = segment_table(place, "records", prefix=PREFIX, batch_bytes=1 << 20)
    found = pa.Table.from_batches([pa.record_batch(item) for item in read])
    assert found.combine_chunks().equals(arrow("records", log))
    assert sum(min(size, len(data) - position) for position, size in place.reads) == len(data)


class Failing(Memory):
    def read_at(self, position: int, size: int) -> bytes:
        if position > 0:
            raise PermissionError(13, "no access", "somewhere")
        return self.data[: min(size, 5_000)]


def test_what_cannot_be_read_is_raised_and_ends_the_rows(log: Path) -> None:
    read = segment_table(Failing(segment(1_000)), "records")
    with pytest.raises(PermissionError, match="no access"):
        list(read)
    assert list(read) == []
    with pytest.raises(FileNotFoundError):
        segment_table(bytes(log), "records")
    reader = pa.RecordBatchReader.from_stream(segment_table(Failing(segment(1_000)), "records"))
    with pytest.raises(OSError, match="no access"):
        reader.read_all()


def test_wrong_arguments_are_named(log: Path) -> None:
    log.write_bytes(b"")
    with pytest.raises(ValueError, match="'source_json' or 'kafka', not 'files'"):
        segment_table(bytes(log), "files")
    with pytest.raises(ValueError, match="no column 'magic', only file, topic"):
        segment_table(bytes(log), "records", columns=["magic"])
    with pytest.raises(ValueError, match="'key' is asked for twice"):
        segment_table(bytes(log), "records", columns=["key", "key"])
    for size in (0, 65 << 20):
        with pytest.raises(ValueError, match="batch_bytes is 1 to"):
            segment_table(bytes(log), "records", batch_bytes=size)


def test_a_stream_is_read_while_it_is_asked_for(log: Path) -> None:
    log.write_bytes(segment(2_000, value_size=500))
    read = segment_table(bytes(log), "records", batch_bytes=100_000)
    reader = pa.RecordBatchReader.from_stream(read)
    first = reader.read_next_batch()
    second = pa.record_batch(next(read))
    rest = reader.read_all()
    offsets = [*first["offset"].to_pylist(), *second["offset"].to_pylist()]
    assert [*offsets, *rest["offset"].to_pylist()] == list(range(6_000))


def test_no_file_is_as_large_as_what_is_held_of_it(log: Path) -> None:
    log.write_bytes(segment(20_000, records=10, value_size=100))
    largest = 0
    for item in segment_table(bytes(log), "records", batch_bytes=1 << 20):
        largest = max(largest, pa.record_batch(item).nbytes)
    assert 900_000 < largest < 1_200_000


@pytest.fixture
def result(tmp_path: Path) -> ottla.AuditResult:
    directory = tmp_path / "log"
    write_log_directory(directory)
    return ottla.audit(directory)


def tables(result: ottla.AuditResult) -> Iterator[Table]:
    yield result.batches
    yield result.records


def test_the_tables_of_an_audit_are_the_same_as_rows_and_as_arrow(
    result: ottla.AuditResult, tmp_path: Path
) -> None:
    result.save(tmp_path / "saved", "parquet", batches=True, records=True)
    for table in tables(result):
        wanted = pa.table(arrow_stream(table.columns, list(table.rows()))).combine_chunks()
        assert len(wanted) > 0
        assert len(table) == len(wanted)
        assert table.to_arrow().combine_chunks().equals(wanted)
        assert pa.table(table).combine_chunks().equals(wanted)
        assert pa.table(table).combine_chunks().equals(wanted), "a table is read as often as wished"
        saved = pq.read_table(tmp_path / "saved" / f"{table.name}.parquet")
        assert saved.combine_chunks().equals(wanted)


def test_a_file_that_is_gone_is_an_error_of_the_operating_system(
    result: ottla.AuditResult, tmp_path: Path
) -> None:
    for path in (tmp_path / "log").rglob("*.log"):
        path.unlink()
    for table in tables(result):
        with pytest.raises(FileNotFoundError):
            table.to_arrow()
        with pytest.raises(OSError, match="No such file"):
            pa.table(table)

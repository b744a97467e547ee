"""The engine's JSON is what Python's own writes of the same values, character for character."""

import enum
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla import _engine
from ottla.audit.result.columns import TABLES
from ottla.audit.result.tables import arrow_stream, jsonable
from ottla.logs.columns import Column
from ottla.logs.segment import batch_chunks, record_chunks, segment_table
from ottla.text import json_text
from support.strategies import DrawnRecord, base_offsets, int64, timestamps

from benches.data import encode_batch

PLACE = ('a "log"\\\u202e/00000000000000000000.log', "größe", 3)

# Of each kind that is escaped in its own way, and what stands beside it.
ODD = '\0\b\t\n\f\r\x1f "/\\~\x7f\x80\x9f\xa0\xad\u200f\u2028\ufeff\uffff\U0001f600\U000e0041'


def texts() -> st.SearchStrategy[str]:
    """Texts, also with characters that are escaped."""
    return st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(ODD)), max_size=20)


def undecoded() -> st.SearchStrategy[str]:
    """Texts with halves of surrogate pairs, as of names that are no UTF-8."""
    return st.text(st.one_of(st.characters(), st.sampled_from("\udc80\udcff\ud83d\ude00")))


def data() -> st.SearchStrategy[bytes]:
    """Bytes, often UTF-8."""
    return st.one_of(texts().map(str.encode), st.binary(max_size=40))


def values() -> st.SearchStrategy[Any]:
    """Whatever a table may have in a row."""
    numbers = st.one_of(int64(), st.integers(-(2**80), 2**80), st.floats())
    plain = st.one_of(st.none(), st.booleans(), numbers, texts(), undecoded(), data())
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(texts(), inner, max_size=4),
        ),
        max_leaves=10,
    )


def records() -> st.SearchStrategy[DrawnRecord]:
    """One record, of which much is text."""
    part = st.one_of(st.none(), data())
    headers = st.lists(st.tuples(texts(), part), max_size=3).map(tuple)
    return st.builds(DrawnRecord, timestamps(), part, part, headers)


def twin(names: list[str], row: tuple[Any, ...]) -> str:
    """Return a row as Python's json has it."""
    return json_text(dict(zip(names, map(jsonable, row), strict=True)))


@given(st.lists(st.tuples(values(), values(), values()), max_size=5), st.sampled_from(["\n", ", "]))
def test_rows_are_what_python_writes(rows: list[tuple[Any, ...]], separator: str) -> None:
    names = ["first", 'a "second"\u202e', "größe"]
    expected = separator.join(twin(names, row) for row in rows)
    assert _engine.json_rows(names, rows, separator).decode() == expected


@given(st.lists(st.one_of(st.none(), st.lists(values(), max_size=3)), max_size=5))
def test_lists_in_arrow_are_what_python_writes(lists: list[list[Any] | None]) -> None:
    table = pa.table(arrow_stream([Column("list", "list", "")], [(each,) for each in lists]))
    expected = [None if each is None else json_text(jsonable(each)) for each in lists]
    assert table.column("list").to_pylist() == expected


@given(st.lists(st.lists(records(), min_size=1, max_size=5), max_size=4), base_offsets())
def test_lines_of_segments_are_what_python_writes_of_their_rows(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[DrawnRecord]], base_offset: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "json.log"
    offset = base_offset
    with path.open("wb") as file:
        for batch in batches:
            plain = [(r.timestamp, r.key, r.value, r.headers) for r in batch]
            file.write(encode_batch(plain, base_offset=offset))
            offset += len(batch)
    place: Any = bytes(path)
    for table, chunks in (("batches", batch_chunks(place)), ("records", record_chunks(place))):
        names = [column.name for column in TABLES[table]]
        rows = [(*PLACE, *row) for chunk in chunks for row in chunk]
        written = segment_table(place, table, prefix=PLACE, batch_bytes=1000)
        lines = b"".join(piece.json_lines(["headers"]) for piece in written).decode()
        assert lines == "".join(twin(names, row) + "\n" for row in rows)


def test_every_character_is_written_as_python_writes_it() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    for text in (everything, everything.encode(errors="ignore").decode()):
        assert _engine.json_rows(["text"], [(text,)], "").decode() == json_text({"text": text})


def test_members_of_enumerations_are_their_values() -> None:
    class Number(enum.IntEnum):
        LARGE = 2**70

    class Word(str, enum.Enum):
        SHORT = "a"

    row = (Number.LARGE, Word.SHORT)
    expected = json.dumps({"number": 2**70, "word": "a"})
    assert _engine.json_rows(["number", "word"], [row], "").decode() == expected


def test_columns_of_times_and_structs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_bytes(encode_batch([(1, None, b"value", ())]))
    for table, column in (("kafka", "timestamp"), ("source", "headers")):
        (piece,) = segment_table(bytes(path), table, columns=[column])
        with pytest.raises(ValueError, match=f"column {column} of type .* has no JSON form"):
            piece.json_lines([])


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 names, 1 values"):
        _engine.json_rows(["a", "b"], [(1,)], "")
    with pytest.raises(TypeError, match="Object of type complex is not JSON serializable"):
        _engine.json_rows(["a"], [(1j,)], "")
    with pytest.raises(TypeError):
        _engine.json_rows(["a"], [({1: "number"},)], "")


def test_lists_in_lists_have_an_end() -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(RecursionError, match="more than 100 lists within each other"):
        _engine.json_rows(["a"], [(nested,)], "")

"""Bytes-like objects: what cannot change is borrowed, and what can is copied."""

import mmap
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import ottla
import pyarrow as pa
import pytest
from ottla import RecordBatchError, TruncatedBatchError
from ottla.records import fetched

NOW = 1_700_000_000_000
MIB = 1 << 20


def built(count: int, value_bytes: int = 1000, base_offset: int = 0) -> bytes:
    rows = [
        ottla.NewRecord(value=bytes([65 + i % 26]) * value_bytes, timestamp=NOW)
        for i in range(count)
    ]
    return ottla.build_batch(rows, base_offset=base_offset)


def several(batches: int = 40) -> bytes:
    """Batches of 10 KB, and one in their midst that is larger than any piece."""
    parts = [built(10, base_offset=10 * number) for number in range(batches)]
    parts.insert(batches // 2, built(300))
    return b"".join(parts)


def viewed(array: Any) -> memoryview:
    """Return a view of an array, whose type has no buffer for type checkers before Python 3.12."""
    return memoryview(array)


# What keeps the bytes it was given.
KEEPERS: dict[str, Callable[[Any], object]] = {
    "read_batches": ottla.read_batches,
    "read_columns": ottla.read_columns,
    "views": lambda data: ottla.read_columns(data, views=True),
    "fetched": lambda data: fetched(data, 0),
    "validate": lambda data: ottla.validate(data, now_ms=NOW),
    "append": lambda data: ottla.Leader().append(data, now_ms=NOW),
}
# Objects whose memory is that of `bytes`, behind ten bytes that are none of the data.
VIEWS: dict[str, Callable[[bytes], Any]] = {
    "a slice": lambda data: memoryview(data)[10:],
    "a slice of a slice": lambda data: memoryview(memoryview(data)[4:])[6:],
    "a view as numbers": lambda data: memoryview(data)[10:].cast("b"),
    "an array": lambda data: np.frombuffer(data, np.uint8)[10:],
    "a view of an array": lambda data: viewed(np.frombuffer(memoryview(data)[2:], np.int8)[8:]),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_view_of_bytes_is_borrowed_and_keeps_them_alive(keeper: str, view: str) -> None:
    batch = built(80)
    data = bytes(10) + batch
    before = sys.getrefcount(data)
    kept = KEEPERS[keeper](VIEWS[view](data))
    assert sys.getrefcount(data) > before
    del kept
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_read_of_a_view_of_bytes_is_what_it_shows(view: str) -> None:
    batch = built(80)
    shown = VIEWS[view](bytes(10) + batch)
    assert ottla.check_batches(shown) == 80
    assert [row.value for row in ottla.read(shown)] == [row.value for row in ottla.read(batch)]
    columns = ottla.read_columns(shown)
    assert columns.value_position.tolist() == ottla.read_columns(batch).value_position.tolist()
    assert ottla.read_columns(shown, views=True).offset.tolist() == list(range(80))
    verdict = ottla.validate(shown, now_ms=NOW, base_offset=7)
    assert verdict.stored == ottla.validate(batch, now_ms=NOW, base_offset=7).stored
    assert b"".join(verdict.stored_parts) == verdict.stored


def test_the_parts_of_a_verdict_on_a_view_are_views_of_the_same_bytes() -> None:
    data = bytes(10) + built(80) + bytes(10)
    _, records = ottla.validate(memoryview(data)[10:-10], now_ms=NOW).stored_parts
    assert isinstance(records, memoryview)
    assert records.obj is data
    assert records == data[71:-10]


CHANGING: dict[str, Callable[[bytearray], Any]] = {
    "bytearray": lambda data: data,
    "a view": memoryview,
    "a read-only view": lambda data: memoryview(data).toreadonly(),
    "an array": lambda data: np.frombuffer(data, np.uint8),
    "an array of an array": lambda data: np.frombuffer(memoryview(data), np.uint8)[:],
    "a buffer of Arrow": pa.py_buffer,
    "a slice of a buffer of Arrow": lambda data: pa.py_buffer(data).slice(0),
}


@pytest.mark.parametrize("given", CHANGING)
def test_what_was_read_of_memory_that_changes_later_stays(given: str) -> None:
    data = bytearray(built(30))
    wanted = bytes(data)
    shown = CHANGING[given](data)
    batches, columns = ottla.read_batches(shown), ottla.read_columns(shown, views=True)
    verdict = ottla.validate(shown, now_ms=NOW)
    data[:] = bytes(len(data))
    assert [record.offset for batch in batches for record in batch.records()] == list(range(30))
    assert columns.value_length.tolist() == [1000] * 30
    assert bytes(verdict.stored_parts[1]) == wanted[61:]


ARROW: dict[str, Callable[[bytes], Any]] = {
    "of bytes": pa.py_buffer,
    "of an array": lambda data: pa.array([b"0123456789", data], pa.binary()).buffers()[2].slice(10),
    "viewed": lambda data: viewed(pa.py_buffer(bytes(10) + data))[10:],
    "as numbers": lambda data: np.frombuffer(pa.py_buffer(data), np.int8),
}


@pytest.mark.parametrize("size", [3, 80], ids=["small", "large"])
@pytest.mark.parametrize("given", ARROW)
def test_a_buffer_of_arrow_is_read_as_its_bytes_and_may_go_before_what_was_read(
    given: str, size: int
) -> None:
    data = built(size)
    before = pa.total_allocated_bytes()
    shown = ARROW[given](data)
    assert ottla.check_batches(shown) == size
    assert [*ottla.read(shown)] == [*ottla.read(data)]
    assert ottla.read_columns(shown) == ottla.read_columns(data)
    assert len(fetched(shown, 0)) == size
    batch, verdict = ottla.RecordBatch(shown), ottla.validate(shown, now_ms=NOW, base_offset=7)
    leader = ottla.Leader(next_offset=7)
    assert leader.append(shown, now_ms=NOW) == verdict
    del shown
    assert pa.total_allocated_bytes() == before
    assert bytes(batch) == data
    assert verdict.stored == ottla.validate(data, now_ms=NOW, base_offset=7).stored


@contextmanager
def most_memory() -> Iterator[list[int]]:
    """Note the most memory that Python had besides, in bytes."""
    noted: list[int] = []
    tracemalloc.start()
    try:
        yield noted
        noted.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("given", [*CHANGING, "a view of bytes"])
def test_a_check_does_not_double_the_memory(given: str) -> None:
    data = built(50) * 80  # 4 MB
    shown = memoryview(data) if given == "a view of bytes" else CHANGING[given](bytearray(data))
    ottla.check_batches(built(30))
    with most_memory() as noted:
        assert ottla.check_batches(shown) == 4000
    assert noted[0] < MIB // 2


def told(check: Callable[[Any], int], data: Any) -> tuple[str, str] | int:
    try:
        return check(data)
    except RecordBatchError as error:
        return type(error).__name__, str(error)


def cut_and_broken(whole: bytes) -> Iterator[bytes]:
    yield whole
    for size in (1, 60, 5_000, 150_000, 350_000, len(whole) - 1):
        yield whole[:size]
        yield whole[:size] + bytes(300_000)
    for zeros in (1, 16, 17, 400_000):
        yield whole + bytes(zeros)
        yield whole + bytes(zeros) + b"x"
    for place in (8, 16, 30, 5_000, 250_000, 450_000, len(whole) - 1):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        yield bytes(broken)


@pytest.mark.parametrize("level", ["crc", "decode", "full"])
def test_a_check_in_pieces_says_what_a_check_of_bytes_says(
    level: Literal["crc", "decode", "full"],
) -> None:
    def check(data: Any) -> int:
        return ottla.check_batches(data, level=level)

    for data in cut_and_broken(several()):
        assert told(check, bytearray(data)) == told(check, data)


def test_memory_with_gaps_is_read_in_the_order_of_its_elements() -> None:
    data = several()
    pairs = np.repeat(np.frombuffer(data, np.uint8), 2)
    assert ottla.check_batches(pairs[::2]) == ottla.check_batches(data)
    assert len(ottla.read_columns(viewed(pairs)[::2])) == ottla.check_batches(data)
    square = np.frombuffer(data + bytes(-len(data) % 8), np.uint8).reshape(4, -1)
    assert ottla.check_batches(square) == ottla.check_batches(data)
    assert ottla.check_batches(square.copy()) == ottla.check_batches(data)
    assert ottla.check_batches(np.frombuffer(data + bytes(-len(data) % 8), ">i8").copy()) == 700


@pytest.mark.parametrize("data", [built(3), several()], ids=["small", "in pieces"])
def test_a_bytearray_can_grow_again_after_a_call_whatever_its_outcome(data: bytes) -> None:
    buffer = bytearray(data)
    ottla.check_batches(buffer)
    with pytest.raises(TruncatedBatchError):
        ottla.check_batches(memoryview(buffer)[:-1])
    buffer.append(0)
    assert len(buffer) == len(data) + 1


def test_a_bytearray_that_is_resized_meanwhile_is_refused_to_the_resizer_or_read_whole() -> None:
    data = several()
    buffer, count, done = bytearray(data), ottla.check_batches(data), threading.Event()

    def resize() -> None:
        while not done.is_set():
            try:
                buffer.extend(bytes(1 << 16))
                del buffer[-(1 << 16) :]
            except BufferError:
                pass

    resizer = threading.Thread(target=resize)
    resizer.start()
    try:
        found = {told(ottla.check_batches, buffer) for _ in range(20)}
    finally:
        done.set()
        resizer.join()
    assert found == {count}


def test_a_view_that_was_released_is_refused_by_name() -> None:
    view = memoryview(built(30))
    view.release()
    for call in (ottla.check_batches, *KEEPERS.values()):
        with pytest.raises(ValueError, match="released memoryview"):
            call(view)


@pytest.mark.parametrize("call", [ottla.check_batches, ottla.RecordBatch, *KEEPERS.values()])
def test_a_text_where_bytes_belong_is_refused_by_name(call: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match="expected a bytes-like object, found str; encode it first"):
        call("batch")


def test_an_array_without_a_buffer_is_refused_by_name() -> None:
    dates = np.zeros(100_000, "datetime64[s]")
    for call in (ottla.check_batches, *KEEPERS.values()):
        with pytest.raises(ValueError, match="cannot include dtype 'M' in a buffer"):
            call(dates)


def test_a_mapped_file_is_read_as_it_was_when_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "batches"
    file.write_bytes(several())
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        assert ottla.check_batches(mapped) == 700
        columns = ottla.read_columns(memoryview(mapped).toreadonly(), views=True)
        file.write_bytes(bytes(len(mapped)))
        assert columns.value_length.tolist() == [1000] * 700
        del columns

"""Objects listed as files are, and read a piece ahead of whoever reads them."""

import errno
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import MissingDependencyError, StorageError
from ottla.storage import ANYWHERE, AnyFiles, Entry, Files, objects, readahead
from ottla.storage.objects import ObjectFiles, ObjectPlace
from ottla.storage.readahead import MAX_PIECES, ReadAhead

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1_000
DATA = bytes(n * 7 % 251 for n in range(20_500))


class Told:
    """Bytes that note what is asked of them."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []
        self.lock = threading.Lock()

    def get(self, start: int, stop: int) -> memoryview:
        with self.lock:
            self.asked.append((start, stop))
        return memoryview(self.data[start:stop])

    def reader(self) -> ReadAhead:
        return ReadAhead(self.get, len(DATA))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readahead, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(readahead, "BULK_BYTES", 200)
    monkeypatch.setattr(readahead, "MARGIN_BYTES", 50)


def read_through(reader: ReadAhead, start: int, stop: int, step: int) -> bytes:
    parts = [
        bytes(reader.read(position, min(position + step, stop)))
        for position in range(start, stop, step)
    ]
    return b"".join(parts)


@pytest.mark.parametrize("step", [1, 50, 250, 999, 1000, 1001, 5_000, 30_000])
def test_reading_from_end_to_end_asks_for_each_byte_once(step: int) -> None:
    told = Told()
    assert read_through(told.reader(), 0, len(DATA), step) == DATA
    pieces = sorted(told.asked)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(DATA)
    assert all(left[1] == right[0] for left, right in pairwise(pieces))
    assert len(pieces) <= len(DATA) // PIECE + 3


def test_what_is_told_to_be_read_is_all_that_is_asked_for() -> None:
    told = Told()
    reader = told.reader()
    reader.expect(5_300)
    assert read_through(reader, 2_000, 5_300, 250) == DATA[2_000:5_300]
    assert max(stop for _, stop in told.asked) <= 5_300 + readahead.MARGIN_BYTES
    # Whoever reads on all the same gets what is there.
    assert read_through(reader, 5_300, 9_000, 250) == DATA[5_300:9_000]


def test_a_small_read_anywhere_is_one_request_for_just_that() -> None:
    told = Told()
    reader = told.reader()
    for position in (12_345, 77, 9_000):
        assert reader.read(position, position + 10) == DATA[position : position + 10]
    assert told.asked == [(12_345, 12_355), (77, 87), (9_000, 9_010)]


def test_reading_backwards_brings_pieces() -> None:
    told = Told()
    reader = told.reader()
    for position in range(len(DATA) - 64, 10_000, -64):
        assert reader.read(position, position + 64) == DATA[position : position + 64]
    assert len(told.asked) <= (len(DATA) - 10_000) // 900 * 2 + 3


@given(
    reads=st.lists(
        st.tuples(
            st.integers(0, len(DATA) - 1),
            st.sampled_from([1, 60, 199, 200, 777, 1_500, 4_000]),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_any_reads_give_the_bytes_that_are_there(reads: list[tuple[int, int, bool]]) -> None:
    told = Told()
    reader = told.reader()
    end = 0
    for anywhere, size, goes_on in reads:
        position = end if goes_on and end < len(DATA) else anywhere
        end = min(position + size, len(DATA))
        assert reader.read(position, end) == DATA[position:end]
        assert reader.piece_count <= MAX_PIECES + size // PIECE


def test_an_object_that_has_become_shorter_ends_there() -> None:
    told = Told(DATA[:3_210])
    reader = told.reader()
    assert reader.read(0, 2_000) == DATA[:2_000]
    assert reader.read(2_000, 6_000) == DATA[2_000:3_210]
    assert not reader.read(3_210, 6_000)


def place_of(memory: Any, data: bytes, key: str = "a.log") -> ObjectPlace:
    import obstore

    obstore.put(memory, key, data)
    place = ANYWHERE.place(f"s3://bucket/{key}".encode(), len(data))
    assert isinstance(place, ObjectPlace)
    return place


def test_a_thread_holds_pieces_of_the_object_it_reads_alone(memory: Any) -> None:
    first, second = (place_of(memory, DATA, key) for key in ("a.log", "b.log"))
    first.read_at(0, 500)
    reader = first.reader()
    assert reader.piece_count
    second.read_at(0, 500)
    assert not reader.piece_count
    assert first.read_at(500, 500) == DATA[500:1_000]


def test_threads_that_read_different_ranges_do_not_disturb_each_other(memory: Any) -> None:
    place = place_of(memory, DATA)

    def read(start: int) -> bytes:
        place.expect(start, start + 4_000)
        steps = range(start, start + 4_000, 250)
        return b"".join(bytes(place.read_at(position, 250)) for position in steps)

    with ThreadPoolExecutor(5) as executor:
        assert b"".join(executor.map(read, range(0, 20_000, 4_000))) == DATA[:20_000]


def test_an_object_crosses_processes_and_is_the_same_there(memory: Any) -> None:
    place = place_of(memory, DATA)
    sent = pickle.dumps(place)
    assert len(sent) < 250
    again = pickle.loads(sent)  # noqa: S301
    assert again == place
    assert hash(again) == hash(place)
    assert again.read_at(100, 50) == DATA[100:150]
    assert not again.read_at(len(DATA), 10)


def put_all(memory: Any, *keys: str) -> None:
    import obstore

    for key in keys:
        obstore.put(memory, key, b"x" * len(key))


def entries(files: Files, directory: bytes) -> list[tuple[bytes, bool, int]]:
    return [(e.name, e.is_directory, e.size) for e in files.list(directory)]


@pytest.mark.parametrize("is_listed_at_once", [False, True])
def test_keys_are_listed_as_directories_and_files(memory: Any, *, is_listed_at_once: bool) -> None:
    put_all(memory, "logs/meta.properties", "logs/a-0/1.log", "logs/a-0/1.index", "logs/b/c/2.log")
    # A mark of a directory, and a name that begins like one.
    put_all(memory, "logs/a-0", "logs2/3.log")
    root = b"s3a://bucket/logs"
    files: Files = ANYWHERE.under(root) if is_listed_at_once else ANYWHERE
    assert entries(files, root) == [
        (b"a-0", True, 0),
        (b"b", True, 0),
        (b"meta.properties", False, 20),
    ]
    assert entries(files, root + b"/a-0") == [(b"1.index", False, 16), (b"1.log", False, 14)]
    assert entries(files, root + b"/b") == [(b"c", True, 0)]
    assert files.exists(root + b"/b/c/2.log")
    assert files.exists(root + b"/b/c")
    assert not files.exists(root + b"/b/d")
    assert files.exists(b"s3a://bucket/logs2/3.log")
    assert files.stat(root + b"/b/c/2.log") == Entry(b"2.log", is_directory=False, size=14)
    assert files.stat(root + b"/b").identity == b"s3:bucket/logs/b"
    with pytest.raises(FileNotFoundError):
        files.stat(root + b"/b/d")


def test_the_root_of_an_empty_bucket_is_a_directory(memory: Any) -> None:
    del memory
    for files in (ANYWHERE, ANYWHERE.under(b"s3://bucket")):
        assert files.stat(b"s3://bucket").is_directory
        assert entries(files, b"s3://bucket") == []


def test_too_many_objects_are_refused_with_what_to_do(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(memory, *(f"a/{n}" for n in range(20)))
    monkeypatch.setattr(objects, "MAX_OBJECTS", 19)
    with pytest.raises(OSError, match="more than 19 objects below it: give the log directories"):
        ANYWHERE.under(b"s3://bucket/a")


def test_small_objects_are_read_whole_up_to_a_limit(memory: Any) -> None:
    put_all(memory, "a/12345")
    assert ANYWHERE.read(b"s3://bucket/a/12345", 100) == b"x" * 7
    assert len(ANYWHERE.read(b"s3://bucket/a/12345", 3)) == 4
    with pytest.raises(FileNotFoundError, match="no such object") as raised:
        ANYWHERE.read(b"s3://bucket/a/none", 100)
    assert raised.value.filename == b"s3://bucket/a/none"


def faults() -> list[tuple[Exception, int, str]]:
    exceptions = pytest.importorskip("obstore.exceptions")
    return [
        (FileNotFoundError("…"), errno.ENOENT, "no such object"),
        (exceptions.PermissionDeniedError("…"), errno.EACCES, "permission denied by the store"),
        (exceptions.UnauthenticatedError("…"), errno.EACCES, "rejects these credentials"),
        (exceptions.GenericError("The\nnet\n\nDebug source:\nx"), errno.EIO, "The net"),
        (exceptions.GenericError("x" * 1000), errno.EIO, "x" * 300 + "…"),
    ]


@pytest.mark.parametrize("number", range(5))
def test_errors_of_a_store_are_those_of_files(
    memory: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    import obstore

    error, code, said = faults()[number]
    place = place_of(memory, DATA)

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    for name in ("get", "get_range", "head", "list", "list_with_delimiter"):
        monkeypatch.setattr(obstore, name, fail)
    path = b"s3://bucket/a.log"
    calls: list[Callable[[], Any]] = [
        lambda: place.read_at(0, 10),
        lambda: ANYWHERE.read(path, 10),
        lambda: ANYWHERE.list(path),
        lambda: ANYWHERE.under(path),
        lambda: ANYWHERE.place(path),
    ]
    for call in calls:
        with pytest.raises(OSError, match=said) as raised:
            call()
        assert raised.value.errno == code
        assert raised.value.filename == path
        assert raised.value.__cause__ is error
    assert not ANYWHERE.exists(path)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    pytest.importorskip("obstore")
    files = AnyFiles({"nonsense": "1"})
    with pytest.raises(StorageError, match=r"s3://bucket: .*nonsense"):
        files.list(b"s3://bucket")


def test_settings_of_the_client_and_of_the_store_are_told_apart() -> None:
    pytest.importorskip("obstore")
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "aws_allow_http": "true",
        "timeout": "3s",
        "aws_region": "eu-central-1",
    }
    store = ObjectFiles(b"s3://bucket", options).store
    assert store.config["endpoint"] == "http://127.0.0.1:9"
    assert str(store.client_options["allow_http"]).lower() == "true"
    assert store.client_options["timeout"] == "3s"


def test_without_obstore_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ottla\[objects\]'"):
        AnyFiles().list(b"s3://bucket/logs")

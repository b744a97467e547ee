"""How often an audit requests an object: once, however often it looks at what the object holds."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.storage import HeldFiles, files_of, full_path
from ottla.storage.objects import ObjectFiles
from support.logs import META_PROPERTIES, hurt_partition, segment_name

SEGMENTS = 3


class Requests:
    """What is asked of a store, by method and path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_path: Counter[tuple[str, bytes]] = Counter()
        self._lock = threading.Lock()
        for name in ("get", "read", "size", "list"):
            monkeypatch.setattr(ObjectFiles, name, self._counted(name))

    def _counted(self, name: str) -> Any:
        method = getattr(ObjectFiles, name)

        def counted(files: ObjectFiles, path: bytes, *arguments: Any) -> Any:
            with self._lock:
                self.by_path[name, path] += 1
            return method(files, path, *arguments)

        return counted


def upload(store: Any, directory: Path) -> int:
    """The number of objects."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    for path in files:
        store.put(f"log/{path.relative_to(directory).as_posix()}", path.read_bytes())
    return len(files)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_audit_with_advice_requests_each_small_object_once(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    for number in range(12):
        hurt_partition(tmp_path / f"orders-{number}")
    (tmp_path / "meta.properties").write_text(META_PROPERTIES)
    upload(memory, tmp_path)
    requests = Requests(monkeypatch)
    result = ottla.audit("s3://bucket/log", threads=threads)
    assert {len(deed.partitions) for deed in result.advice} == {12}
    segments = [n for (_, path), n in requests.by_path.items() if path.endswith(b".log")]
    assert segments == [1] * 12 * SEGMENTS
    missing = b"-checkpoint"
    more = {key: n for key, n in requests.by_path.items() if n > 1 and not key[1].endswith(missing)}
    assert more == {}


def test_advice_over_objects_is_that_over_files(memory: Any, tmp_path: Path) -> None:
    hurt_partition(tmp_path / "orders-0")
    (tmp_path / "orders-0" / segment_name(5, "snapshot")).write_bytes(b"none")
    (tmp_path / "orders-0" / "deeper").mkdir()
    (tmp_path / "meta.properties").write_text(META_PROPERTIES)
    upload(memory, tmp_path)
    found = ottla.audit("s3://bucket/log").advice
    expected = ottla.audit(tmp_path).advice
    assert [deed.partitions for deed in found] == [deed.partitions for deed in expected]
    assert [deed.operations for deed in found] == [deed.operations for deed in expected]


def test_more_than_is_held_is_requested_again_and_read_as_it_is(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {b"s3://bucket/%d" % n: bytes([n]) * 100 for n in range(10)}
    for path, data in contents.items():
        memory.put(path.decode().rpartition("/")[2], data)
    requests = Requests(monkeypatch)
    files = HeldFiles(files_of("s3://bucket"), max_bytes=450)
    for _ in range(2):
        files.bring((path, 100) for path in contents)
        for path, data in contents.items():
            place = files.place(path, 100)
            assert bytes(place.read_at(10, 1000)) == data[10:]
            assert place.open().read() == data
            assert files.read(path, 1000) == data
    assert set(requests.by_path.values()) == {2}


def test_an_object_counts_as_long_as_it_was_listed(memory: Any) -> None:
    memory.put("a", b"abcdef")
    files = HeldFiles(files_of("s3://bucket"))
    path = full_path("s3://bucket/a")
    assert bytes(files.place(path, 4).read_at(0, 9)) == b"abcd"
    assert bytes(files.place(path, 9).read_at(2, 9)) == b"cdef"
    assert files.read(path, 3) == b"abcd"


def test_what_cannot_be_read_is_an_error_each_time_and_nothing_is_held_of_it(memory: Any) -> None:
    files = HeldFiles(files_of("s3://bucket"))
    path = full_path("s3://bucket/a")
    place = files.place(path, 4)
    files.bring([(path, 4)])
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="no such object"):
            place.read_at(0, 4)
    memory.put("a", b"abcd")
    assert bytes(place.read_at(0, 4)) == b"abcd"


def test_released_files_hold_nothing(memory: Any) -> None:
    memory.put("a", b"abcd")
    files = HeldFiles(files_of("s3://bucket"))
    path = full_path("s3://bucket/a")
    place = files.place(path, 4)
    assert bytes(place.read_at(0, 4)) == b"abcd"
    files.release()
    memory.put("a", b"efgh")
    assert bytes(place.read_at(0, 4)) == b"efgh"
    assert bytes(files.place(path, 4).read_at(0, 4)) == b"efgh"
    assert files.read(path, 9) == b"efgh"

"""Small objects of a store, which a task reads in parallel, without Spark."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ottla
import pyarrow as pa
import pytest
from ottla.errors import SparkError
from ottla.spark.source.options import Request, request_for
from ottla.spark.source.pieces import task_pieces
from ottla.storage import anywhere, objects
from ottla.storage.objects import ObjectFiles

PARTITIONS = 20
PATIENCE_S = 60


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a store in memory that stands in for every bucket, with some partitions."""
    obstore = pytest.importorskip("obstore")
    held = obstore.store.MemoryStore()
    monkeypatch.setattr(anywhere.ANYWHERE, "_stores", {})
    monkeypatch.setattr(objects, "connect", lambda _url, _options: held)
    for number in range(PARTITIONS):
        records = [ottla.NewRecord(b"k", b"%d of %d" % (n, number)) for n in range(3)]
        obstore.put(held, f"logs/orders-{number}/{0:020d}.log", ottla.build_batch(records))
    return held


def request_of(*paths: str) -> Request:
    return request_for(
        paths,
        "records",
        columns=("file", "offset", "value"),
        topics=None,
        partition_bytes=None,
        storage_options={},
    )


def rows_of(request: Request) -> Iterator[pa.RecordBatch]:
    (task,) = task_pieces(request)
    return task.rows(request)


def test_several_are_read_at_once_and_rows_keep_their_order(
    memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    obstore = pytest.importorskip("obstore")
    for meta in obstore.list(memory).collect():
        path = tmp_path / meta["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(obstore.get(memory, meta["path"]).bytes()))
    wanted = pa.Table.from_batches(rows_of(request_of(str(tmp_path / "logs"))))
    lock, both = threading.Lock(), threading.Event()
    reading = 0
    get = ObjectFiles.get

    def wait_for_another(self: ObjectFiles, path: bytes, start: int, stop: int) -> memoryview:
        nonlocal reading
        with lock:
            reading += 1
            if reading > 1:
                both.set()
        assert both.wait(PATIENCE_S)
        try:
            return get(self, path, start, stop)
        finally:
            with lock:
                reading -= 1

    monkeypatch.setattr(ObjectFiles, "get", wait_for_another)
    found = pa.Table.from_batches(rows_of(request_of("s3://bucket/logs")))
    assert found.to_pylist() == wanted.to_pylist()
    assert len(found) == 3 * PARTITIONS


def test_one_that_vanished_ends_the_task_or_is_left_out_as_asked(memory: Any) -> None:
    obstore = pytest.importorskip("obstore")
    request = request_of("s3://bucket/logs")
    (task,) = task_pieces(request)
    obstore.delete(memory, f"logs/orders-7/{0:020d}.log")
    with pytest.raises(SparkError, match=r"orders-7/0+\.log: no such object"):
        list(task.rows(request))
    lenient = replace(request, fail_on_data_loss=False)
    assert sum(map(len, task.rows(lenient))) == 3 * (PARTITIONS - 1)


def test_a_plan_reads_the_checkpoint_of_all_partitions_once(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstore = pytest.importorskip("obstore")
    entries = "".join(f"orders {number} 2\n" for number in range(PARTITIONS))
    name = "logs/log-start-offset-checkpoint"
    obstore.put(memory, name, f"0\n{PARTITIONS}\n{entries}".encode())
    asked: list[bytes] = []
    read = ObjectFiles.read

    def count(self: ObjectFiles, path: bytes, limit: int) -> bytes:
        asked.append(path)
        return read(self, path, limit)

    monkeypatch.setattr(ObjectFiles, "read", count)
    rows = pa.Table.from_batches(rows_of(request_of("s3://bucket/logs")))
    assert asked == [b"s3://bucket/" + name.encode()]
    assert rows["offset"].to_pylist() == [2] * PARTITIONS

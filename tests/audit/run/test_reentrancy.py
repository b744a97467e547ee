"""Python that is called on the way may call the engine again, whatever it is asked to do."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import ottla
import ottla.cli
import pytest
from ottla import _engine
from ottla.logs.recovery import predict_starts
from support.logs import TIMESTAMP, segment, segment_name, write_log_directory, write_partition


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka")


def every_entry(broker: Path) -> None:
    """Calls what the engine keeps something for between calls."""
    log = broker / "orders-0" / segment_name(0)
    data = log.read_bytes()
    assert ottla.check_batches(data) == 12
    assert ottla.read_columns(data) is not None
    assert ottla.validate(data, now_ms=TIMESTAMP).error is not None
    assert ottla.Leader().append(data, now_ms=TIMESTAMP).error is not None
    assert sum(1 for _ in ottla.read_partition(broker / "orders-0")) == 24
    assert ottla.predict_recovery(broker / "orders-0").opens
    assert len(ottla.audit(broker).files) > 0


def test_a_progress_callback_may_audit(broker: Path) -> None:
    calls: list[int] = []

    def progress(read: int, _: int) -> None:
        if not calls:
            calls.append(read)
            every_entry(broker)

    ottla.audit(broker, progress=progress, threads=1)
    assert calls


@pytest.mark.parametrize("level", ["crc", "decode", "full"])
def test_the_progress_of_one_scan_may_scan(broker: Path, level: str) -> None:
    path = str(broker / "orders-0" / segment_name(0)).encode()
    calls: list[int] = []

    def scan(progress: Callable[[int], bool]) -> None:
        _engine.Segment(path, level=level, now_ms=TIMESTAMP).scan(progress=progress)

    def progress(read: int) -> bool:
        calls.append(read)
        if len(calls) == 1:
            every_entry(broker)
            scan(progress)
        return True

    scan(progress)
    assert len(calls) > 1


def test_the_progress_of_a_prediction_may_predict(broker: Path) -> None:
    calls: list[int] = []

    def progress(read: int) -> bool:
        if not calls:
            calls.append(read)
            every_entry(broker)
        return True

    # Progress is reported after every mebibyte or so.
    partition = write_partition(broker / "large-0", {0: segment(100_000)})
    starts = predict_starts(
        bytes(partition),
        stopped_cleanly=False,
        recovery_point=0,
        log_start_offset=0,
        log_end_offset=24,
        needs_topic_id=True,
        aborted=[],
        progress=progress,
    )
    assert calls
    assert starts


class Place:
    """A file that is read by Python, which does something else before it answers."""

    def __init__(self, data: bytes, meanwhile: Callable[[], None]) -> None:
        self.size = len(data)
        self._data = data
        self._meanwhile = meanwhile

    def read_at(self, position: int, size: int) -> bytes:
        self._meanwhile()
        return self._data[position : position + size]


def test_a_file_that_python_reads_may_call_the_engine(broker: Path) -> None:
    data = segment(4)

    def meanwhile() -> None:
        every_entry(broker)

    place = Place(data, meanwhile)
    assert _engine.Segment(place, level="full", now_ms=TIMESTAMP).scan().batches == 4
    assert _engine.segment_batches(place, 0, 100)[0]
    table = _engine.segment_table(place, "records")
    assert sum(map(len, table)) == 12
    assert _engine.Rebuild().segment(place, 0).next_offset == 12


def test_what_is_collected_between_records_may_go_on_with_the_same_iterator() -> None:
    """Making a record's objects may collect garbage, and with it call what waits for that."""
    data = ottla.build_batch([ottla.NewRecord(value=b"v", headers=[("h", b"")])] * 50)
    iterator = next(iter(ottla.read_batches(data))).records()
    taken = []

    class Garbage:
        pass

    def collected(_: object) -> None:
        taken.append(next(iterator, None))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        kept = []
        for _ in iterator:
            garbage = Garbage()
            garbage.itself = garbage  # type: ignore[attr-defined]
            kept.append(weakref.ref(garbage, collected))
    finally:
        gc.set_threshold(*threshold)
    assert taken


def test_a_panic_becomes_an_exception_of_ottla() -> None:
    with pytest.raises(ottla.EngineError, match="report it: left is not right"):
        _engine.provoke_panic("left is not right")
    assert issubclass(ottla.EngineError, ottla.OttlaError)
    # The next call finds everything in order.
    assert ottla.check_batches(segment(4)) == 12


def test_a_command_that_meets_a_panic_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broker: Path
) -> None:
    def panics(*_: object, **__: object) -> None:
        _engine.provoke_panic("left is not right")

    monkeypatch.setattr("ottla.cli.reading.selection.read_partition", panics)
    assert ottla.cli.run(["read", str(broker / "orders-0")]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "ottla: a fault in Ottla itself, please report it: left is not right"
    ]

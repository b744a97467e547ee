"""A log directory that a broker writes to: nothing of it is damage."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ottla
import pytest
from ottla.audit import Level
from support.logs import segment, segment_name, write_log_directory
from support.small_log import LOG_END_OFFSET, PARTITION, batch, write_checkpoint, write_orders

BATCHES_OF_A_SEGMENT = 5
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")


def write_on(directory: Path, stop: threading.Event) -> None:
    """Append batches, each in two writes, roll segments and move the checkpoints."""
    partition = directory / PARTITION
    active, offset = partition / segment_name(9), LOG_END_OFFSET
    while not stop.wait(0.0005):
        for number in range(BATCHES_OF_A_SEGMENT):
            data = batch(offset)
            # A segment may stay at the beginning of its first batch for as long as an audit takes,
            # if this thread has to wait; that is a warning, since it may have held more.
            middle = 40 if number else 0
            for piece in (data[:middle], data[middle:]):
                with active.open("ab") as file:
                    file.write(piece)
            offset += 3
        active = partition / segment_name(offset)
        for suffix in ("log", "index", "timeindex"):
            (partition / segment_name(offset, suffix)).touch()
        for name in CHECKPOINTS:
            write_checkpoint(directory / f"{name}.tmp", {PARTITION: offset})
            (directory / f"{name}.tmp").rename(directory / name)


@contextmanager
def written_to(directory: Path) -> Iterator[None]:
    stop = threading.Event()
    writer = threading.Thread(target=write_on, args=(directory, stop))
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_a_log_that_is_written_to_is_neither_damaged_nor_short(tmp_path: Path) -> None:
    write_orders(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    found: list[str] = []
    told: list[ottla.Damage] = []
    before, growths = LOG_END_OFFSET, 0
    with written_to(tmp_path):
        for _ in range(1_000):
            result = ottla.audit(tmp_path)
            found += [row["message"] for row in result.findings if row["severity"] != "info"]
            records = ottla.read_partition(tmp_path / PARTITION, on_damage=told.append)
            offsets = [record.offset for record in records]
            assert offsets == list(range(len(offsets)))
            assert len(offsets) >= before
            growths += len(offsets) > before
            before = len(offsets)
            if growths == 6:
                break
    assert growths == 6
    assert found == []
    assert [damage for damage in told if damage.severity != "info"] == []


def test_the_first_batch_of_a_segment_that_arrives_meanwhile_is_no_warning(tmp_path: Path) -> None:
    write_orders(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    data = batch(LOG_END_OFFSET)
    active = tmp_path / PARTITION / segment_name(LOG_END_OFFSET)
    active.write_bytes(data[:40])

    def found(write: Callable[[int, int], object] | None) -> list[str]:
        result = ottla.audit(tmp_path, progress=write)
        return [row["name"] for row in result.findings if row["severity"] != "info"]

    assert found(None) == ["truncated-tail"]
    assert found(lambda *_: active.write_bytes(data)) == []


@pytest.mark.parametrize("level", ["crc", "full"])
def test_segments_that_retention_deletes_meanwhile_are_said_and_no_error(
    level: Level, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / ".kafka_cleanshutdown").unlink()
    large = path / "clicks-0"
    large.mkdir()
    (large / segment_name(0)).write_bytes(segment(400))
    shutil.copy(path / "orders-0" / "partition.metadata", large)

    def delete(*_: object) -> bool:
        for suffix in ("log", "index", "timeindex", "snapshot"):
            (path / "orders-0" / segment_name(0, suffix)).unlink(missing_ok=True)
        return True

    result = ottla.audit(path, level=level, threads=1, progress=delete)
    (found,) = (row for row in result.findings if row["name"] == "deleted-meanwhile")
    assert found["severity"] == "info"
    assert found["first_offset"] == 0
    assert "the log starts at offset 12 now" in found["message"]
    assert [row["message"] for row in result.findings if row["severity"] != "info"] == []
    assert (result.exit_code, result.summary.not_read) == (0, 0)


def test_a_segment_that_goes_from_the_middle_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])

    def delete(*_: object) -> bool:
        for partition in ("orders-0", "orders-1"):
            (path / partition / segment_name(12)).unlink(missing_ok=True)
        return True

    result = ottla.audit(path, threads=1, progress=delete)
    assert "unreadable" in {row["name"] for row in result.findings}
    assert result.exit_code == 3

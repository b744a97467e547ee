"""Logs written by a plane, damaged where they were not synced, and loaded again."""

import random
from pathlib import Path
from typing import NamedTuple

import ottla
import pytest
from ottla._engine import DataPlane
from support.plane_frames import Plane, batch


class Written(NamedTuple):
    """A batch as it was stored, in the segment of a base offset."""

    producer_id: int
    sequence: int
    offset: int
    data: bytes
    segment: int


def fields(producer_id: int, sequence: int) -> dict[str, int]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}


def opened(directory: Path, recovery_point: int = 0) -> Plane:
    """A plane with the log of a directory, in small segments."""
    plane = Plane(DataPlane())
    plane.open(
        directory=directory,
        recovery_point=recovery_point,
        settings=ottla.TopicConfig(segment_bytes=9_000),
    )
    return plane


def write(directory: Path, rng: random.Random) -> tuple[list[Written], int]:
    """Write batches of some producers, and sync at times. Returns them and the recovery point."""
    plane = opened(directory)
    sequences = dict.fromkeys(range(3), 0)
    written = []
    for _ in range(rng.randint(1, 40)):
        producer_id = rng.choice(list(sequences))
        sequence = sequences[producer_id]
        values = [rng.randbytes(rng.randint(0, 900)) for _ in range(rng.randint(1, 3))]
        answer = plane.append(batch(*values, **fields(producer_id, sequence)))
        assert answer.error_code == 0
        sequences[producer_id] += len(values)
        offset = answer.base_offset
        data = plane.engine.read(0, offset, 1)
        segment = plane.engine.segments(0)[-1][0]
        written.append(Written(producer_id, sequence, offset, data, segment))
        if rng.random() < 0.1:
            plane.engine.flush(0)
    ((_, _, recovery_point, _, _),) = plane.engine.checkpoints()
    plane.engine.close(0)
    return written, recovery_point


def hurt(directory: Path, written: list[Written], recovery_point: int, rng: random.Random) -> None:
    """Damage what was not synced: the end of a segment, indexes and snapshots."""
    lost = [one for one in written if one.offset >= recovery_point]
    for path in sorted(directory.iterdir()):
        if path.suffix in {".index", ".timeindex", ".snapshot"}:
            base = int(path.stem)
            is_synced = base + (path.suffix != ".snapshot") <= recovery_point and not any(
                one.segment == base for one in lost
            )
            if not is_synced and rng.random() < 0.3:
                path.write_bytes(rng.randbytes(rng.choice((0, 7, 24, 100))))
    if not lost or rng.random() < 0.2:
        return
    segment = rng.choice(lost).segment
    path = directory / f"{segment:020}.log"
    data = bytearray(path.read_bytes())
    synced = sum(
        len(one.data) for one in written if one.segment == segment and one.offset < recovery_point
    )
    at = rng.randint(synced, len(data))
    size = rng.randint(1, 2000)
    match rng.randrange(3):
        case 0:
            del data[at:]
        case 1:
            data[at : at + size] = bytes(size)
        case _:
            data[at : at + size] = rng.randbytes(size)
    path.write_bytes(data)


def check_seed(directory: Path, seed: int) -> None:
    rng = random.Random(seed)
    written, recovery_point = write(directory, rng)
    hurt(directory, written, recovery_point, rng)
    plane = opened(directory, recovery_point)
    end = plane.engine.offsets(0)[3]
    kept = [one for one in written if one.offset < end]
    position, read = 0, []
    while position < end:
        read.append(plane.engine.read(0, position, 1))
        position = next(iter(ottla.read_batches(read[-1]))).last_offset + 1
    assert read == [one.data for one in kept], seed
    assert position == end >= min(recovery_point, written[-1].offset + 1), seed
    newest = {one.producer_id: one for one in kept}
    for one in newest.values():
        again = next(iter(ottla.read_batches(one.data)))
        values = [record.value or b"" for record in again.records()]
        answer = plane.append(batch(*values, **fields(one.producer_id, one.sequence)))
        assert (answer.error_code, answer.base_offset) == (0, one.offset), seed
        following = fields(one.producer_id, one.sequence + len(values))
        answer = plane.append(batch(b"next", **following))
        assert (answer.error_code, answer.base_offset) == (0, end), seed
        end += 1
    # Stopped again, it is a log like any other.
    plane.engine.shut_down(0)
    plane.engine.close(0)
    findings = ottla.audit(directory).findings
    assert [f for f in findings if f["severity"] == "error"] == [], seed


@pytest.mark.parametrize("seed", range(8))
def test_what_was_synced_is_there_and_a_prefix_of_the_rest(tmp_path: Path, seed: int) -> None:
    check_seed(tmp_path / "t-0", seed)


@pytest.mark.slow
def test_what_was_synced_is_there_of_many_logs(tmp_path: Path) -> None:
    for seed in range(8, 300):
        check_seed(tmp_path / str(seed) / "t-0", seed)

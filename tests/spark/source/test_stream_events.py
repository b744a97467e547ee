"""What happens to a log while a stream reads it, and the driver is killed at every step."""

import shutil
from pathlib import Path

import pytest
from support.logs import segment, segment_name, write_partition

from benches.data import encode_batch

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import DataLossWarning, SparkError
from support.streams import STEPS, Query
from support.thin import encode_thin

STEP = pytest.mark.parametrize("step", STEPS)
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def put(directory: Path, base_offset: int, count: int = 2, **how: int) -> None:
    """Add a segment of so many batches of three records."""
    directory.mkdir(exist_ok=True)
    data = segment(count, base_offset=base_offset, **how)
    (directory / segment_name(base_offset)).write_bytes(data)


def read_on(query: Query, step: str) -> None:
    """Kill the driver at a step, and read what there is."""
    query.killed_at(step)
    while query.trigger():
        pass


def hole(query: Query, first: int, last: int, step: str) -> None:
    """Expect that offsets are waited for, visibly, and then that they are an error."""
    read_on(query, step)
    assert query.offsets() == list(range(first))
    assert not query.trigger()
    report = query.reader.reportLatestOffset()
    assert report is not None
    (behind,) = report["behind"].values()
    assert f"offsets {first} to {last} are missing" in behind["waits"]
    assert "late_segments=fail" in behind["waits"]


@STEP
def test_a_segment_that_comes_late_is_waited_for(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0)
    put(directory, 12)
    query = Query(tmp_path)
    hole(query, 6, 11, step)
    query.restart()
    put(directory, 6)
    query.killed_at(step)
    query.trigger()
    assert query.offsets() == list(range(18))


@STEP
def test_a_segment_that_never_comes_is_an_error_of_its_offsets(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0)
    put(directory, 12)
    query = Query(tmp_path)
    hole(query, 6, 11, step)
    query.restart(late_segments="fail")
    with pytest.raises(SparkError, match=r"orders-0: offsets 6 to 11 are missing: neither comp"):
        query.trigger()
    query.restart(fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="offsets 6 to 11 are missing"):
        query.trigger()
    assert query.offsets() == [*range(6), *range(12, 18)]
    assert query.entry()["passed_offsets"] == 6


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log-start-offset-checkpoint", "0\n1\norders 0 12\n"),
        ("cleaner-offset-checkpoint", "0\n1\norders 0 12\n"),
    ],
)
def test_a_checkpoint_beside_the_log_explains_a_hole(
    name: str, content: str, tmp_path: Path
) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0)
    put(directory, 12)
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(6))
    (tmp_path / name).write_text(content)
    query.trigger()
    assert query.offsets() == [*range(6), *range(12, 18)]
    assert query.entry()["holes"] == [[6, 11]]
    put(directory, 6)
    with pytest.raises(SparkError, match="offsets 6 to 11 came after reading had gone on"):
        query.trigger()


def test_a_topic_that_is_said_to_be_compacted_may_have_holes(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0)
    put(directory, 12)
    query = Query(tmp_path, compacted_topics="ord*", late_segments="fail")
    query.trigger()
    assert query.offsets() == [*range(6), *range(12, 18)]


def test_a_first_segment_that_comes_after_reading_began_is_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 6)
    query = Query(tmp_path)
    query.trigger()
    put(directory, 0)
    with pytest.raises(SparkError, match="offsets 0 to 5 came after reading had gone on at off"):
        query.trigger()


def test_a_first_segment_that_the_leader_epochs_know_of_is_waited_for(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 6)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    query = Query(tmp_path)
    assert not query.trigger()
    put(directory, 0)
    query.trigger()
    assert query.offsets() == list(range(12))


@STEP
@pytest.mark.parametrize("is_same_shape", [True, False])
@pytest.mark.parametrize("has_id", [True, False])
def test_a_topic_that_was_created_again_is_told_and_can_be_begun_anew(
    step: str, is_same_shape: bool, has_id: bool, tmp_path: Path
) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(4, value_size=20)})
    if not has_id:
        (directory / "partition.metadata").unlink()
    query = Query(tmp_path)
    query.killed_at(step)
    query.trigger()
    shutil.rmtree(directory)
    value_size = 20 if is_same_shape else 7
    data = encode_again(5, value_size)
    write_partition(directory, {0: data}, topic_id=OTHER_ID)
    if not has_id:
        (directory / "partition.metadata").unlink()
    query.restart()
    with pytest.raises(SparkError, match=r"created again.*recreated_topics=begin_anew"):
        query.trigger()
    query.restart(recreated_topics="begin_anew")
    with pytest.warns(DataLossWarning, match="created again"):
        read_on(query, step)
    assert query.offsets() == [*range(12), *range(15)]


def with_epochs(data: bytes, *epochs: int) -> bytes:
    """Return batches of one size with other leader epochs, which no checksum covers."""
    size = len(data) // len(epochs)
    batches = [bytearray(data[at : at + size]) for at in range(0, len(data), size)]
    for batch, epoch in zip(batches, epochs, strict=True):
        batch[12:16] = epoch.to_bytes(4, "big")
    return b"".join(batches)


def test_a_leader_epoch_that_falls_is_told_as_another_topic_or_a_damaged_byte(
    tmp_path: Path,
) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: with_epochs(segment(2), 7, 7)})
    query = Query(tmp_path)
    query.trigger()
    put(directory, 0, 3)
    log = directory / segment_name(0)
    log.write_bytes(with_epochs(log.read_bytes(), 7, 7, 3))
    with pytest.raises(
        SparkError,
        match=r"epoch 7 was read, and epoch 3 follows.*created again, or a byte.*damaged",
    ):
        query.trigger()


def encode_again(count: int, value_size: int) -> bytes:
    """Other records of the same sizes."""
    return b"".join(
        encode_batch(
            [(1_770_000_000_000, b"yek", b"w" * value_size, ())] * 3, base_offset=3 * number
        )
        for number in range(count)
    )


def clean(directory: Path, base_offset: int, first: int, last: int, kept: list[int]) -> None:
    """Have the cleaner rewrite a segment into one batch with some of its records."""
    data = encode_thin(first, last, dict.fromkeys(kept, b"kept"))
    (directory / segment_name(base_offset)).write_bytes(data)


@STEP
def test_the_cleaner_may_compact_the_segment_in_which_reading_stands(
    step: str, tmp_path: Path
) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 2)
    query = Query(tmp_path)
    query.killed_at(step)
    query.trigger()
    # Ten batches were read of three; then the segment grows, is closed, and compacted.
    assert query.offsets() == list(range(6))
    clean(directory, 0, 0, 14, [1, 4, 7, 12, 14])
    put(directory, 15)
    query.killed_at(step)
    query.trigger()
    assert query.offsets() == [*range(6), 7, 12, 14, *range(15, 21)]


@STEP
def test_what_was_planned_may_be_compacted_before_it_is_read(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 3)
    put(directory, 9)
    query = Query(tmp_path)
    query.killed_at("planned")
    clean(directory, 0, 0, 8, [1, 8])
    query.killed_at(step)
    query.trigger()
    assert query.offsets() == [1, 8, *range(9, 15)]


@STEP
def test_retention_between_plan_and_replay_is_told(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    for base_offset in (0, 6, 12):
        put(directory, base_offset)
    query = Query(tmp_path)
    query.killed_at(step)
    if query.planned is None:
        return
    (directory / segment_name(0)).unlink()
    with pytest.raises(SparkError, match="not what was planned: offsets 0 to 5 are gone"):
        query.trigger()
    query.restart(fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="offsets 0 to 5 are gone"):
        query.trigger()
    assert query.offsets() == list(range(6, 18))
    assert not query.trigger()
    report = query.reader.reportLatestOffset()
    assert report is not None
    assert report["passed_offsets"] == 6
    put(directory, 18)
    query.trigger()
    report = query.reader.reportLatestOffset()
    assert report is not None
    assert (query.entry()["passed_offsets"], report["passed_offsets"]) == (6, 6)


def test_a_loss_that_was_planned_is_counted_once_however_often_it_is_replayed(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "orders-0"
    for base_offset in (0, 12):
        put(directory, base_offset)
    query = Query(tmp_path, late_segments="fail", fail_on_data_loss="false")
    with pytest.warns(DataLossWarning, match="offsets 6 to 11 are missing"):
        query.killed_at("read")
    with pytest.warns(DataLossWarning, match="offsets 6 to 11 are missing"):
        query.trigger()
    put(directory, 18)
    query.trigger()
    assert query.entry()["passed_offsets"] == 6


def test_a_segment_that_is_gone_from_the_middle_of_what_was_planned_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    for base_offset in (0, 6, 12):
        put(directory, base_offset)
    query = Query(tmp_path)
    query.killed_at("planned")
    (directory / segment_name(6)).unlink()
    with pytest.raises(SparkError, match="not what was planned: offsets 6 to 11 are missing now"):
        query.trigger()


def test_other_records_than_were_planned_are_told(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 4, value_size=20)
    query = Query(tmp_path)
    query.trigger()
    put(directory, 12, 4, value_size=20)
    query.killed_at("planned")
    other = bytearray(encode_again(4, 20))
    for number in range(4):
        at = number * len(other) // 4
        other[at : at + 8] = (12 + 3 * number).to_bytes(8, "big")
    whole = (directory / segment_name(12)).read_bytes()
    size = len(whole) // 4
    (directory / segment_name(12)).write_bytes(bytes(other[: 3 * size]) + whole[3 * size :])
    with pytest.raises(SparkError, match="not what was planned: the batches of offsets 12 to 23"):
        query.trigger()


def test_a_task_reads_what_was_planned_or_fails(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 4)
    query = Query(tmp_path)

    def rewrite(step: str) -> None:
        if step == "divided":
            (directory / segment_name(0)).write_bytes(encode_again(4, 20))

    with pytest.raises(SparkError, match="not what was planned: the batches from position 0 to"):
        query.trigger(kill=rewrite)
    assert query.rows == []


@STEP
@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
def test_damage_in_the_middle_of_the_last_segment_is_told(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 2)
    query = Query(tmp_path)
    query.killed_at(step)
    query.trigger()
    data = bytearray(segment(6))
    size = len(data) // 6
    data[2 * size + 30] ^= 1
    (directory / segment_name(0)).write_bytes(data)
    query.restart()
    with pytest.raises(SparkError, match="the batch of offsets 6 to 8 has a wrong checksum"):
        query.trigger()
    query.restart(on_damage="skip")
    query.trigger()
    assert query.offsets() == [*range(6), *range(9, 18)]


def test_a_length_that_is_wrong_is_damage_once_a_batch_follows(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    data = bytearray(segment(3))
    size = len(data) // 3
    data[size + 8 : size + 12] = (1 << 20).to_bytes(4, "big")
    path = directory / segment_name(0)
    path.write_bytes(data[: 2 * size])
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == [0, 1, 2]
    assert not query.trigger()
    path.write_bytes(data)
    with pytest.raises(SparkError, match=f"damage at position {size}, where offset 3 is expected"):
        query.trigger()


@STEP
def test_the_first_batch_begins_where_it_was_planned_to(step: str, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 6)
    query = Query(tmp_path)
    query.killed_at(step)
    if query.planned is not None:
        (entry,) = query.planned["partitions"].values()
        assert entry["planned"]["first_offset"] == 6
    put(directory, 12, 5)
    query.trigger()
    while query.trigger():
        pass
    assert query.offsets() == list(range(6, 27))


def test_starting_offsets_are_kept_by_the_checkpoint(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    put(directory, 0, 3)
    put(directory, 9)
    query = Query(tmp_path, startingOffsets='{"orders": {"0": 7}}')
    query.killed_at("planned")
    query.restart(startingOffsets="earliest")
    query.trigger()
    assert query.offsets() == list(range(7, 15))
    late = Query(tmp_path, startingOffsets="latest")
    late.trigger()
    put(directory, 15)
    late.trigger()
    assert late.offsets() == list(range(15, 21))
    timed = Query(tmp_path, startingTimestamp=str(1_760_000_000_010))
    timed.trigger()
    assert timed.offsets()[-1] == 20
    assert timed.offsets()[0] == 9 + 1

"""Advice for the next start: every deed is followed on a copy, and the start holds its price."""

import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla import _engine
from ottla.audit.advice import deeds, partition
from ottla.audit.advice.deed import Deed
from ottla.storage import Entry, LocalFiles
from support.logs import TIMESTAMP, segment_name, write_log_directory
from support.small_log import (
    PARTITION,
    SECOND,
    SnapshotEntry,
    batch,
    producer_batches,
    producer_snapshot,
    write_checkpoint,
    write_orders,
)
from support.starts import expected_start, follow, partitions_of, readable_offsets, start

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

REFUSAL = 10**9
"""A broker that does not start weighs more than any offset."""


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """Give a sound log directory of a broker that stopped cleanly.

    orders-0, orders-1 and payments-0 have the offsets 0 to 23 each, in segments of 12.
    """
    return write_log_directory(tmp_path / "kafka")


def advice_for(*sources: Path) -> tuple[Deed, ...]:
    return ottla.audit(list(sources)).advice


def operations_of(deed: Deed) -> list[tuple[str, str]]:
    return [(operation.operation, operation.path) for operation in deed.operations]


def lost_by(deed: Deed) -> int:
    return sum(p.readable_offsets_lost + p.readable_offsets_cut for p in deed.partitions)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def flip_byte(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def check_by_following(advice: Sequence[Deed], log_directory: Path, scratch: Path) -> None:
    """Hold the prices of all deeds for a log directory, and their order, against the starts."""
    names = partitions_of(log_directory)
    before = {name: readable_offsets(log_directory / name) for name in names}
    if not advice:
        after = start(copied(log_directory, scratch), before)
        assert {name: after[name].readable for name in names} == before
        return
    costs = []
    for number, deed in enumerate(advice):
        copy = copied(log_directory, scratch / str(number))
        follow(deed, copy)
        expected = {name: expected_start(copy / name) for name in names}
        after = start(copy, before)
        prices = {f"{price.topic}-{price.partition}": price for price in deed.partitions}
        assert prices.keys() <= before.keys()
        for name in names:
            result = after[name]
            lost = len(before[name] - result.readable)
            if name not in prices:
                assert (result.opens, lost) == (True, 0), (deed.deed, name)
                continue
            price = prices[name]
            gone = price.readable_offsets_lost + price.readable_offsets_cut
            assert (price.opens, price.log_end_offset, gone) == (
                result.opens,
                result.log_end_offset,
                lost,
            ), (deed.deed, name)
            assert price.readable_offsets == len(before[name]), (deed.deed, name)
            if result.opens is not None:
                told = price.as_expected
                opens, log_end_offset, producers = expected[name]
                assert (told.opens, told.log_end_offset) == (opens, log_end_offset), name
                assert price.producers in (producers, None), (deed.deed, name)
                assert price.producers is not None or price.is_put_aside
        refusals = sum(result.opens is False for result in after.values())
        losses = sum(len(before[name] - after[name].readable) for name in names)
        costs.append(refusals * REFUSAL + losses)
    assert costs[0] <= costs[[deed.deed for deed in advice].index("nothing")]


def copied(log_directory: Path, scratch: Path) -> Path:
    return shutil.copytree(log_directory, scratch / "log", symlinks=True)


# What would hurt an operator


@pytest.mark.parametrize("name", ["orders.log", "copy.snapshot", "99999999999999999999.index"])
def test_a_file_whose_name_lacks_an_offset_is_moved_away(kafka: Path, name: str) -> None:
    """A start that looks for the offset is refused, and deleting others does not help."""
    (kafka / "orders-0" / name).touch()
    deed = advice_for(kafka)[0]
    assert (deed.deed, operations_of(deed)) == ("move-file", [("move", f"orders-0/{name}")])
    assert lost_by(deed) == 0


def test_a_file_with_a_number_that_a_start_reads_is_left_where_it_is(kafka: Path) -> None:
    (kafka / "orders-0" / "+24.snapshot").touch()
    assert "move-file" not in {deed.deed for deed in advice_for(kafka)}


def test_an_index_is_not_deleted_where_the_start_would_then_cut_sound_records(
    kafka: Path, tmp_path: Path
) -> None:
    """A wrong index of a closed segment harms lookups; recovering that segment harms records."""
    segment = kafka / "orders-0" / segment_name(0)
    flip_byte(segment, segment.stat().st_size // 2 - 1)
    (kafka / "orders-0" / segment_name(0, "index")).write_bytes(struct.pack(">ii", 5, 7))
    advice = advice_for(kafka)
    assert not any(
        path.endswith(".index") or path == CLEAN_SHUTDOWN
        for deed in advice
        for _, path in operations_of(deed)
    )
    check_by_following(advice, kafka, tmp_path / "tried")


def test_the_mark_of_a_clean_stop_stays_where_another_partition_would_lose_records(
    kafka: Path, tmp_path: Path
) -> None:
    """Zeros keep orders-1 from starting; a recovery of all partitions would cut payments-0."""
    append(kafka / "orders-1" / segment_name(12), bytes(100))
    segment = kafka / "payments-0" / segment_name(12)
    flip_byte(segment, segment.stat().st_size // 2 - 1)
    best, *others = advice = advice_for(kafka)
    assert operations_of(best) == [("delete", f"orders-1/{segment_name(12, 'index')}")]
    assert (best.deed, lost_by(best)) == ("delete-index", 0)
    assert all(lost_by(deed) for deed in others)
    check_by_following(advice, kafka, tmp_path / "tried")


def test_a_mark_is_not_deleted_beside_partitions_that_were_not_audited(kafka: Path) -> None:
    append(kafka / "orders-1" / segment_name(12), bytes(100))
    for advice in (advice_for(kafka / "orders-1"), ottla.audit(kafka, topics=["orders"]).advice):
        assert advice[0].deed == "delete-index"
        assert advice[0].partitions_not_priced >= 1
        assert all(CLEAN_SHUTDOWN not in path for d in advice for _, path in operations_of(d))


def test_a_start_that_only_cuts_off_more_by_any_deed_is_best_left_alone(
    kafka: Path, tmp_path: Path
) -> None:
    (kafka / CLEAN_SHUTDOWN).unlink()
    segment = kafka / "orders-0" / segment_name(12)
    flip_byte(segment, segment.stat().st_size // 2 - 1)
    nothing, *_ = advice = advice_for(kafka)
    (price,) = nothing.partitions
    assert nothing.deed == "nothing"
    assert (price.topic, price.partition, price.opens) == ("orders", 0, True)
    assert (price.readable_offsets, price.readable_offsets_lost) == (21, 6)
    check_by_following(advice, kafka, tmp_path / "tried")


def write_log_with_snapshot(directory: Path, snapshot: bytes) -> Path:
    """Write one partition with one producer, and one snapshot, after a clean stop."""
    write_orders(directory, first=producer_batches(0, 3, 6))
    (directory / CLEAN_SHUTDOWN).touch()
    (directory / PARTITION / segment_name(9, "snapshot")).write_bytes(snapshot)
    return directory


def test_the_only_snapshot_is_left_where_the_start_does_without_it_and_reads_the_log(
    tmp_path: Path,
) -> None:
    """Without any snapshot a start after a clean stop takes it that there never was a producer."""
    log_directory = write_log_with_snapshot(tmp_path / "kafka", b"no snapshot")
    (nothing,) = advice = advice_for(log_directory)
    (price,) = nothing.partitions
    assert nothing.deed == "nothing"
    assert (price.producers, price.side_files_mended) == (1, (segment_name(9, "snapshot"),))
    check_by_following(advice, log_directory, tmp_path / "tried")


def test_a_wrong_snapshot_is_not_deleted_without_the_producers_being_read_from_the_log(
    tmp_path: Path,
) -> None:
    entry = SnapshotEntry(
        producer_id=7,
        producer_epoch=0,
        last_sequence=5,
        last_offset=8,
        offset_delta=2,
        timestamp=TIMESTAMP + 8,
    )
    log_directory = write_log_with_snapshot(tmp_path / "kafka", producer_snapshot([entry]))
    nothing, mend = advice = advice_for(log_directory)
    assert [price.side_files_mended for price in nothing.partitions] == [()]
    assert {path for _, path in operations_of(mend)} == {
        f"{PARTITION}/{segment_name(9, 'snapshot')}",
        f"{PARTITION}/{segment_name(9, 'index')}",
    }
    assert [price.producers for price in mend.partitions] == [1]
    follow(mend, copied(log_directory, tmp_path / "by-hand"))
    after = ottla.predict_recovery(tmp_path / "by-hand" / "log" / PARTITION, clean=True)
    assert [producer.last_sequence for producer in after.producers] == [8]
    check_by_following(advice, log_directory, tmp_path / "tried")


# What helps


def test_an_index_that_lies_about_the_end_is_deleted_and_costs_nothing(
    kafka: Path, tmp_path: Path
) -> None:
    index = kafka / "orders-0" / segment_name(12, "index")
    index.write_bytes(struct.pack(">ii", 11, 1 << 20))
    best, *others = advice = advice_for(kafka)
    assert operations_of(best) == [("delete", f"orders-0/{index.name}")]
    assert lost_by(best) == 0
    assert [lost_by(deed) for deed in others if deed.deed == "nothing"] == [12]
    check_by_following(advice, kafka, tmp_path / "tried")


def test_deeds_for_several_partitions_are_one_deed_for_their_log_directory(
    kafka: Path, tmp_path: Path
) -> None:
    index = kafka / "orders-0" / segment_name(12, "index")
    index.write_bytes(struct.pack(">ii", 11, 1 << 20))
    (kafka / "payments-0" / "leader-epoch-checkpoint").write_text("0\n1\nx 0\n")
    best, *_ = advice = advice_for(kafka)
    assert best.deed == "several"
    assert {path.split("/")[0] for _, path in operations_of(best)} == {"orders-0", "payments-0"}
    assert lost_by(best) == 0
    assert best.partitions_unchanged == 1
    check_by_following(advice, kafka, tmp_path / "tried")


def test_a_partition_that_no_deed_opens_is_moved_away(kafka: Path, tmp_path: Path) -> None:
    (kafka / "orders-0" / "partition.metadata").write_text("version: 9\n")
    best, *_ = advice = advice_for(kafka)
    assert operations_of(best) == [("move", "orders-0")]
    assert (best.deed, lost_by(best)) == ("move-partition", 24)
    check_by_following(advice, kafka, tmp_path / "tried")


def test_a_file_whose_name_is_no_offset_is_moved_out_of_the_way(
    kafka: Path, tmp_path: Path
) -> None:
    (kafka / "orders-0" / "copy.log").write_bytes(b"")
    (kafka / "orders-0" / segment_name(12, "index")).write_bytes(struct.pack(">ii", 3, 7))
    best, *_ = advice = advice_for(kafka)
    assert ("move", "orders-0/copy.log") in operations_of(best)
    assert lost_by(best) == 0
    check_by_following(advice, kafka, tmp_path / "tried")


def test_an_index_of_a_closed_segment_is_made_anew_where_that_costs_nothing(
    kafka: Path, tmp_path: Path
) -> None:
    index = kafka / "orders-0" / segment_name(0, "index")
    index.write_bytes(struct.pack(">ii", 5, 7))
    nothing, mend = advice = advice_for(kafka)
    assert (nothing.deed, lost_by(nothing)) == ("nothing", 0)
    assert operations_of(mend) == [("delete", f"orders-0/{index.name}")]
    check_by_following(advice, kafka, tmp_path / "tried")


def test_a_recovery_point_is_believed_and_what_its_loss_would_cost_is_said(
    kafka: Path, tmp_path: Path
) -> None:
    (kafka / CLEAN_SHUTDOWN).unlink()
    segment = kafka / "orders-0" / segment_name(0)
    flip_byte(segment, segment.stat().st_size - 1)
    write_checkpoint(kafka / "recovery-point-offset-checkpoint", {"orders-0": 24})
    nothing, *_ = advice = advice_for(kafka)
    (price,) = nothing.partitions
    assert nothing.deed == "nothing"
    assert (price.log_end_offset, price.readable_offsets_lost) == (9, 12)
    assert price.expected == {
        "opens": True,
        "is_put_aside": False,
        "log_end_offset": 24,
        "readable_offsets_lost": 0,
        "readable_offsets_cut": 0,
        "exposed_transactions": 0,
    }
    check_by_following(advice, kafka, tmp_path / "tried")


def test_a_log_directory_without_topic_ids_is_priced_as_a_broker_since_4_0_takes_it(
    kafka: Path, tmp_path: Path
) -> None:
    for name in partitions_of(kafka):
        (kafka / name / "partition.metadata").unlink()
    (nothing,) = advice = advice_for(kafka)
    assert [(p.is_put_aside, p.readable_offsets_lost) for p in nothing.partitions] == [
        (True, 24)
    ] * 3
    check_by_following(advice, kafka, tmp_path / "tried")


def test_logs_without_topic_ids_that_lack_nothing_but_an_index_are_not_read_again(
    kafka: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit has counted what a broker would put aside: pricing it takes no second pass."""
    for name in partitions_of(kafka):
        (kafka / name / "partition.metadata").unlink()
        for index in (kafka / name).glob("*.timeindex"):
            index.unlink()

    def read_again(*_: object, **__: object) -> None:
        raise AssertionError("a log was read again")

    monkeypatch.setattr(_engine, "ReadableOffsets", read_again)
    (nothing,) = advice_for(kafka)
    assert [price.readable_offsets_lost for price in nothing.partitions] == [24] * 3


def test_there_is_no_advice_where_every_partition_opens_as_it_is(kafka: Path) -> None:
    assert advice_for(kafka) == ()


def test_log_directories_of_one_broker_are_advised_each_by_itself(tmp_path: Path) -> None:
    """JBOD: the mark of a clean stop in one of them says nothing about the other."""
    first, second = (write_log_directory(tmp_path / name) for name in ("first", "second"))
    shutil.rmtree(first / "payments-0")
    for name in ("orders-0", "orders-1"):
        shutil.rmtree(second / name)
    (second / CLEAN_SHUTDOWN).unlink()
    (second / "recovery-point-offset-checkpoint").unlink()
    append(first / "orders-1" / segment_name(12), bytes(100))
    append(second / "payments-0" / segment_name(0), bytes(100))
    advice = advice_for(first, second)
    for number, directory in enumerate((first, second)):
        mine = [deed for deed in advice if deed.log_directory == str(directory)]
        assert mine
        assert lost_by(mine[0]) == 0
        check_by_following(mine, directory, tmp_path / f"tried-{number}")


def test_partitions_beyond_the_bound_are_counted_and_nothing_is_said_to_be_safe_for_them(
    kafka: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deeds, "MAX_PARTITIONS", 2)
    for name in partitions_of(kafka):
        append(kafka / name / segment_name(12), bytes(100))
    advice = advice_for(kafka)
    assert [len(deed.partitions) for deed in advice] == [2] * len(advice)
    assert [deed.partitions_not_priced for deed in advice] == [1] * len(advice)
    # The mark decides over all of them.
    assert not any(deed.deletes_mark for deed in advice)


def test_what_is_tried_on_a_partition_is_bounded_and_what_is_left_out_is_counted(
    kafka: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(partition, "MAX_TRIALS", 2)
    append(kafka / "orders-1" / segment_name(12), bytes(100))
    advice = advice_for(kafka)
    assert all(deed.not_tried > 0 for deed in advice)
    check_by_following(advice, kafka, tmp_path / "tried")


# The whole corpus


def write_twice(directory: Path, **second: Sequence[bytes]) -> tuple[Path, Path]:
    """Two log directories of one broker with the same partition."""
    disks = directory / "disk-1", directory / "disk-2"
    write_orders(disks[0])
    write_orders(disks[1], **second)
    return disks


def test_of_a_partition_that_a_broker_has_twice_one_directory_is_moved_away(
    tmp_path: Path,
) -> None:
    disk_1, disk_2 = write_twice(tmp_path)
    move, nothing = advice_for(tmp_path)
    assert move.log_directory == nothing.log_directory == str(disk_2)
    assert operations_of(move) == [("move", PARTITION)]
    (refused,) = nothing.partitions
    assert refused.opens is False
    assert "Duplicate log directories" in (refused.error or "")
    (price,) = move.partitions
    assert (price.readable_offsets, price.readable_offsets_lost) == (18, 0)
    assert (price.goes_on_in, price.goes_on_at) == (str(disk_1 / PARTITION), 18)


def test_the_directory_whose_log_ends_earlier_is_moved_wherever_it_is(tmp_path: Path) -> None:
    disk_1, disk_2 = write_twice(tmp_path, second=[*SECOND, batch(18)])
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(disk_2 / name, {PARTITION: 21})
    best = advice_for(tmp_path)[0]
    assert best.log_directory == str(disk_1)
    assert best.partitions[0].goes_on_in == str(disk_2 / PARTITION)


def test_a_later_leader_epoch_weighs_more_than_a_later_end(tmp_path: Path) -> None:
    newer = [*SECOND[:2], batch(15, partition_leader_epoch=1)]
    disk_1, disk_2 = write_twice(tmp_path, second=newer)
    (disk_1 / PARTITION / segment_name(9)).write_bytes(b"".join([*SECOND, batch(18)]))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(disk_1 / name, {PARTITION: 21})
    best = advice_for(tmp_path)[0]
    assert best.log_directory == str(disk_1)
    (price,) = best.partitions
    assert (price.goes_on_in, price.goes_on_at) == (str(disk_2 / PARTITION), 18)
    assert price.readable_offsets_lost == 3


def test_offsets_that_only_the_moved_directory_has_are_its_price(tmp_path: Path) -> None:
    disk_1, disk_2 = write_twice(tmp_path, second=[*SECOND, batch(18)])
    for suffix in ("log", "index", "timeindex"):
        (disk_2 / PARTITION / segment_name(0, suffix)).unlink(missing_ok=True)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(disk_2 / name, {PARTITION: 21})
    best = advice_for(tmp_path)[0]
    assert best.log_directory == str(disk_1)
    assert best.partitions[0].readable_offsets_lost == 9


def log_directories(case: Path) -> Iterator[Path]:
    replicas = sorted((case / "log").glob("replica-*"))
    yield from replicas or [case / "log"]


@pytest.mark.shared
def test_every_deed_for_the_damage_corpus_costs_what_it_says(shared: Path, tmp_path: Path) -> None:
    cases = sorted((shared / "damage" / "cases").iterdir())
    assert len(cases) == 195
    followed = 0
    for case in cases:
        for directory in log_directories(case):
            advice = advice_for(directory)
            scratch = tmp_path / f"{case.name}-{directory.name}"
            check_by_following(advice, directory, scratch)
            shutil.rmtree(scratch)
            followed += len(advice)
    assert followed >= 150


def test_a_partition_is_listed_once_however_many_starts_are_tried(
    kafka: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kafka / CLEAN_SHUTDOWN).unlink()
    flip_byte(kafka / "orders-0" / segment_name(0), 100)
    listed: list[bytes] = []
    tried: list[str] = []
    list_directory, predict = LocalFiles.list, _engine.predict_recovery

    def listing(files: LocalFiles, directory: bytes) -> Sequence[Entry]:
        listed.append(directory)
        return list_directory(files, directory)

    def predicting(*args: Any, partition: str, **options: Any) -> _engine.Recovery:
        tried.append(partition)
        return predict(*args, partition=partition, **options)

    monkeypatch.setattr(LocalFiles, "list", listing)
    monkeypatch.setattr(_engine, "predict_recovery", predicting)
    assert advice_for(kafka)
    assert tried.count("orders-0") > 4
    # By the inventory, by the prediction of its next start, and for all that is tried.
    assert listed.count(bytes(kafka / "orders-0")) <= 3

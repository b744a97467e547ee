"""The next start of a broker in an audit: which partitions have a row, and what it says."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit.judge import restarts
from ottla.audit.judge.restarts import predict_restarts
from ottla.logs.checkpoints import Checkpoints
from ottla.logs.listing import take_inventory
from support.logs import segment, segment_name, write_log_directory, write_partition


def rows_of(source: Path) -> Sequence[Mapping[str, Any]]:
    return list(ottla.audit(source).recovery)


def test_partitions_without_a_finding_have_no_row(tmp_path: Path) -> None:
    assert rows_of(write_log_directory(tmp_path / "kafka")) == []


def test_zeros_after_a_clean_stop_come_with_the_deed_that_was_tried(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    with (log_directory / "orders-1" / segment_name(12)).open("ab") as file:
        file.write(bytes(100))
    clean, unclean = rows_of(log_directory)
    assert (clean["directory"], clean["topic"], clean["partition"]) == ("orders-1", "orders", 1)
    assert (clean["stop"], clean["is_next"], clean["outcome"]) == ("clean", True, "refuses")
    assert clean["action"] == f"Delete orders-1/{segment_name(12, 'index')}"
    assert (clean["opens"], clean["log_end_offset"], clean["bytes_cut"]) == (False, None, None)
    assert (unclean["stop"], unclean["is_next"], unclean["outcome"]) == ("unclean", False, "opens")
    assert (unclean["bytes_cut"], unclean["offsets_lost"]) == (100, 0)


def test_a_log_that_loses_records_tells_how_many_and_from_its_recovery_point(
    tmp_path: Path,
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (log_directory / ".kafka_cleanshutdown").unlink()
    path = log_directory / "orders-0" / segment_name(0)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    unclean, clean = rows_of(log_directory)
    assert (unclean["is_next"], unclean["outcome"], unclean["segments_deleted"]) == (
        True,
        "opens",
        (),
    )
    (log_directory / "recovery-point-offset-checkpoint").unlink()
    unclean, clean = rows_of(log_directory)
    assert (unclean["outcome"], unclean["offsets_lost"]) == ("cuts", 15)
    assert unclean["segments_deleted"] == (segment_name(12),)
    assert (clean["is_next"], clean["outcome"], clean["log_end_offset"]) == (False, "opens", 24)


def test_an_index_that_lies_is_told_with_the_offsets_that_come_again(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    index = log_directory / "orders-0" / segment_name(12, "index")
    index.write_bytes(struct.pack(">ii", 11, 1 << 20))
    clean, _ = rows_of(log_directory)
    assert (clean["outcome"], clean["log_end_offset"], clean["offsets_lost"]) == (
        "ends-early",
        12,
        12,
    )


def test_a_missing_topic_id_matters_beside_partitions_that_have_one(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (log_directory / "orders-1" / "partition.metadata").unlink()
    assert {(r["directory"], r["outcome"]) for r in rows_of(log_directory)} == {
        ("orders-1", "put-aside")
    }
    for name in ("orders-0", "payments-0"):
        (log_directory / name / "partition.metadata").unlink()
    assert rows_of(log_directory) == []


def test_a_log_start_offset_beyond_the_end_empties_the_log(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / "log-start-offset-checkpoint").write_text("0\n1\norders 0 25\n")
    row = rows_of(log_directory)[0]
    assert (row["outcome"], row["log_start_offset"], row["is_next"]) == ("empties", 25, True)
    assert row["action"] == "Copy the directory first"
    assert len(row["segments_deleted"]) == 2


def test_with_too_many_segments_a_start_is_not_foretold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    with (log_directory / "orders-1" / segment_name(12)).open("ab") as file:
        file.write(bytes(100))
    monkeypatch.setattr(restarts, "MAX_SEGMENTS", 1)
    (row,) = rows_of(log_directory)
    assert (row["directory"], row["outcome"]) == ("orders-1", None)
    assert row["message"] == "cannot be predicted: 2 segments, more than 1"


def test_the_log_of_the_quorum_is_recovered_at_every_start(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["__cluster_metadata-0"])
    with (log_directory / "__cluster_metadata-0" / segment_name(12)).open("ab") as file:
        file.write(bytes(100))
    (row,) = rows_of(log_directory)
    assert (row["stop"], row["is_next"], row["outcome"]) == ("unclean", True, "opens")


def test_files_asked_for_alone_are_no_partition_to_start_with(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2) + bytes(100)})
    assert rows_of(directory / segment_name(0)) == []
    assert len(rows_of(directory)) == 2


@pytest.mark.shared
def test_no_start_that_changes_a_partition_is_without_a_row(shared: Path) -> None:
    looked_at = 0
    for log_directory in sorted((shared / "damage" / "cases").glob("*/log")):
        if (log_directory / "replica-1").exists():
            continue
        result = ottla.audit(log_directory)
        told = {row["directory"] for row in result.recovery}
        ends: dict[tuple[str | None, int | None], int] = {
            (m["topic"], m["partition"]): m["log_end_offset"] for m in result.metrics
        }
        checkpoints = Checkpoints()
        inventory = take_inventory([log_directory])
        for partition in inventory.partitions:
            if inventory.display(partition.directory) in told or not partition.segments:
                continue
            aborted = [
                (row["producer_id"], row["first_offset"], row["marker_offset"])
                for row in result.transactions
                if row["state"] == "aborted"
                and (row["topic"], row["partition"]) == (partition.topic, partition.partition)
            ]
            restarts = predict_restarts(
                partition,
                checkpoints,
                end_offset=ends.get((partition.topic, partition.partition)),
                aborted=aborted,
                needs_topic_id=False,
            )
            assert {restart.outcome for restart in restarts} == {"opens"}, log_directory
            looked_at += 1
    assert looked_at > 30


def test_a_start_over_a_link_that_is_not_followed_is_not_foretold(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    active = log_directory / "orders-1" / segment_name(12)
    active.rename(tmp_path / "elsewhere.log")
    active.symlink_to(tmp_path / "elsewhere.log")
    result = ottla.audit(log_directory)
    (row,) = result.recovery
    assert (row["directory"], row["outcome"], row["opens"]) == ("orders-1", None, None)
    assert row["message"].startswith(f"cannot be predicted: {active.name} is a link to ")
    assert result.advice == ()
    followed = ottla.audit(log_directory, follow_links=True)
    assert ([*followed.recovery], followed.advice) == ([], ())


def test_a_partition_behind_a_link_that_is_not_followed_is_counted_as_unknown(
    tmp_path: Path,
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (log_directory / "orders-0").rename(tmp_path / "orders-0")
    (log_directory / "orders-0").symlink_to(tmp_path / "orders-0")
    with (log_directory / "orders-1" / segment_name(12)).open("ab") as file:
        file.write(bytes(100))
    result = ottla.audit(log_directory)
    assert result.exit_code == 3
    assert {deed.partitions_not_priced for deed in result.advice} == {1}
    assert not any(deed.deletes_mark for deed in result.advice)

"""The report on directories as an operator finds them: no comfort and no deed that harms."""

import os
import re
import shutil
from pathlib import Path

import pytest
from support.commands import Run
from support.logs import META_PROPERTIES, segment_name, write_log_directory, write_partition
from support.small_log import (
    LOG_END_OFFSET,
    PARTITION,
    SECOND,
    SIZE,
    batch,
    marker,
    write_checkpoint,
    write_orders,
)


def joined(text: str) -> str:
    """Text without its line breaks."""
    return " ".join(text.split())


def test_a_lost_end_is_nowhere_said_to_cost_nothing(run: Run, tmp_path: Path) -> None:
    write_orders(tmp_path, second=[*SECOND[:2], SECOND[2][:60]])
    (tmp_path / ".kafka_cleanshutdown").unlink()
    out = joined(run("audit", tmp_path).out)
    assert "Do first: before the broker starts, look for these offsets" in out
    assert "othing: the next start" not in out


def test_a_lost_end_that_only_a_checkpoint_shows_names_the_partition(
    run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path, second=[])
    out = joined(run("audit", tmp_path).out)
    assert "the log of orders-0 lost its end, offsets 9 to 17; seen in" in out


def test_noise_behind_a_log_that_one_batch_cannot_be_is_not_called_no_loss(
    run: Run, tmp_path: Path
) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: batch(0)})
    log = partition / segment_name(0)
    log.write_bytes(log.read_bytes() + b"\xa7" * (5 << 20))
    for path in (tmp_path, log):
        out = joined(run("audit", path).out)
        assert "no lost record" not in out
        assert re.search(r"Lost: records from offset 3 of \S+ on; nothing shows how many\.", out)
        assert "changes nothing" not in out
        assert "Do first: copy the partition, and compare the end of its log" in out
    assert "Next start: bytes behind the last batch are cut off" in joined(
        run("audit", tmp_path).out
    )


def test_a_log_of_nothing_but_noise_is_no_comfort(run: Run, tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: b"\xa7" * 5000})
    out = joined(run("audit", tmp_path).out)
    assert "no lost record" not in out
    assert "holds no batch, and nothing shows whether it ever did." in out
    assert "Do first: copy the partition" in out


def test_offsets_of_a_missing_file_within_a_log_are_not_said_to_be_assigned_again(
    run: Run, tmp_path: Path
) -> None:
    segments = {offset: batch(offset) for offset in (0, 3, 6)}
    partition = write_partition(tmp_path / "orders-0", segments)
    (partition / segment_name(3)).unlink()
    out = joined(run("audit", tmp_path).out)
    assert "Lost: 3 records: offsets 3 to 5 of orders-0." in out
    assert "assigns" not in out


@pytest.mark.parametrize("left", [("index", "timeindex"), ()])
def test_a_missing_first_file_is_loss_and_not_called_expired(
    run: Run, tmp_path: Path, left: tuple[str, ...]
) -> None:
    write_orders(tmp_path)
    for suffix in {"log", "index", "timeindex"}.difference(left):
        (tmp_path / PARTITION / segment_name(0, suffix)).unlink()
    out = joined(run("audit", tmp_path).out)
    assert "Lost: 9 records: offsets 0 to 8 of orders-0." in out
    assert "warning missing-segment" in out
    assert "expired" not in out


@pytest.mark.parametrize("is_going", [False, True])
def test_a_first_file_that_a_broker_deletes_is_no_loss(
    run: Run, tmp_path: Path, is_going: bool
) -> None:
    write_orders(tmp_path)
    log = tmp_path / PARTITION / segment_name(0)
    # The log is renamed first: its indexes may be seen beside it for a moment.
    if is_going:
        log.rename(log.with_suffix(".log.deleted"))
    else:
        for suffix in ("log", "index", "timeindex"):
            log.with_suffix(f".{suffix}").unlink()
    (log.parent / "leader-epoch-checkpoint").write_text("0\n1\n0 9\n")
    out = joined(run("audit", tmp_path).out)
    assert out.startswith("SOUND")
    assert "expired 9 in orders" in out


@pytest.mark.parametrize("deleted", [(3,), (3, 6), (9,)])
def test_lost_offsets_in_files_that_the_start_deletes_are_copied_first(
    run: Run, tmp_path: Path, deleted: tuple[int, ...]
) -> None:
    # LogLoader.removeTempFilesAndCollectSwapFiles deletes every .deleted file.
    segments = {offset: batch(offset) for offset in (0, 3, 6, 9)}
    partition = write_partition(tmp_path / "orders-0", segments)
    write_checkpoint(tmp_path / "recovery-point-offset-checkpoint", {PARTITION: 12})
    for offset in deleted:
        name = segment_name(offset)
        (partition / name).rename(partition / f"{name}.deleted")
    # What is left out of the report counts for its advice.
    out = joined(run("audit", tmp_path, "--severity", "warning").out)
    names = [f"{segment_name(offset)}.deleted" for offset in deleted]
    assert f"Next start: it deletes orders-0/{names[0]}" in out
    assert f"Do first: before the broker starts, copy {names[0]}" in out
    for name in names:
        assert f"$ cp -a {tmp_path}/orders-0/{name} COPY/{name.removesuffix('.deleted')}" in out


def test_files_that_the_start_deletes_are_no_news_where_no_offset_is_missing(
    run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path)
    left = tmp_path / PARTITION / f"{segment_name(0)}.deleted"
    left.write_bytes(batch(0))
    write_checkpoint(tmp_path / "replication-offset-checkpoint", {PARTITION: 19})
    out = joined(run("audit", tmp_path).out)
    assert "deletes" not in out
    assert "COPY" not in out


def test_what_is_done_first_about_wrong_leader_epochs_is_a_deed(run: Run, tmp_path: Path) -> None:
    write_orders(tmp_path)
    (tmp_path / PARTITION / "leader-epoch-checkpoint").write_text("0\n2\n5 0\n3 9\n")
    out = joined(run("audit", tmp_path).out)
    assert "Do first: stop the broker, and replace leader-epoch-checkpoint" in out


def test_a_leader_epoch_that_keeps_the_broker_from_starting_is_no_sound_log(
    run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path)
    (tmp_path / PARTITION / "leader-epoch-checkpoint").write_text("0\n1\n0 -1\n")
    out = joined(run("audit", tmp_path).out)
    assert "epoch-checkpoint-mismatch" in out
    assert "Next start: the broker will not start: orders-0" in out


def test_a_fault_of_a_transaction_says_what_only_a_start_after_a_crash_does(
    run: Run, tmp_path: Path
) -> None:
    begin = batch(0, producer_id=7, is_transactional=True)
    plain = batch(3, producer_id=7, base_sequence=3)
    write_orders(tmp_path, first=[begin, plain, marker("commit", 6, producer_id=7), batch(7, 2)])
    out = joined(run("audit", tmp_path).out)
    assert "Compare the batch with another replica; the next start opens the log as it is." in out
    assert "Do not delete .kafka_cleanshutdown: without it the broker does not start" in out
    (tmp_path / ".kafka_cleanshutdown").unlink()
    out = joined(run("audit", tmp_path).out)
    assert "Next start: the broker will not start" in out
    assert "opens the log as it is" not in out


def test_destroyed_logs_are_looked_for_before_a_start_makes_them_empty(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    for file in path.glob("*/*.log"):
        file.write_bytes(b"\x07" * file.stat().st_size)
    out = joined(run("audit", path).out)
    (first,) = (part for part in out.split("Do first: ")[1:])
    assert first.startswith("before the broker starts, look for ")
    assert "No record is lost" not in out
    assert "0 readable records" not in out


def test_a_partition_on_two_disks_of_a_broker_keeps_it_from_starting(
    run: Run, tmp_path: Path
) -> None:
    for disk in ("disk1", "disk2"):
        write_log_directory(tmp_path / disk, ["orders-0"])
        (tmp_path / disk / "meta.properties").write_text(META_PROPERTIES)
    out = joined(run("audit", tmp_path).out)
    assert "Next start: a broker with both directories of this partition does not start" in out
    assert "changes nothing" not in out


def audit_with_a_copy(run: Run, log_directory: Path, name: str) -> str:
    """What the report says of a copy of `orders-0` beside it, which is an error."""
    shutil.copytree(log_directory / "orders-0", log_directory / name)
    ran = run("audit", log_directory)
    assert ran.status == 1
    return joined(ran.out)


def test_a_number_with_zeros_before_it_is_the_same_partition_again(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    out = audit_with_a_copy(run, path, "orders-00")
    assert "orders-00 this partition is here and in orders-0 of the same log directory" in out
    assert "Next start: a broker with both directories of this partition does not start" in out
    assert "Move orders-00 out of the log directory" in out
    (path / "orders-00").rename(path / "orders-01")
    assert "duplicate-partition" not in run("audit", path).out


def test_a_backup_inside_a_log_directory_keeps_the_broker_from_starting(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    out = audit_with_a_copy(run, path, "orders-0.old")
    assert "Next start: the broker will not start: orders-0.old" in out
    assert "changes nothing" not in out
    (path / "orders-0.old").rename(path / f"orders-0.{'0' * 32}-stray")
    assert run("audit", path).status == 0


@pytest.mark.parametrize("name", [".snapshot", "orders", "orders-0-delete"])
def test_any_directory_that_is_no_partition_keeps_the_broker_from_starting(
    name: str, run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / "remote-log-index-cache").mkdir()
    assert run("audit", path).status == 0
    (path / name).mkdir()
    out = joined(run("audit", path).out)
    assert f"Next start: the broker will not start: {name} (no name of" in out
    assert f"Do first: before the broker starts, move {name} out of the log directory." in out


def test_what_a_check_of_the_disk_found_is_looked_at_before_it_goes(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / "lost+found").mkdir()
    out = joined(run("audit", path).out)
    assert "Next start: the broker will not start: lost+found" in out
    assert "Do first: before the broker starts, look into lost+found for files of logs" in out


def test_a_directory_beside_copied_partitions_keeps_no_broker_from_starting(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "backup", ["orders-0"])
    for file in path.glob("*.*"):
        file.unlink()
    for file in path.glob("*-checkpoint"):
        file.unlink()
    (path / "lost+found").mkdir()
    assert "will not start" not in run("audit", path).out


def test_what_keeps_the_broker_from_starting_is_done_first(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    write_checkpoint(path / "replication-offset-checkpoint", {"orders-1": 999})
    shutil.copytree(path / "orders-0", path / "orders-0.old")
    out = joined(run("audit", path).out)
    assert "Do first: before the broker starts, move orders-0.old out of the log directory." in out


def test_a_partition_under_another_name_is_not_moved_away_from_a_broker_that_lacks_it(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    (path / "orders-0").rename(path / "orders-0.bak")
    out = joined(run("audit", path).out)
    step = "before the broker starts, give orders-0.bak its name orders-0 back"
    assert f"Do first: {step} if it is that partition, or move it away." in out


def test_a_partition_without_a_directory_is_no_sound_start(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    shutil.rmtree(path / "orders-1")
    out = joined(run("audit", path).out)
    assert "Lost: all records of orders-1 (24), which has no directory here," in out
    assert "no lost record" not in out
    assert "changes nothing" not in out
    assert "Do first: before the broker starts, look for the directories that are missing" in out


def test_a_segment_that_kafka_does_not_open_is_an_error_and_no_sound_log(
    run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path)
    os.truncate(tmp_path / PARTITION / segment_name(0), 1 << 31)
    answer = run("audit", tmp_path)
    assert answer.status == 2
    out = joined(answer.out)
    assert "DAMAGED" in out
    assert "error oversized-segment" in out
    assert "Next start: the broker will not start: orders-0" in out


def test_a_log_start_that_no_broker_has_moved_is_no_deletion_on_purpose(
    run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path)
    write_checkpoint(tmp_path / "log-start-offset-checkpoint", {PARTITION: LOG_END_OFFSET})
    answer = run("audit", tmp_path)
    assert answer.status == 1
    out = joined(answer.out)
    assert "SUSPECT" in out
    assert "rightly" not in out
    assert "the next start changes nothing" not in out
    withheld = "readable records below the log start offset stay withheld"
    assert f"{withheld}, and segments that hold no others are deleted: orders-0" in out
    assert "Do first: copy the directory before the broker starts" in out


def test_properties_that_cannot_be_read_keep_the_broker_from_starting(
    run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / "meta.properties").write_bytes(b"\xff\xfe\x00")
    out = joined(run("audit", path).out)
    assert "Next start: the broker will not start, or leave the directory out: meta.prop" in out
    assert "changes nothing" not in out
    assert "Do first: before the broker starts, write meta.properties anew" in out


@pytest.mark.parametrize("what", ["emptied", "compressed", "cut at a whole batch"])
def test_a_start_over_a_lost_end_is_never_said_to_change_nothing(
    what: str, run: Run, tmp_path: Path
) -> None:
    write_orders(tmp_path, second=SECOND[:1])
    first, second = sorted((tmp_path / "orders-0").glob("*.log"))
    if what == "emptied":
        second.unlink()
        first.write_bytes(b"")
    elif what == "compressed":
        second.unlink()
        first.rename(first.with_suffix(".log.gz"))
    out = joined(run("audit", tmp_path).out)
    lost = "12 to 17" if what == "cut at a whole batch" else "0 to 17"
    assert f"assigns lost offsets to other records: offsets {lost} of orders-0." in out
    assert "changes nothing" not in out
    assert "Consumers skip" not in out
    assert "Do first: before the broker starts, look for these offsets" in out


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_no_line_is_wider_than_the_terminal_but_for_places_and_commands(
    columns: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    write_orders(tmp_path / "k", first=[batch(0), b"\xff" * SIZE], second=SECOND[:1])
    write_checkpoint(tmp_path / "k" / "log-start-offset-checkpoint", {"orders-0": 2})
    monkeypatch.chdir(tmp_path)
    for line in run("audit", "k").out.splitlines():
        is_place = line.startswith("  $ ") or re.match(r"  [\w./-]+/\d{20}\.\w+(, |$)", line)
        assert is_place or len(line) <= int(columns), line

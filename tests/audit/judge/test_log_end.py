"""The bytes behind the last batch of a log: nothing after a kill, an error where more is proved."""

import random
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit.plan.plan import plan_audit
from ottla.audit.run import threads
from support.logs import segment, segment_name, write_log_directory, write_partition
from support.small_log import (
    PARTITION,
    SECOND,
    write_checkpoint,
    write_committed_offset,
    write_orders,
)

MIB = 1 << 20
BATCH = segment(1, base_offset=24)
"""The batch that the logs here are torn in."""

Row = dict[str, Any]


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def torn_log(directory: Path, tail: bytes, *, checkpoints: Mapping[str, int] | None = None) -> Path:
    """A log directory after a kill: `orders-0` ends at offset 24, and with these bytes."""
    write_log_directory(directory, ["orders-0"])
    (directory / ".kafka_cleanshutdown").unlink()
    active = directory / "orders-0" / segment_name(12)
    active.write_bytes(active.read_bytes() + tail)
    for name, offset in (checkpoints or {}).items():
        (directory / name).write_text(f"0\n1\norders 0 {offset}\n")
    return directory


def only(result: ottla.AuditResult, name: str) -> Row:
    (row,) = (row for row in result.findings if row["name"] == name)
    return dict(row)


def lost(row: Row) -> tuple[str, int | None, int | None]:
    return row["severity"], row["first_offset"], row["last_offset"]


def test_a_torn_last_batch_after_a_kill_is_info(tmp_path: Path) -> None:
    result = ottla.audit(torn_log(tmp_path / "kafka", BATCH[:-9]))
    assert [(row["name"], row["severity"]) for row in result.findings] == [
        ("truncated-tail", "info")
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "tail", [BATCH[:-9], BATCH[:40], noise(300), bytes(4096)], ids=["torn", "cut", "noise", "zeros"]
)
@pytest.mark.parametrize(
    ("checkpoint", "witness"),
    [
        ("recovery-point-offset-checkpoint", "the recovery point 27"),
        ("replication-offset-checkpoint", "the high watermark 27"),
    ],
)
def test_a_tail_is_an_error_where_a_checkpoint_knows_more(
    tmp_path: Path, checkpoint: str, witness: str, tail: bytes
) -> None:
    result = ottla.audit(torn_log(tmp_path / "kafka", tail, checkpoints={checkpoint: 27}))
    (row,) = (row for row in result.findings if row["name"].endswith("-tail"))
    assert (row["severity"], row["first_offset"], row["last_offset"]) == ("error", 24, 26)
    assert f"{witness} proves that offsets 24 to 26 were there and are lost" in row["message"]
    assert lost(only(result, "checkpoint-mismatch")) == ("error", 24, 26)
    assert result.exit_code == 2


def test_a_tail_is_an_error_where_a_snapshot_knows_more(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    (path / "orders-0" / segment_name(25, "snapshot")).write_bytes(b"")
    row = only(ottla.audit(path), "truncated-tail")
    assert lost(row) == ("error", 24, 24)
    assert "the snapshot of offset 25 proves that offset 24 was there and is lost" in row["message"]


def test_a_tail_is_an_error_where_a_leader_epoch_begins_behind_the_log(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    (path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 30\n")
    row = only(ottla.audit(path), "truncated-tail")
    assert lost(row) == ("error", 24, 29)
    assert "leader epoch 4, which begins at 30, proves" in row["message"]


def test_an_entry_of_the_index_for_the_torn_batch_proves_nothing_more(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    end = len(segment(4, base_offset=12))
    (path / "orders-0" / segment_name(12, "index")).write_bytes(struct.pack(">ii", 14, end))
    assert only(ottla.audit(path), "truncated-tail")["severity"] == "info"


def test_a_tail_is_an_error_where_the_index_has_a_batch_behind_it(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    end = len(segment(4, base_offset=12))
    entries = struct.pack(">iiii", 14, end, 17, end + len(BATCH))
    (path / "orders-0" / segment_name(12, "index")).write_bytes(entries)
    row = only(ottla.audit(path), "truncated-tail")
    assert lost(row) == ("error", 24, 29)
    assert f"an entry of the .index for offset 29 at position {end + len(BATCH)}" in row["message"]


def test_one_offset_that_an_entry_behind_the_torn_batch_proves_is_one(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    entry = struct.pack(">ii", 12, len(segment(4, base_offset=12)) + 1)
    (path / "orders-0" / segment_name(12, "index")).write_bytes(entry)
    row = only(ottla.audit(path), "truncated-tail")
    assert lost(row) == ("error", 24, 24)
    assert row["message"].endswith(" proves that offset 24 was there and is lost")


def test_an_entry_behind_the_torn_batch_of_an_offset_that_is_there_proves_nothing(
    tmp_path: Path,
) -> None:
    path = torn_log(tmp_path / "kafka", BATCH[:-9])
    entry = struct.pack(">ii", 11, len(segment(4, base_offset=12)) + 1)
    (path / "orders-0" / segment_name(12, "index")).write_bytes(entry)
    assert only(ottla.audit(path), "truncated-tail")["severity"] == "info"


def test_a_tail_of_more_than_one_batch_is_an_error(tmp_path: Path) -> None:
    result = ottla.audit(torn_log(tmp_path / "kafka", noise(MIB + 13)))
    row = only(result, "garbage-tail")
    assert lost(row) == ("error", 24, None)
    assert "that is more than one batch of at most 1048588 bytes" in row["message"]


def test_a_tail_of_one_batch_is_info_up_to_the_default_of_brokers(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", noise(MIB + 12))
    assert only(ottla.audit(path), "garbage-tail")["severity"] == "info"


def test_the_limit_of_the_topic_decides_what_one_batch_is(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", noise(2 * MIB))
    limits = {"4194304": "info", "65536": "error"}
    for limit, severity in limits.items():
        result = ottla.audit(path, topic_configs={"orders": {"max.message.bytes": limit}})
        assert only(result, "garbage-tail")["severity"] == severity


def test_a_larger_batch_of_the_log_shows_that_larger_ones_are_allowed(tmp_path: Path) -> None:
    large = segment(1, records=1, value_size=2 * MIB)
    write_partition(tmp_path / "orders-0", {0: large + noise(2 * MIB)})
    assert only(ottla.audit(tmp_path / "orders-0"), "garbage-tail")["severity"] == "info"


def test_zeros_of_a_preallocated_file_do_not_make_a_torn_batch_larger(tmp_path: Path) -> None:
    path = torn_log(tmp_path / "kafka", noise(300) + bytes(3 * MIB))
    assert only(ottla.audit(path), "garbage-tail")["severity"] == "info"


def test_a_partition_of_noise_is_an_error(tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: noise(5 * MIB)})
    result = ottla.audit(tmp_path / "orders-0")
    assert lost(only(result, "garbage-tail")) == ("error", 0, None)
    assert result.exit_code == 2


@pytest.mark.parametrize("content", [bytes(4096), noise(4096), BATCH[:40]])
def test_a_segment_with_bytes_and_no_batch_is_at_least_a_warning(
    tmp_path: Path, content: bytes
) -> None:
    write_partition(tmp_path / "orders-0", {24: content})
    result = ottla.audit(tmp_path / "orders-0")
    (row,) = (row for row in result.findings if row["name"].endswith("-tail"))
    assert row["severity"] == "warning"
    assert "the file holds no batch at all" in row["message"]
    assert result.exit_code == 1


def test_a_segment_of_zeros_after_a_clean_stop_is_said_to_hold_no_batch(tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (path / "orders-0" / segment_name(24)).write_bytes(bytes(4096))
    row = only(ottla.audit(path), "zero-tail")
    assert row["severity"] == "warning"
    assert "the file holds no batch at all" in row["message"]


@pytest.mark.parametrize("content", [{0: bytes(4096), 24: b""}, {0: noise(4096)}])
def test_a_topic_that_preallocates_explains_no_closed_segment_of_zeros_and_no_noise(
    tmp_path: Path, content: dict[int, bytes]
) -> None:
    write_partition(tmp_path / "orders-0", content)
    configs = {"orders": {"preallocate": "true"}}
    result = ottla.audit(tmp_path / "orders-0", topic_configs=configs)
    (row,) = (row for row in result.findings if row["name"].endswith("-tail"))
    assert row["severity"] != "info"
    assert result.exit_code > 0


def test_a_topic_that_preallocates_explains_a_segment_of_zeros(tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: bytes(4096)})
    configs = {"orders": {"preallocate": "true"}}
    result = ottla.audit(tmp_path / "orders-0", topic_configs=configs)
    assert only(result, "zero-tail")["severity"] == "info"


def test_every_partition_of_a_destroyed_directory_names_what_is_lost(
    tmp_path: Path, demo: Path
) -> None:
    destroyed = shutil.copytree(demo, tmp_path / "data")
    (destroyed / ".kafka_cleanshutdown").unlink()
    ends = offsets_in(destroyed / "replication-offset-checkpoint")
    for path in destroyed.glob("*/*.log"):
        path.write_bytes(noise(path.stat().st_size))
    result = ottla.audit(destroyed)
    reached = {
        f"{row['topic']}-{row['partition']}": row["last_offset"]
        for row in result.findings
        if row["name"] == "garbage-tail" and row["severity"] == "error" and row["last_offset"]
    }
    # A partition without a record has nothing to lose.
    known = {name: end - 1 for name, end in ends.items() if end}
    assert {name: reached[name] for name in known} == known
    assert reached["__cluster_metadata-0"] == 124


def test_a_tail_is_an_error_where_a_group_has_committed_an_offset_behind_it(
    tmp_path: Path,
) -> None:
    write_orders(tmp_path, second=[*SECOND[:2], SECOND[2][:70]])
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(tmp_path / name, {})
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert only(ottla.audit(tmp_path), "truncated-tail")["severity"] == "info"
    write_committed_offset(tmp_path, 15)
    assert only(ottla.audit(tmp_path), "truncated-tail")["severity"] == "info"
    shutil.rmtree(tmp_path / "__consumer_offsets-0")
    write_committed_offset(tmp_path, 18)
    result = ottla.audit(tmp_path)
    row = only(result, "truncated-tail")
    assert lost(row) == ("error", 15, 17)
    proof = "the committed offset 18 proves that offsets 15 to 17 were there and are lost"
    assert row["message"].endswith(f"; {proof}")
    assert [event["offsets_lost"] for event in result.events] == [3]
    assert result.exit_code == 2


@pytest.mark.parametrize(("acknowledged", "severity"), [(18, "error"), (15, "info")])
def test_a_tail_is_an_error_where_one_copy_alone_has_more_that_was_acknowledged(
    tmp_path: Path, acknowledged: int, severity: str
) -> None:
    for broker in ("a", "b"):
        write_orders(tmp_path / broker, second=SECOND[: 3 if broker == "a" else 2])
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            write_checkpoint(tmp_path / broker / name, {})
        (tmp_path / broker / ".kafka_cleanshutdown").unlink()
    write_checkpoint(tmp_path / "a" / "replication-offset-checkpoint", {PARTITION: acknowledged})
    with (tmp_path / "b" / PARTITION / segment_name(9)).open("ab") as file:
        file.write(SECOND[2][:70])
    result = ottla.audit([tmp_path / "a", tmp_path / "b"])
    row = only(result, "truncated-tail")
    assert row["severity"] == severity
    assert ("the copy on a proves that offsets 15 to 17" in row["message"]) == (severity == "error")


def offsets_in(path: Path) -> dict[str, int]:
    entries = (line.rsplit(" ", 2) for line in path.read_text().splitlines()[2:])
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in entries}


def test_a_log_that_goes_on_while_it_is_audited_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = torn_log(
        tmp_path / "kafka", BATCH[:-9], checkpoints={"replication-offset-checkpoint": 27}
    )
    active = path / "orders-0" / segment_name(12)
    plan = plan_audit

    def plan_then_write(*args: Any, **options: Any) -> Any:
        planned = plan(*args, **options)
        active.write_bytes(segment(5, base_offset=12))
        return planned

    monkeypatch.setattr(threads, "plan_audit", plan_then_write)
    assert [row["severity"] for row in ottla.audit(path).findings] == ["info"]


def test_a_closed_segment_that_ends_early_before_an_empty_one_lacks_offsets(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path / "orders-0", {0: segment(4), 24: b""})
    row = only(ottla.audit(tmp_path / "orders-0"), "missing-segment")
    assert lost(row) == ("warning", 12, 23)


def test_a_partition_without_a_segment_is_an_error_where_a_checkpoint_knows_offsets(
    tmp_path: Path,
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    for file in (path / "orders-1").glob("*.*"):
        if file.suffix in (".log", ".index", ".timeindex"):
            file.unlink()
    row = only(ottla.audit(path), "missing-segment")
    assert lost(row) == ("error", 0, 23)
    assert "the recovery point 24 and the high watermark 24 prove" in row["message"]


@pytest.mark.parametrize(
    ("base_offset", "expected"), [(0, ("warning", None, None)), (12, ("error", 0, 11))]
)
def test_an_index_without_a_segment_proves_the_offsets_below_it(
    tmp_path: Path, base_offset: int, expected: tuple[str, int | None, int | None]
) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / segment_name(base_offset, "index")).write_bytes(b"")
    assert lost(only(ottla.audit(path), "missing-segment")) == expected


@pytest.mark.parametrize("clean_stop", [True, False])
def test_a_snapshot_behind_the_end_of_the_log_is_an_error(tmp_path: Path, clean_stop: bool) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"])
    if not clean_stop:
        (path / ".kafka_cleanshutdown").unlink()
    (path / "orders-0" / segment_name(30, "snapshot")).write_bytes(b"")
    assert lost(only(ottla.audit(path), "snapshot-mismatch")) == ("error", 24, 29)


def test_a_partition_that_only_a_checkpoint_knows_is_a_warning(tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    shutil.rmtree(path / "orders-1")
    row = only(ottla.audit(path), "missing-partition")
    assert (row["severity"], row["file"]) == ("warning", "replication-offset-checkpoint")
    assert "partitions that have no directory here: orders-1 (24);" in row["message"]


def test_directories_too_far_below_are_a_warning(tmp_path: Path) -> None:
    write_log_directory(tmp_path / "kafka", ["orders-0"])
    write_log_directory(tmp_path / "a" / "b" / "c" / "d" / "e" / "kafka", ["orders-1"])
    row = only(ottla.audit(tmp_path), "limit-exceeded")
    assert (row["severity"], row["file"]) == ("warning", "a/b/c/d")
    assert "the directories in it were not looked into" in row["message"]

"""Threads, progress, the bound on speed, and stopping; what a run does with files that change."""

import os
import threading
import time
from pathlib import Path

import ottla
import pytest
from ottla.audit.judge.collector import Outcome
from ottla.audit.pipeline import carry_out
from ottla.audit.plan.plan import Plan, make_plan
from ottla.audit.run.threads import ThreadRunner, default_threads
from ottla.logs.listing import take_inventory
from support.logs import segment, segment_name, write_log_directory, write_partition

WINDOW = 8 << 20


def plan_of(*paths: Path) -> Plan:
    return make_plan(take_inventory(paths))


def names(outcome: Outcome, log_directory: Path) -> list[tuple[str, str]]:
    """Findings and their files."""
    found = outcome.findings
    return [(f.name, os.path.relpath(os.fsdecode(f.path or b""), log_directory)) for f in found]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A partition with one segment of three windows."""
    data = segment(26, records=1, value_size=1 << 20)
    assert len(data) > 3 * WINDOW
    return write_partition(tmp_path / "orders-0", {0: data})


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_any_number_of_threads_finds_the_same(tmp_path: Path, threads: int) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    damaged = log_directory / "orders-1" / segment_name(12)
    data = damaged.read_bytes()
    damaged.write_bytes(data[: len(data) // 2 - 1] + b"!" + data[len(data) // 2 :])
    outcome = carry_out(ThreadRunner(plan_of(log_directory), level="full", threads=threads))
    assert names(outcome, log_directory) == [("crc-mismatch", "orders-1/00000000000000000012.log")]
    assert len(outcome.files) == 6
    assert sum(file.records for file in outcome.files.values()) == 3 * 24 - 3


def test_progress_may_audit_another_directory(large: Path, tmp_path: Path) -> None:
    other = write_log_directory(tmp_path / "kafka")
    inside: list[int] = []

    def progress(_read: int, _of: int) -> None:
        inside.append(ottla.audit(other).summary.records)

    assert ottla.audit(large, threads=1, progress=progress).exit_code == 0
    assert inside
    assert set(inside) == {3 * 24}


def test_progress_grows_to_the_bytes_of_the_plan(large: Path) -> None:
    told: list[tuple[int, int]] = []
    plan = plan_of(large)
    carry_out(
        ThreadRunner(
            plan, level="crc", threads=1, progress=lambda read, of: told.append((read, of))
        )
    )
    read = [done for done, _ in told]
    assert len(told) >= 3
    assert read == sorted(read)
    assert told[-1] == (plan.byte_count, plan.byte_count)


def test_a_fault_in_the_callback_stops_the_run_and_is_raised(large: Path) -> None:
    def fail(_read: int, _total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        carry_out(ThreadRunner(plan_of(large), level="crc", threads=2, progress=fail))
    assert not [t for t in threading.enumerate() if t.name.startswith("ottla-audit")]


def test_reading_is_held_to_the_bound_of_all_threads_together(tmp_path: Path) -> None:
    for partition in range(4):
        write_partition(tmp_path / f"orders-{partition}", {0: segment(1, value_size=100_000)})
    plan = plan_of(tmp_path)
    seconds = plan.byte_count / 4e6
    outcome = carry_out(ThreadRunner(plan, level="crc", threads=4, max_mb_per_s=4.0))
    assert outcome.elapsed_s >= seconds


def test_a_segment_cut_while_it_is_read_ends_where_it_ends(large: Path) -> None:
    path = large / segment_name(0)

    def cut(read: int, _total: int) -> None:
        if read <= WINDOW:
            os.truncate(path, WINDOW + 1000)

    outcome = carry_out(ThreadRunner(plan_of(large), level="full", threads=1, progress=cut))
    assert names(outcome, large.parent) == [("truncated-tail", "orders-0/00000000000000000000.log")]
    assert outcome.files[bytes(path)].size < 2 * WINDOW


def test_a_segment_that_is_gone_when_its_turn_comes_is_said_to_be_unread(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    plan = plan_of(log_directory)
    (log_directory / "orders-0" / segment_name(0)).unlink()
    outcome = carry_out(ThreadRunner(plan, level="full", threads=1))
    assert names(outcome, log_directory) == [("unreadable", "orders-0/00000000000000000000.log")]
    (reason,) = outcome.reasons.values()
    assert reason == "no such file or directory"
    assert len(outcome.files) == 1


def test_offsets_of_an_unread_segment_are_not_said_to_be_missing(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0",
        {0: segment(4), 12: segment(4, base_offset=12), 24: segment(4, base_offset=24)},
    )
    (partition / segment_name(12)).unlink()
    (partition / segment_name(12)).symlink_to("moved-away")
    outcome = carry_out(ThreadRunner(plan_of(partition), level="full", threads=1))
    assert names(outcome, partition.parent) == [("unreadable", "orders-0/00000000000000000012.log")]


def test_a_log_of_which_a_segment_was_not_read_proves_nothing_about_its_end(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 20\n")
    plan = plan_of(log_directory)
    (log_directory / "orders-0" / segment_name(12)).unlink()
    outcome = carry_out(ThreadRunner(plan, level="full", threads=1))
    assert names(outcome, log_directory) == [("unreadable", "orders-0/00000000000000000012.log")]


@pytest.mark.parametrize("split_bytes", [None, 1 << 16], ids=["whole", "ranges"])
def test_progress_counts_the_bytes_of_files_that_cannot_be_read(
    tmp_path: Path, split_bytes: int | None
) -> None:
    for name, count in (("orders-0", 300), ("orders-1", 200)):
        write_partition(tmp_path / name, {0: segment(count, value_size=500)})
    plan = make_plan(take_inventory([tmp_path]), split_bytes=split_bytes)
    (tmp_path / "orders-0" / segment_name(0)).unlink()
    told: list[tuple[int, int]] = []
    runner = ThreadRunner(
        plan, level="full", threads=2, progress=lambda *progress: told.append(progress)
    )
    outcome = carry_out(runner)
    assert [finding.name for finding in outcome.findings] == ["unreadable"]
    assert told[-1] == (plan.byte_count, plan.byte_count)


def test_the_threads_are_as_many_as_the_cores_of_this_process() -> None:
    assert default_threads() == len(os.sched_getaffinity(0))


def test_a_run_measures_its_time(tmp_path: Path) -> None:
    start = time.monotonic()
    outcome = carry_out(
        ThreadRunner(plan_of(write_log_directory(tmp_path / "kafka")), level="crc", threads=1)
    )
    assert 0 < outcome.elapsed_s <= time.monotonic() - start


def test_damage_of_the_last_batch_is_one_finding_and_not_three(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    last = log_directory / "orders-0" / segment_name(12)
    last.write_bytes(last.read_bytes()[:-1] + b"!")
    outcome = carry_out(ThreadRunner(plan_of(log_directory), level="full", threads=1))
    assert names(outcome, log_directory) == [("crc-mismatch", "orders-0/00000000000000000012.log")]


def test_a_last_batch_that_is_gone_is_known_by_the_checkpoints(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    last = log_directory / "orders-0" / segment_name(12)
    last.write_bytes(segment(3, base_offset=12))
    outcome = carry_out(ThreadRunner(plan_of(log_directory), level="full", threads=1))
    assert names(outcome, log_directory) == [
        ("checkpoint-mismatch", "recovery-point-offset-checkpoint"),
        ("checkpoint-mismatch", "replication-offset-checkpoint"),
    ]

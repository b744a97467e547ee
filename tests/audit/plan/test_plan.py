"""The plan: the largest file first, files of one log together, leftovers left alone."""

from pathlib import Path

import ottla
from ottla.audit.plan.plan import Plan, make_plan, plan_audit
from ottla.logs.listing import take_inventory
from ottla.storage import ANYWHERE
from support.logs import segment, segment_name, write_log_directory, write_partition


def plan_of(*paths: Path, topics: tuple[str, ...] = ()) -> Plan:
    return make_plan(take_inventory(paths), topics)


def test_the_largest_file_is_scanned_first(tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: segment(1), 3: segment(3, base_offset=3)})
    write_partition(tmp_path / "orders-1", {0: segment(2)})
    sizes = [task.file.size for task in plan_of(tmp_path).tasks]
    assert sizes == sorted(sizes, reverse=True)
    assert plan_of(tmp_path).byte_count == sum(sizes)


def test_the_segments_of_a_partition_make_one_log(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0", {0: segment(1), 3: segment(1, base_offset=3), 6: b""}
    )
    plan = plan_of(partition)
    (log,) = plan.logs
    assert log.is_whole
    assert [f.base_offset for f in log.files] == [0, 3, 6]
    by_offset = {t.base_offset: (t.next_base_offset, t.is_active) for t in plan.tasks}
    assert by_offset == {0: (3, False), 3: (6, False), 6: (None, True)}


def test_two_files_of_one_base_offset_are_one_log_that_repeats_itself(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0", {0: segment(1), 3: segment(1, base_offset=3)}
    )
    (partition / "0.log").write_bytes(segment(1))
    (log,) = plan_of(partition).logs
    assert [f.base_offset for f in log.files] == [0, 0, 3]
    assert log.is_whole
    repeats = [f for f in ottla.audit(partition).findings if f["name"] == "offset-repeat"]
    assert [(f["first_offset"], f["last_offset"]) for f in repeats] == [(0, 2)]


def test_named_segments_make_one_log_only_where_they_follow_each_other(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0", {offset: segment(1, base_offset=offset) for offset in (0, 3, 6, 9)}
    )
    named = [partition / segment_name(offset) for offset in (0, 6, 9)]
    logs = plan_of(*named).logs
    assert [[f.base_offset for f in log.files] for log in logs] == [[0], [6, 9]]
    assert not any(log.is_whole for log in logs)


def test_leftovers_are_not_scanned_except_a_swap_that_will_be_put_in_place(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    for state in ("deleted", "swap", "cleaned"):
        (partition / segment_name(3, f"log.{state}")).write_bytes(segment(1, base_offset=3))
    plan = plan_of(partition)
    assert [f.name for log in plan.logs for f in log.files] == [
        b"00000000000000000000.log",
        b"00000000000000000003.log.swap",
    ]


def test_a_leftover_asked_for_by_name_is_scanned(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    deleted = partition / segment_name(3, "log.deleted")
    deleted.write_bytes(segment(1, base_offset=3))
    assert [task.file.name for task in plan_of(deleted).tasks] == [deleted.name.encode()]


def test_directories_to_be_deleted_are_listed_and_not_scanned(tmp_path: Path) -> None:
    write_log_directory(tmp_path / "kafka", ["orders-0"])
    gone = f"orders-1.{'0' * 32}-delete"
    write_partition(tmp_path / "kafka" / gone, {0: segment(1)})
    plan = plan_of(tmp_path / "kafka")
    assert len(plan.partitions) == 2
    assert [log.partition.partition for log in plan.logs if log.partition] == [0]


def test_snapshots_of_the_metadata_are_scanned_each_alone(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["__cluster_metadata-0"])
    (log_directory / "bootstrap.checkpoint").write_bytes(segment(1))
    snapshot = log_directory / "__cluster_metadata-0" / f"{9:020}-{1:010}.checkpoint"
    snapshot.write_bytes(segment(1))
    plan = plan_of(log_directory)
    assert sorted(len(log.files) for log in plan.logs) == [1, 1, 2]
    assert {t.base_offset for t in plan.tasks if t.file.kind == "metadata-snapshot"} == {None}


def test_a_pattern_chooses_topics(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    plan = plan_of(log_directory, topics=("ord*", "nothing"))
    assert {p.topic for p in plan.partitions} == {"orders"}
    assert plan.log_directories == ()
    assert plan.unmatched_topics == ("nothing",)


def test_what_cannot_be_opened_is_no_task(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (partition / segment_name(3)).symlink_to("moved-away")
    assert len(plan_of(partition).tasks) == 1


def test_what_is_planned_while_it_is_listed_is_the_same_plan(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    write_partition(log_directory / "orders-9", {0: segment(1)})
    alone = log_directory / "orders-1" / segment_name(0)
    for topics in ((), ("ord*",)):
        plan = plan_audit([log_directory, alone], topics=topics or None, threads=2)
        known = plan.inventory._replace(files=ANYWHERE)
        assert make_plan(take_inventory([log_directory, alone]), topics) == plan._replace(
            inventory=known
        )

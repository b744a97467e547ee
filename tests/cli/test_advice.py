"""Advice in the report: who has the records, what to save before, and what each deed costs."""

import shlex
from pathlib import Path

import pytest
from support.commands import Run
from support.logs import segment_name, write_log_directory
from support.small_log import write_orders


def damage(path: Path, position: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 - 1 if position is None else position] ^= 1
    path.write_bytes(data)


def broken_copies(directory: Path, *, everywhere: str, only_b: str) -> list[str]:
    """Write three copies of a log directory with batches that no start gets past."""
    for name in ("a", "b", "c"):
        copy = write_log_directory(directory / name)
        (copy / ".kafka_cleanshutdown").unlink()
        (copy / "recovery-point-offset-checkpoint").unlink()
        damage(copy / everywhere / segment_name(12))
    damage(directory / "b" / only_b / segment_name(0))
    return [f"--replica={name}={directory / name}" for name in ("a", "b", "c")]


def test_a_copy_is_fetched_again_only_once_another_broker_leads_the_partition(
    run: Run, tmp_path: Path
) -> None:
    named = broken_copies(tmp_path, everywhere="orders-0", only_b="orders-1")
    text = " ".join(run("audit", *named).out.split())
    what = text.index("a and c have offsets 3 to 5. Stop the broker of this copy.")
    leads = text.index("Once another one leads the partition, move b/orders-1 out", what)
    assert text.index("$ kafka-topics.sh --bootstrap-server HOST:9092 --describe", leads)


def test_where_every_copy_loses_records_only_the_one_that_keeps_most_is_cut(
    run: Run, tmp_path: Path
) -> None:
    named = broken_copies(tmp_path, everywhere="orders-0", only_b="orders-1")
    damage(tmp_path / "c" / "orders-0" / segment_name(12), position=200)
    text = " ".join(run("audit", *named).out.split())
    kept = "every copy at hand loses readable records of it at its next start, and that in"
    assert text.count(kept) == 2
    assert text.count("Nothing better was found than to do nothing") == 1
    assert "Delete" not in text


def test_of_a_partition_that_is_there_twice_the_report_names_the_directory_to_move(
    run: Run, tmp_path: Path
) -> None:
    for disk in ("disk-1", "disk-2"):
        write_orders(tmp_path / disk)
    text = " ".join(run("audit", str(tmp_path)).out.split())
    away, stays = tmp_path / "disk-2", tmp_path / "disk-1" / "orders-0"
    assert f"Do first: before the broker starts, in {away} move orders-0 out of" in text
    assert f"In {away}:" in text
    assert f"the broker starts with {stays}, whose log ends at offset 18;" in text


def test_nothing_is_saved_over_something_else(run: Run, tmp_path: Path) -> None:
    directories = []
    for name in ("a", "b's c"):
        directory = write_log_directory(tmp_path / name)
        (directory / ".kafka_cleanshutdown").unlink()
        damage(directory / "orders-0" / segment_name(12))
        (directory / "meta.properties").write_text(
            f"version=1\nnode.id=1\ncluster.id=of-{name[0]}\n"
        )
        directories.append(directory)
    commands = [
        line.strip() for line in run("audit", *directories).out.splitlines() if "  $ " in line
    ]
    targets = [line.split(" > ")[1] for line in commands if " > " in line]
    copies = [line.split()[-1] for line in commands if line.startswith("$ cp -a ")]
    assert targets == ["orders-0.jsonl", "orders-0-2.jsonl"]
    assert copies == ["COPY/orders-0", "COPY/orders-0-2"]
    for line, directory in zip(
        [line for line in commands if " > " in line], directories, strict=True
    ):
        _, _, verb, path, *options = shlex.split(line.split(" > ")[0])
        assert path == str(directory / "orders-0")
        assert run(verb, path, *options).out.count("\n") == 21


@pytest.mark.shared
def test_find_hanging_comes_before_abort_and_an_old_broker_gets_no_new_command(
    run: Run, shared: Path
) -> None:
    out = run("audit", shared / "corpus" / "kafka" / "kafka-3.9").out
    lines = [line for line in out.splitlines() if "$ kafka-transactions.sh" in line]
    place = "--topic late-write --partition 0"
    find = next(n for n, line in enumerate(lines) if f" find-hanging {place}" in line)
    assert f" abort {place} --start-offset 6" in lines[find + 1]
    assert "forceTerminateTransaction" not in out


@pytest.mark.shared
def test_a_deed_that_is_the_only_one_forgets_nobody(run: Run, shared: Path) -> None:
    (case,) = (shared / "damage" / "cases").glob("133-*")
    text = " ".join(run("audit", case / "log").out.split())
    assert "Nothing better was found than to do nothing: no readable record is lost" in text
    assert "forgets" not in text


def test_a_copy_that_is_only_behind_stays_where_it_is_and_follows(run: Run, tmp_path: Path) -> None:
    paths = [write_log_directory(tmp_path / name) for name in ("a", "b")]
    for file in (paths[0] / "orders-1").glob(f"{12:020}.*"):
        file.unlink()
    text = " ".join(run("audit", *paths).out.split())
    assert "starts, see that b leads the partition: as a follower this copy fetches" in text
    assert "move a/orders-1" not in text

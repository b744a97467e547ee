"""What topics hold comes to what the rows of their files and partitions do."""

import random
from pathlib import Path

import ottla
import pytest
from ottla.audit import AuditResult
from ottla.audit.judge import packed
from ottla.audit.result import result as results
from ottla.cli.report import print_report
from support.logs import segment, segment_name, write_log_directory, write_partition
from support.mutated_directories import write_mutated_directory
from support.random_logs import write_random_log


def sums_of_rows(result: AuditResult) -> dict[str | None, list[int]]:
    """The same from the rows: partitions, batches, records, bytes, ended transactions."""
    sums: dict[str | None, list[int]] = {}
    directories = set()
    for file in result.files:
        if file["is_read"] and file["kind"] == "segment":
            of_topic = sums.setdefault(file["topic"], [0] * 6)
            directory = Path(file["file"]).parent
            of_topic[0] += directory not in directories
            directories.add(directory)
            of_topic[1] += file["batches"] or 0
            of_topic[2] += file["records"] or 0
            of_topic[3] += file["size"]
    for row in result.metrics:
        sums[row["topic"]][4] += row["committed_transactions"]
        sums[row["topic"]][5] += row["aborted_transactions"]
    return sums


def test_totals_of_topics_are_the_sums_of_the_rows(tmp_path: Path) -> None:
    directories = [tmp_path / f"random-{seed}" for seed in range(10)]
    for seed, directory in enumerate(directories):
        write_random_log(directory / "orders-0", random.Random(seed))
    for seed in range(10):
        path = tmp_path / f"mutated-{seed}"
        directories.append(write_mutated_directory(path, random.Random(seed)))
    for directory in directories:
        result = ottla.audit(directory)
        totals = {each.topic: list(each[1:]) for each in result.topic_totals}
        assert totals == sums_of_rows(result), directory


def test_segments_are_named_of_partitions_with_a_finding_alone(tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "logs")
    path = directory / "orders-1" / segment_name(12)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    names = [segment_name(offset) for offset in (0, 12)]
    assert ottla.audit(directory).finding_segments == {"orders-1": names}


def test_the_report_of_sound_logs_makes_no_row_of_a_file_or_a_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a row was made")

    for number in range(3):
        write_partition(
            tmp_path / f"orders-{number}", {0: segment(2), 6: segment(2, base_offset=6)}
        )
    monkeypatch.setattr(results, "_file_rows", refused)
    monkeypatch.setattr(packed, "_pieces", refused)
    print_report(ottla.audit(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["orders", "3", "12"] for line in lines), lines

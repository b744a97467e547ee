"""`--all`, `--severity`, `--ignore`, `--baseline`: what a report has, and what counts."""

import json
from pathlib import Path

import ottla
import pytest
from support.commands import Run
from support.logs import segment_name, write_log_directory
from support.small_log import PARTITION, SIZE, overwrite, write_orders

BROKEN = f"{PARTITION}/{segment_name(0)}"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A log with an error, a batch with a wrong CRC, and a warning, an index that is too long."""
    directory = tmp_path / "kafka"
    write_orders(directory)
    overwrite(directory / BROKEN, SIZE + 65, b"\xff")
    (directory / PARTITION / segment_name(9, "index")).write_bytes(b"\0" * 9)
    return directory


def test_a_finding_that_is_ignored_does_not_count(run: Run, orders: Path) -> None:
    assert run("audit", orders).status == 2
    ran = run("audit", orders, "--ignore", "crc-mismatch")
    assert ran.status == 1
    assert ran.out.startswith("DAMAGED: 1 warning in 1 of 1 partition; left out: 1 error\n")
    assert "crc-mismatch" not in ran.out


def test_a_log_is_not_called_sound_because_its_findings_are_ignored(run: Run, orders: Path) -> None:
    ignored = ("--ignore", "crc-mismatch", "--ignore", "index-mismatch")
    ran = run("audit", orders, *ignored)
    assert ran.status == 0
    assert ran.out.startswith("DAMAGED: no error and no warning; left out: 1 error and 1 warning\n")


def test_only_findings_as_grave_as_asked_for_are_reported(run: Run, orders: Path) -> None:
    ran = run("audit", orders, "--severity", "error")
    assert ran.status == 2
    assert "index-mismatch" not in ran.out
    assert ran.out.splitlines()[0].endswith("; left out: 1 warning")
    form = json.loads(run("audit", orders, "--severity", "error", "--format", "json").out)
    assert [finding["name"] for finding in form["findings"]] == ["crc-mismatch"]
    assert form["summary"]["left_out"] == {"error": 0, "warning": 1, "info": 0}


def test_the_json_of_an_audit_is_a_baseline_of_the_next(
    run: Run, orders: Path, tmp_path: Path
) -> None:
    known = tmp_path / "known.json"
    known.write_text(run("audit", orders, "--format", "json").out)
    ran = run("audit", orders, "--baseline", known)
    assert ran.status == 0
    assert "left out: 1 error and 1 warning" in ran.out
    overwrite(orders / BROKEN, 2 * SIZE + 65, b"\xff")
    again = run("audit", orders, "--baseline", known)
    assert again.status == 2
    assert "offsets 6 to 8" in again.out
    assert "offsets 3 to 5" not in again.out


def test_a_finding_that_is_graver_than_in_the_baseline_counts(
    run: Run, orders: Path, tmp_path: Path
) -> None:
    form = json.loads(run("audit", orders, "--format", "json").out)
    for finding in form["findings"]:
        finding["severity"] = "info"
    known = tmp_path / "known.json"
    known.write_text(json.dumps(form))
    assert run("audit", orders, "--baseline", known).status == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        ("[]", "has no list of findings"),
        ("{", "is not JSON"),
        ('{"findings": [{"name": 7}]}', "finding 0 has no name and severity"),
        ('{"findings": [{"name": "crc-mismatch", "severity": "error", "file": []}]}', "finding 0"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline_is_wrong_usage(
    run: Run, orders: Path, tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "baseline.json"
    if content is not None:
        path.write_text(content)
    ran = run("audit", orders, "--baseline", path)
    assert ran.status == 64
    assert reason in ran.err
    assert "Traceback" not in ran.err


def test_a_finding_that_does_not_exist_cannot_be_ignored(run: Run, orders: Path) -> None:
    ran = run("audit", orders, "--ignore", "crc-mismach")
    assert ran.status == 64
    assert "did you mean crc-mismatch" in ran.err


def test_all_lists_every_event_with_every_finding(run: Run, tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "kafka")
    for partition in ("orders-0", "orders-1", "payments-0"):
        for base_offset in (0, 12):
            overwrite(directory / partition / segment_name(base_offset), 70, b"\xff")
    short = run("audit", directory).out
    assert "error crc-mismatch (6): " in short
    assert "and 3 more\n" in short
    told = run("audit", directory, "--all").out
    assert "more\n" not in told
    assert told.count("stored CRC") == 6
    assert "--all" not in told


def test_what_is_left_out_stays_in_quarantine(orders: Path) -> None:
    result = ottla.audit(orders)
    ignored = result.select(ignore=["crc-mismatch"])
    assert [len(table) for table in ignored.split_records()] == [
        len(table) for table in result.split_records()
    ]
    with pytest.raises(ValueError, match="no finding"):
        result.select(ignore=["crc"])

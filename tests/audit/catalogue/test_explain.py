"""The catalogue of findings as people read it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ottla.audit.catalogue.explain import (
    catalogue,
    commands,
    explain,
    findings_markdown,
    force_commands,
    going_on,
    offset_after,
    transaction_commands,
)
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.audit.result.columns import TABLES
from ottla.logs.releases import Releases
from ottla.severity import SEVERITIES

# Findings about what lies around the segments, which are made in Python.
AROUND_THE_SEGMENTS = (
    UNREADABLE,
    "checkpoint-mismatch",
    "epoch-checkpoint-mismatch",
    "index-missing",
    "leftover-file",
    "metadata-mismatch",
    "missing-segment",
    "unknown-file",
)


def finding(name: str, **fields: object) -> dict[str, object]:
    nothing = dict.fromkeys(column.name for column in TABLES["findings"])
    return {**nothing, "name": name, "topic": "orders", "partition": 3, **fields}


def test_every_finding_is_explained_in_full() -> None:
    for name, row in catalogue().items():
        assert row.name == name
        assert row.severity in SEVERITIES
        for text in (row.meaning, row.causes, row.action):
            assert text.endswith("."), name
        assert row.kafka


def test_names_are_kebab_case_and_name_no_remedy() -> None:
    for name in catalogue():
        assert name == name.lower()
        assert name.replace("-", "").isalpha()


@pytest.mark.parametrize("name", AROUND_THE_SEGMENTS)
def test_findings_around_the_segments_are_in_the_catalogue(name: str) -> None:
    assert explain(name).name == name


def test_an_unknown_name_is_no_finding() -> None:
    with pytest.raises(KeyError):
        explain("crc-missmatch")


def test_a_place_in_a_segment_can_be_looked_at() -> None:
    damaged = finding("crc-mismatch", position=61, first_offset=12)
    assert commands(damaged, "my logs/00000000000000000000.log") == [
        "ottla inspect 'my logs/00000000000000000000.log' --offset 12"
    ]
    assert commands(damaged, None) == []


def test_a_file_beside_segments_can_be_built_anew() -> None:
    wrong = finding("index-mismatch", severity="warning", position=8)
    assert commands(wrong, "my logs/orders-3/00000000000000000000.index") == [
        "ottla rebuild 'my logs/orders-3' --output rebuilt"
    ]
    harmless = finding("index-mismatch", severity="info", position=8)
    assert commands(harmless, "orders-3/00000000000000000000.index") == []


@pytest.mark.parametrize("severity", ["info", "warning"])
def test_an_open_transaction_is_looked_up_in_the_cluster_however_old_it_is(severity: str) -> None:
    (line,) = commands(finding("open-transaction", severity=severity, first_offset=12), None)
    assert line.startswith("kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging")
    assert line.endswith("--topic orders --partition 3")


def test_a_hanging_transaction_is_looked_up_then_aborted_by_its_start_or_by_its_producer() -> None:
    tool = "kafka-transactions.sh --bootstrap-server HOST:9092"
    hanging = {
        "topic": "orders",
        "partition": 3,
        "state": "hanging",
        "first_offset": 12,
        "producer_id": 7,
        "producer_epoch": 2,
        "coordinator_epoch": -1,
    }
    producer = "--producer-id 7 --producer-epoch 2 --coordinator-epoch 0"
    assert transaction_commands(hanging) == [
        f"{tool} find-hanging --topic orders --partition 3",
        f"{tool} abort --topic orders --partition 3 --start-offset 12",
        "# Brokers before Kafka 3.0:",
        f"{tool} abort --topic orders --partition 3 {producer}",
    ]
    assert transaction_commands({**hanging, "state": "committed"}) == []


def test_commands_are_those_that_the_brokers_have_as_far_as_that_is_known() -> None:
    unknown, new = force_commands("shop"), force_commands("shop", Releases(since=(4, 1)))
    (old, remark) = force_commands("shop", Releases(before=(4, 0)))
    assert unknown[1].startswith("# Kafka 4.1 and later")
    assert [line for line in unknown if not line.startswith("#")] == new
    assert new[1].endswith(" forceTerminateTransaction --transactionalId shop")
    assert " describe " in old
    assert remark == "# Then start a producer with this transactional id."
    hanging = {
        "topic": "orders",
        "partition": 3,
        "state": "hanging",
        "first_offset": 12,
        "producer_id": 7,
        "producer_epoch": 2,
        "coordinator_epoch": 0,
    }
    find, abort = transaction_commands(hanging, Releases(since=(3, 0)))
    assert [find, abort] == transaction_commands(hanging)[:2]


HOSTILE = "it's; rm -rf $HOME"


@pytest.mark.parametrize("state", ["open", "hanging"])
def test_a_topic_in_a_command_is_one_word_of_the_shell(state: str) -> None:
    transaction = {
        "topic": HOSTILE,
        "partition": 3,
        "state": state,
        "first_offset": 12,
        "producer_id": 7,
        "producer_epoch": 2,
        "coordinator_epoch": 0,
    }
    lines = [line for line in transaction_commands(transaction) if not line.startswith("#")]
    assert len(lines) == (1 if state == "open" else 3)
    for line in lines:
        words = shlex.split(line)
        assert words[words.index("--topic") + 1] == HOSTILE
        assert words[words.index("--partition") + 1] == "3"


def test_a_transactional_id_in_a_command_is_one_word_of_the_shell() -> None:
    lines = [line for line in force_commands(HOSTILE) if not line.startswith("#")]
    assert [shlex.split(line)[-1] for line in lines] == [HOSTILE] * len(lines)
    assert lines


def test_consumers_go_on_behind_a_faulty_batch_at_the_offset_after_its_last() -> None:
    faulty = finding("record-fault", severity="error", first_offset=12, last_offset=14)
    assert offset_after(faulty) == 15
    assert offset_after({**faulty, "next_good_offset": 20}) == 20
    assert offset_after({**faulty, "severity": "warning"}) is None
    assert offset_after({**faulty, "last_offset": None}) is None


def test_no_command_of_a_finding_gives_records_up() -> None:
    damaged = finding("damaged-range", severity="error", next_good_offset=15)
    assert commands(damaged, None) == []
    assert offset_after(damaged) == 15


def test_going_on_behind_damage_comes_with_what_it_takes_and_what_it_costs() -> None:
    lines = going_on("damaged-range")
    text = " ".join(lines)
    members = text.index("--describe --members")
    assert "running members" in text[:members]
    assert members < text.index("--to-offset OFFSET --dry-run") < text.index("--execute")
    assert text.index("no way back") < text.index("kafka-delete-records.sh")
    (document,) = [line for line in lines if line.startswith("$ echo ")]
    command, content, *_ = shlex.split(document.removeprefix("$ "))
    assert command == "echo"
    assert json.loads(content.replace("PARTITION", "3").replace("OFFSET", "15")) == {
        "version": 1,
        "partitions": [{"topic": "TOPIC", "partition": 3, "offset": 15}],
    }
    assert going_on("open-transaction") == []


WRITE_FINDINGS = (
    "python -c 'from ottla.audit.catalogue import explain;"
    ' print(explain.findings_markdown(), end="")\' > docs/findings.md'
)


def test_the_documentation_of_the_findings_is_current(root: Path) -> None:
    documented = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    assert documented == findings_markdown(), f"write it anew: {WRITE_FINDINGS}"


def test_the_documentation_of_the_findings_is_written_by_its_command(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    command = WRITE_FINDINGS.replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(["/bin/sh", "-c", command], check=True, cwd=tmp_path)
    written = (tmp_path / "docs" / "findings.md").read_bytes()
    assert written == (root / "docs" / "findings.md").read_bytes()

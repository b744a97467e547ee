"""The catalogue of findings as people read it."""

import json
import shlex
from pathlib import Path

import pytest
from ottla.audit.catalogue.explain import catalogue, commands, explain, findings_markdown
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.audit.result.columns import TABLES
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


def test_an_open_transaction_can_be_looked_up_in_the_cluster() -> None:
    young = finding("open-transaction", severity="info", first_offset=12)
    (line,) = commands(young, None)
    assert line.startswith("kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging")
    assert line.endswith("--topic orders --partition 3")


def test_a_hanging_transaction_is_aborted_by_its_start_or_on_older_brokers_by_its_producer() -> (
    None
):
    old = finding("open-transaction", severity="warning", first_offset=12, producer_id=7)
    producer = {"producer_epoch": 2, "coordinator_epoch": -1}
    abort = "kafka-transactions.sh --bootstrap-server HOST:9092 abort --topic orders --partition 3"
    assert commands(old, None, producer) == [
        f"{abort} --start-offset 12",
        f"{abort} --producer-id 7 --producer-epoch 2 --coordinator-epoch 0",
    ]


def test_consumers_stopped_by_damage_are_told_how_to_go_on() -> None:
    damaged = finding("damaged-range", severity="error", next_good_offset=15)
    seek, remark, document, delete = commands(damaged, None)
    assert remark == "# Or, for all groups, delete every record below offset 15:"
    assert seek == (
        "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --group GROUP"
        " --topic orders:3 --reset-offsets --to-offset 15 --execute"
    )
    command, text, _, file = shlex.split(document)
    assert (command, file) == ("echo", delete.split()[-1])
    assert json.loads(text) == {
        "partitions": [{"topic": "orders", "partition": 3, "offset": 15}],
        "version": 1,
    }
    assert delete.startswith("kafka-delete-records.sh --bootstrap-server HOST:9092 --offset-json-")


def test_the_documentation_of_the_findings_is_current(root: Path) -> None:
    documented = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    assert documented == findings_markdown(), (
        "write it anew: python -c 'from ottla.audit import explain;"
        ' print(explain.findings_markdown(), end="")\' > docs/findings.md'
    )

"""Gaps, transactions, producers and log ends of every corpus, held against what brokers said.

The truth files come from Kafka's own classes, tools and clients: `consume.json` what a consumer got
and where the broker says the log starts, is stable and ends; `transactions.json` the transaction
tools; `produced.json` what the producing clients did; the batches of a partition, decoded.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit import Table

pytestmark = pytest.mark.shared

CORPORA = {
    "demo": ("demo/broker", "demo/truth/broker"),
    **{
        name: (f"kafka/{name}", f"kafka/truth/{name}")
        for name in ("kafka-0.10", "kafka-2.8", "kafka-3.9", "kafka-4.1", "kafka-4.1-killed")
    },
}

# Where the truth knows the log ends: the broker of 0.10 could not be asked.
ASKED = ("demo", "kafka-2.8", "kafka-3.9", "kafka-4.1")
TRANSACTIONAL = ("kafka-3.9", "kafka-4.1")

Rows = dict[str, list[Mapping[str, Any]]]


@cache
def audited(directory: Path) -> ottla.AuditResult:
    return ottla.audit(directory)


def corpus(shared: Path, name: str) -> tuple[ottla.AuditResult, Path]:
    directory, truth = CORPORA[name]
    return audited(shared / "corpus" / directory), shared / "corpus" / truth


def by_partition(table: Table) -> Rows:
    rows: Rows = defaultdict(list)
    for row in table:
        rows[f"{row['topic']}-{row['partition']}"].append(row)
    return rows


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def batches(truth: Path, partition: str) -> Iterator[Mapping[str, Any]]:
    with gzip.open(truth / f"{partition}.batches.jsonl.gz", "rt", encoding="utf-8") as lines:
        for batch in map(json.loads, lines):
            if batch["file"].endswith(".log"):
                yield batch


@pytest.mark.parametrize("name", ASKED)
def test_logs_start_are_stable_and_end_where_the_broker_says(name: str, shared: Path) -> None:
    result, truth = corpus(shared, name)
    metrics = by_partition(result.metrics)
    consumed = load(truth / "consume.json")
    assert consumed
    for partition, told in consumed.items():
        (row,) = metrics[partition]
        assert (
            row["log_start_offset"],
            row["last_stable_offset"],
            row["log_end_offset"],
        ) == (told["logStartOffset"], told["lastStableOffset"], told["highWatermark"]), partition


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("reader", ["read_uncommitted", "read_committed"])
def test_the_gaps_are_what_a_consumer_did_not_get(name: str, reader: str, shared: Path) -> None:
    result, truth = corpus(shared, name)
    gaps = by_partition(result.gaps)
    readers = ("all",) if reader == "read_uncommitted" else ("all", "read_committed")
    compared = 0
    for partition, told in load(truth / "consume.json").items():
        if reader not in told or isinstance(told[reader], str):
            continue
        view = told[reader]
        end = view["endOffset"]
        rows = [
            row for row in gaps[partition] if row["reader"] in readers and row["first_offset"] < end
        ]
        got = {o for first, last in view["offsets"] for o in range(first, last + 1)}
        assert sum(row["offsets"] for row in rows) == end - len(got), partition
        whole = [row for row in rows if row["ranges"] == 1 and row["reader"] == "all"]
        for row in whole:
            if row["position"] is not None or row["cause"] in ("retention", "delete-records"):
                missed = range(row["first_offset"], row["last_offset"] + 1)
                assert got.isdisjoint(missed), (partition, row)
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("name", CORPORA)
def test_every_hole_between_batches_is_a_gap_and_none_is_unexplained(
    name: str, shared: Path
) -> None:
    result, truth = corpus(shared, name)
    gaps = by_partition(result.gaps)
    for (metric,) in by_partition(result.metrics).values():
        partition = f"{metric['topic']}-{metric['partition']}"
        start = metric["log_start_offset"]
        nothing = {"lastOffset": start - 1}
        holes = {
            (max(before["lastOffset"] + 1, start), after["baseOffset"] - 1)
            for before, after in pairwise([nothing, *batches(truth, partition)])
            if before["lastOffset"] + 1 < after["baseOffset"] and after["baseOffset"] > start
        }
        said = {
            (row["first_offset"], row["last_offset"])
            for row in gaps[partition]
            if row["position"] is not None
            and row["reader"] == "all"
            and row["cause"] != "control-records"
        }
        assert said == holes, partition
    causes = {row["cause"] for row in result.gaps}
    lawful = {"compaction", "control-records", "aborted-data", "retention", "delete-records"}
    assert causes <= lawful


def without_some_records(result: ottla.AuditResult) -> set[str]:
    """Partitions that were compacted, and where a batch's largest timestamp may be gone."""
    return {
        partition
        for partition, (metric,) in by_partition(result.metrics).items()
        if metric["removed_offsets"] or metric["missing_offsets"]
    }


def produced(truth: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for transaction in load(truth / "produced.json")["transactions"]:
        for partition, place in transaction["partitions"].items():
            yield transaction["outcome"], partition, place


@pytest.mark.parametrize("name", ["demo", *TRANSACTIONAL])
def test_transactions_are_those_that_the_clients_made(name: str, shared: Path) -> None:
    result, truth = corpus(shared, name)
    transactions = by_partition(result.transactions)
    removed = without_some_records(result)
    states = {"commit": {"committed"}, "abort": {"aborted"}, "open": {"open", "hanging"}}
    compared = 0
    for outcome, partition, place in produced(truth):
        if partition in removed or outcome == "late":
            continue
        (row,) = (
            row for row in transactions[partition] if row["first_offset"] == place["firstOffset"]
        )
        assert row["state"] in states[outcome], (partition, place)
        assert row["last_offset"] == place["lastOffset"], (partition, place)
        assert row["records"] <= place["lastOffset"] - place["firstOffset"] + 1
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_the_late_write_is_the_hanging_transaction_that_kafka_finds(
    name: str, shared: Path
) -> None:
    result, truth = corpus(shared, name)
    lines = (truth / "find-hanging-15min.txt").read_text(encoding="utf-8").splitlines()
    head, *found = ([cell.strip() for cell in line.split("\t")] for line in lines if line.strip())
    assert found
    for cells in found:
        told = dict(zip(head, cells, strict=True))
        (row,) = (
            row
            for row in result.transactions
            if (row["topic"], row["state"]) == (told["Topic"], "hanging")
        )
        assert row["partition"] == int(told["Partition"])
        assert row["producer_id"] == int(told["ProducerId"])
        assert row["producer_epoch"] == int(told["ProducerEpoch"])
        assert row["coordinator_epoch"] == int(told["CoordinatorEpoch"])
        assert row["first_offset"] == int(told["StartOffset"])
        assert row["holds_last_stable_offset"] is True
        tool = "kafka-transactions.sh --bootstrap-server HOST:9092"
        place = f"--topic {told['Topic']} --partition {told['Partition']}"
        assert row["commands"][:2] == [
            f"{tool} find-hanging {place}",
            f"{tool} abort {place} --start-offset {told['StartOffset']}",
        ]


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_producers_are_those_that_the_broker_describes(name: str, shared: Path) -> None:
    result, truth = corpus(shared, name)
    producers = by_partition(result.producers)
    removed = without_some_records(result)
    described = load(truth / "transactions.json")["describeProducers"]
    assert described
    for partition, told in described.items():
        rows = {row["producer_id"]: row for row in producers[partition]}
        for producer in told:
            row = rows[producer["producerId"]]
            coordinator_epoch = producer["coordinatorEpoch"]
            if partition not in removed:
                assert row["last_timestamp"] == producer["lastTimestamp"]
            assert (
                row["producer_epoch"],
                row["last_sequence"],
                row["coordinator_epoch"],
                row["open_transaction_offset"],
            ) == (
                producer["producerEpoch"],
                producer["lastSequence"],
                -1 if coordinator_epoch is None else coordinator_epoch,
                producer["currentTransactionStartOffset"],
            ), (partition, producer)


@pytest.mark.parametrize("name", CORPORA)
def test_producers_are_those_of_the_snapshot_at_the_end(name: str, shared: Path) -> None:
    result, truth = corpus(shared, name)
    producers = by_partition(result.producers)
    removed = without_some_records(result)
    compared = 0
    for partition, (metric,) in by_partition(result.metrics).items():
        snapshots = load(truth / f"{partition}.json")["snapshots"]
        at_end = f"{metric['log_end_offset']:020}.snapshot"
        for snapshot in snapshots:
            if snapshot["file"] != at_end:
                continue
            rows = {row["producer_id"]: row for row in producers[partition]}
            for told in snapshot["producers"]:
                row = rows[told["producerId"]]
                last_offset = row["last_offset"] if told["lastOffset"] >= 0 else -1
                if partition not in removed:
                    assert row["last_timestamp"] == told["lastTimestamp"]
                assert (
                    row["producer_epoch"],
                    row["last_sequence"],
                    last_offset,
                    row["coordinator_epoch"],
                    row["open_transaction_offset"],
                ) == (
                    told["producerEpoch"],
                    told["lastSequence"],
                    told["lastOffset"],
                    told["coordinatorEpoch"],
                    told["currentTxnFirstOffset"],
                ), (partition, told)
                compared += 1
    assert compared > 0 or name not in TRANSACTIONAL


@pytest.mark.parametrize(
    ("case", "cause", "offsets"),
    [
        ("061-closed-segment-torn", "truncated-tail", (95, 145)),
        ("063-closed-segment-cut", "truncated-tail", (2, 131)),
        ("072-batch-removed", "unexplained", (30, 49)),
        ("076-segment-missing", "missing-file", (48, 71)),
        ("022-sector-zero-512", "damage", (30, 34)),
    ],
)
def test_planted_gaps_have_the_cause_that_was_planted(
    case: str, cause: str, offsets: tuple[int, int], shared: Path
) -> None:
    result = audited(shared / "damage" / "cases" / case / "log")
    (gap,) = (row for row in result.gaps if row["cause"] not in ("control-records", "aborted-data"))
    assert (gap["cause"], gap["first_offset"], gap["last_offset"]) == (cause, *offsets)
    assert gap["evidence"]

"""The catalogues of findings and causes as people read them: what one means, and what to do.

The catalogues themselves are the engine's (`rust/ottla-audit/src/catalogue/kinds.rs`). Here they
become the answers of `ottla explain` and `docs/findings.md`, and a finding becomes the commands to
look further, or to mend it.
"""

from __future__ import annotations

import json
import os
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla._engine import CauseExplanation, Explanation
from ottla.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HOST",
    "CauseExplanation",
    "Explanation",
    "catalogue",
    "causes",
    "commands",
    "explain",
    "findings_markdown",
    "transaction_commands",
]

HOST = "HOST:9092"
"""Stands for a broker in commands."""


@cache
def catalogue() -> Mapping[str, Explanation]:
    """Every finding there is, by name, in the catalogue's order."""
    return {row.name: row for row in _engine.finding_catalogue()}


@cache
def causes() -> Mapping[str, CauseExplanation]:
    """Every cause of a gap, by name, in the catalogue's order.

    >>> causes()["compaction"].action
    'Nothing: this is normal. Consumers skip the offsets without noticing.'
    """
    return {row.name: row for row in _engine.cause_catalogue()}


def explain(name: str) -> Explanation:
    """The explanation of a finding.

    >>> explain("crc-mismatch").severity
    'error'

    Raises:
        KeyError: there is no such finding.
    """
    return catalogue()[name]


def commands(
    finding: Mapping[str, Any], path: str | None, producer: Mapping[str, Any] | None = None
) -> list[str]:
    """Commands to copy that look at a finding, or mend it.

    Args:
        finding: a row of the `findings` table.
        path: of its file, to be opened from where the user is.
        producer: the row of the `producers` table of its producer, if there is one.
    """
    lines = []
    kind = explain(finding["name"])
    if path is not None and path.endswith(".log") and finding["position"] is not None:
        offset = "" if finding["first_offset"] is None else f" --offset {finding['first_offset']}"
        lines.append(f"ottla inspect {shlex.quote(path)}{offset}")
    if path is not None and kind.is_rebuildable and finding["severity"] != "info":
        partition, _ = os.path.split(path)
        lines.append(f"ottla rebuild {shlex.quote(partition or '.')} --output rebuilt")
    if finding["topic"] is None or finding["partition"] is None:
        return lines
    if finding["name"] == "open-transaction" and finding["first_offset"] is not None:
        transaction = {
            "topic": finding["topic"],
            "partition": finding["partition"],
            "first_offset": finding["first_offset"],
            "producer_id": finding["producer_id"],
            "producer_epoch": producer and producer["producer_epoch"],
            "coordinator_epoch": producer and producer["coordinator_epoch"],
            "state": "open" if finding["severity"] == "info" else "hanging",
        }
        return transaction_commands(transaction)
    if (offset_after := _offset_after(finding)) is not None:
        lines += _skip(finding["topic"], finding["partition"], offset_after)
    return lines


def _offset_after(finding: Mapping[str, Any]) -> int | None:
    """Where consumers that are stopped by a finding can go on."""
    resume_at = explain(finding["name"]).resume_at
    if resume_at is None or finding["severity"] != "error":
        return None
    if finding["next_good_offset"] is not None:
        return int(finding["next_good_offset"])
    if resume_at == "next-batch" and finding["last_offset"] is not None:
        return int(finding["last_offset"]) + 1
    return None


def _skip(topic: str, partition: int, offset: int) -> list[str]:
    """Lets one group, or everybody, go on at an offset."""
    document = {
        "partitions": [{"topic": topic, "partition": partition, "offset": offset}],
        "version": 1,
    }
    name = shlex.quote(f"delete-{topic}-{partition}.json")
    return [
        (
            f"kafka-consumer-groups.sh --bootstrap-server {HOST} --group GROUP"
            f" --topic {shlex.quote(f'{topic}:{partition}')} --reset-offsets"
            f" --to-offset {offset} --execute"
        ),
        f"# Or, for everybody, give up every record below offset {offset}:",
        f"echo {shlex.quote(json.dumps(document))} > {name}",
        f"kafka-delete-records.sh --bootstrap-server {HOST} --offset-json-file {name}",
    ]


def transaction_commands(transaction: Mapping[str, Any]) -> list[str]:
    """Commands to copy that end a transaction nobody will end, or ask about one that is open.

    `abort --start-offset` asks the partition's leader who the producer is (Kafka 3.0 and later);
    older brokers must be told, in the second form.

    Args:
        transaction: a row of the `transactions` table.
    """
    tool = f"kafka-transactions.sh --bootstrap-server {HOST}"
    place = f"--topic {shlex.quote(transaction['topic'])} --partition {transaction['partition']}"
    if transaction["state"] == "open":
        return [f"{tool} find-hanging {place}"]
    if transaction["state"] != "hanging":
        return []
    lines = [f"{tool} abort {place} --start-offset {transaction['first_offset']}"]
    epoch, coordinator = transaction["producer_epoch"], transaction["coordinator_epoch"]
    if transaction["producer_id"] is not None and epoch is not None:
        lines.append(
            f"{tool} abort {place} --producer-id {transaction['producer_id']}"
            f" --producer-epoch {epoch} --coordinator-epoch {max(coordinator, 0)}"
        )
    return lines


def findings_markdown() -> str:
    """`docs/findings.md`."""
    lines = [
        "# Findings",
        "",
        "What `ottla audit` can say. `ottla explain NAME` prints the same at a terminal. A name is",
        "never renamed and never used for something else. The severity is the usual one; a finding",
        "may be graver or milder where the log around it tells more.",
    ]
    for severity in SEVERITIES:
        rows = [row for row in catalogue().values() if row.severity == severity]
        lines += ["", f"## {severity}"]
        for row in rows:
            lines += [
                "",
                f"### {row.name}",
                "",
                row.meaning,
                "",
                f"- Causes: {row.causes}",
                f"- What to do: {row.action}",
                f"- In Kafka: {row.kafka}",
            ]
    lines += [
        "",
        "## Causes of gaps",
        "",
        "Why consumers do not get some offsets: column `cause` of the tables `gaps` and",
        "`findings`. `ottla explain CAUSE` prints the same. A cause is *certain* where the bytes",
        "leave no other explanation, *likely* where it is the usual one, and *possible* where",
        "something speaks for it and nothing against it.",
    ]
    for cause in causes().values():
        lines += [
            "",
            f"### Cause {cause.name}",
            "",
            cause.meaning,
            "",
            f"- How it comes about: {cause.causes}",
            f"- What to do: {cause.action}",
            f"- In Kafka: {cause.kafka}",
        ]
    return "\n".join(lines) + "\n"

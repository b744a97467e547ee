"""Explanations of findings and causes: what they mean, and what to do.

The catalogues are defined in the engine (`rust/ottla-audit/src/catalogue/kinds.rs`). This module
turns them into `ottla explain` and `docs/findings.md`, and findings into commands that diagnose or
repair them.
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
    """Returns every finding by name, in the order of the catalogue."""
    return {row.name: row for row in _engine.finding_catalogue()}


@cache
def causes() -> Mapping[str, CauseExplanation]:
    """Returns every cause of a gap by name, in the order of the catalogue.

    >>> causes()["compaction"].action
    'Nothing: this is normal. Consumers skip the offsets without noticing.'
    """
    return {row.name: row for row in _engine.cause_catalogue()}


def explain(name: str) -> Explanation:
    """Returns the explanation of a finding.

    >>> explain("crc-mismatch").severity
    'error'

    Raises:
        KeyError: there is no such finding.
    """
    return catalogue()[name]


def commands(
    finding: Mapping[str, Any], path: str | None, producer: Mapping[str, Any] | None = None
) -> list[str]:
    """Returns commands that diagnose or repair a finding.

    Args:
        finding: a row of the `findings` table.
        path: path of its file, relative to the user's working directory or absolute.
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
    """Returns the offset at which consumers stopped by a finding can continue."""
    resume_at = explain(finding["name"]).resume_at
    if resume_at is None or finding["severity"] != "error":
        return None
    if finding["next_good_offset"] is not None:
        return int(finding["next_good_offset"])
    if resume_at == "next-batch" and finding["last_offset"] is not None:
        return int(finding["last_offset"]) + 1
    return None


def _skip(topic: str, partition: int, offset: int) -> list[str]:
    """Returns commands that let one group, or all of them, continue at an offset."""
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
        f"# Or, for all groups, delete every record below offset {offset}:",
        f"echo {shlex.quote(json.dumps(document))} > {name}",
        f"kafka-delete-records.sh --bootstrap-server {HOST} --offset-json-file {name}",
    ]


def transaction_commands(transaction: Mapping[str, Any]) -> list[str]:
    """Returns commands that end a hanging transaction, or examine an open one.

    `abort --start-offset` asks the partition's leader for the producer (Kafka 3.0 and later); older
    brokers need the second form, which names it.

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
    """Returns the text of `docs/findings.md`."""
    lines = [
        "# Findings",
        "",
        "All findings of `ottla audit`. `ottla explain NAME` prints the same at a terminal. A name",
        "is never renamed and never used for something else. The severity is the usual one; a",
        "finding may be more or less severe if the rest of the log shows more.",
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
        "Why consumers do not receive some offsets: column `cause` of the tables `gaps` and",
        "`findings`. `ottla explain CAUSE` prints the same. A cause is *certain* if the bytes",
        "leave no other explanation, *likely* if it is the usual one, and *possible* if there is",
        "evidence for it and none against it.",
    ]
    for cause in causes().values():
        lines += [
            "",
            f"### Cause {cause.name}",
            "",
            cause.meaning,
            "",
            f"- How it happens: {cause.causes}",
            f"- What to do: {cause.action}",
            f"- In Kafka: {cause.kafka}",
        ]
    return "\n".join(lines) + "\n"

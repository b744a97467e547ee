"""Explanations of findings and causes: what they mean, and what to do.

The catalogues are defined in the engine (`rust/ottla-audit/src/catalogue/kinds.rs`). This module
turns them into `ottla explain` and `docs/findings.md`, and findings into commands that diagnose or
repair them.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla._engine import CauseExplanation, Explanation
from ottla.logs.names import may_hold_batches
from ottla.logs.releases import Releases
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "HOST",
    "UNENDED",
    "CauseExplanation",
    "Explanation",
    "catalogue",
    "causes",
    "commands",
    "explain",
    "find_hanging",
    "findings_markdown",
    "force_commands",
    "going_on",
    "offset_after",
    "transaction_commands",
]

HOST = "HOST:9092"
"""Stands for a broker in commands."""

_TRANSACTIONS = f"kafka-transactions.sh --bootstrap-server {HOST}"

UNENDED = ("open", "hanging")
"""States of transactions without an end marker."""

DESCRIBE_PRODUCERS_SINCE = (3, 0)
"""Release that lets `abort --start-offset` ask for the producer, KIP-664."""
FORCE_TERMINATE_SINCE = (4, 1)
"""Release with `forceTerminateTransaction`, KIP-939."""
UNKNOWN_RELEASES = Releases()


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


def commands(finding: Mapping[str, Any], path: str | None) -> list[str]:
    """Returns commands that diagnose or repair a finding.

    Args:
        finding: a row of the `findings` table.
        path: path of its file, relative to the user's working directory or absolute.
    """
    place = finding["topic"], finding["partition"]
    kind = finding["name"], finding["severity"]
    return [*commands_at(place, path, kind, finding["position"], finding["first_offset"])]


def commands_at(
    place: tuple[str | None, int | None],
    path: str | None,
    kind: tuple[str, Severity],
    position: int | None,
    first_offset: int | None,
) -> tuple[str, ...]:
    """Returns the `commands` of a finding by its fields.

    Args:
        place: its topic and partition.
        path: see `commands`.
        kind: its name and severity.
        position: in the file.
        first_offset: the first that it is about.
    """
    name, severity = kind
    if name == "open-transaction" and place[1] is not None:
        # However old it is, only its coordinator can tell that it hangs.
        return (find_hanging(*place),)
    if path is None:
        return ()
    lines = []
    if position is not None and (inspect := _inspect(path)):
        lines.append(inspect if first_offset is None else f"{inspect} --offset {first_offset}")
    if severity != "info" and explain(name).is_rebuildable:
        lines.append(_rebuild(path))
    return tuple(lines)


def _quoted(text: str) -> str:
    """Returns a word of a command, as a shell reads it."""
    import shlex

    return shlex.quote(text)


# Findings in one file follow each other: it is told once how to look at it.
@lru_cache(maxsize=64)
def _inspect(path: str) -> str | None:
    return f"ottla inspect {_quoted(path)}" if may_hold_batches(os.fsencode(path)) else None


@lru_cache(maxsize=64)
def _rebuild(path: str) -> str:
    partition, _ = os.path.split(path)
    return f"ottla rebuild {_quoted(partition or '.')} --output rebuilt"


@lru_cache(maxsize=64)
def _place(topic: str, partition: int) -> str:
    return f"--topic {_quoted(topic)} --partition {partition}"


@lru_cache(maxsize=64)
def find_hanging(topic: Any, partition: Any) -> str:
    """Returns the command that asks the coordinators of a partition's open transactions."""
    return f"{_TRANSACTIONS} find-hanging {_place(topic, partition)}"


def offset_after(finding: Mapping[str, Any]) -> int | None:
    """Returns the offset at which consumers stopped by a finding can continue."""
    resume_at = explain(finding["name"]).resume_at
    if resume_at is None or finding["severity"] != "error":
        return None
    if finding["next_good_offset"] is not None:
        return int(finding["next_good_offset"])
    if resume_at == "next-batch" and finding["last_offset"] is not None:
        return int(finding["last_offset"]) + 1
    return None


def going_on(name: str) -> list[str]:
    """How consumers get behind a finding that stops them, by any means: sentences and commands.

    It stands apart from the audit's report, because it gives records up: there is no way back.

    >>> going_on("crc-mismatch")[0]
    'If no other replica has the records:'
    >>> going_on("offset-gap")
    []
    """
    if explain(name).resume_at is None:
        return []
    tool = f"$ kafka-consumer-groups.sh --bootstrap-server {HOST} --group GROUP \\\n    "
    reset = f"{tool}--topic TOPIC:PARTITION --reset-offsets --to-offset OFFSET"
    return [
        "If no other replica has the records:",
        _WHERE_TO_GO_ON,
        _ONE_GROUP,
        f"{tool}--describe --members",
        f"{reset} --dry-run",
        f"{reset} --execute",
        _EVERY_GROUP,
        f"$ echo '{_DELETED_RECORDS}' \\\n    > delete.json",
        _DELETE,
    ]


_WHERE_TO_GO_ON = (
    "Consumers go on where the finding says next_good_offset (of undecodable and record-fault also"
    " one behind its last offset), which is OFFSET here. Save the records that can be read first,"
    " with ottla read."
)
_ONE_GROUP = (
    "One group: stop all its members, and see that none runs. A group with running members is not"
    " reset, and one that is started too early commits its old offset again. The group never gets"
    " the records between."
)
_EVERY_GROUP = (
    "Every group: this deletes all records below OFFSET, on all replicas, for ever. There is no way"
    " back, so do it only where nobody needs them, or after they are saved elsewhere."
)
_DELETE = (
    f"$ kafka-delete-records.sh --bootstrap-server {HOST} \\\n    --offset-json-file delete.json"
)
_DELETED_RECORDS = (
    '{"version": 1, "partitions":\n'
    '    [{"topic": "TOPIC", "partition": PARTITION, "offset": OFFSET}]}'
)


def transaction_commands(
    transaction: Mapping[str, Any], releases: Releases = UNKNOWN_RELEASES
) -> list[str]:
    """Returns commands that end a hanging transaction, or examine an open one.

    `find-hanging` comes before `abort`: the cluster may know more than the log directory. `abort
    --start-offset` asks the partition's leader for the producer, and needs brokers of Kafka 3.0 or
    later; the second form names the producer, for older ones.

    Args:
        transaction: a row of the `transactions` table.
        releases: those that the broker may be of.
    """
    if transaction["state"] not in UNENDED:
        return []
    tool, place = _TRANSACTIONS, _place(transaction["topic"], transaction["partition"])
    lines = [find_hanging(transaction["topic"], transaction["partition"])]
    if transaction["state"] == "open":
        return lines
    lines.append(f"{tool} abort {place} --start-offset {transaction['first_offset']}")
    epoch, coordinator = transaction["producer_epoch"], transaction["coordinator_epoch"]
    is_named = transaction["producer_id"] is not None and epoch is not None
    if is_named and not releases.has(DESCRIBE_PRODUCERS_SINCE):
        lines += [
            "# Brokers before Kafka 3.0:",
            (
                f"{tool} abort {place} --producer-id {transaction['producer_id']}"
                f" --producer-epoch {epoch} --coordinator-epoch {max(coordinator, 0)}"
            ),
        ]
    return lines


def force_commands(transactional_id: str, releases: Releases = UNKNOWN_RELEASES) -> list[str]:
    """Returns commands that end the transaction of a transactional id, whoever has it.

    Args:
        transactional_id: which.
        releases: those that the broker may be of.
    """
    tool = _TRANSACTIONS
    name = _quoted(transactional_id)
    look = f"{tool} describe --transactional-id {name}"
    force = f"{tool} forceTerminateTransaction --transactionalId {name}"
    has_force = releases.has(FORCE_TERMINATE_SINCE)
    if has_force:
        return [look, force]
    if has_force is False:
        return [look, "# Then start a producer with this transactional id."]
    return [
        look,
        "# Kafka 4.1 and later; before, start a producer with this transactional id:",
        force,
    ]


def _going_on_markdown() -> Iterator[str]:
    stopping = [row.name for row in catalogue().values() if row.resume_at is not None]
    names = [f"`{name}`" for name in stopping]
    yield f"A consumer stops at {', '.join(names[:-1])} and {names[-1]}, where these are errors."
    is_command = False
    for line in going_on(stopping[0]):
        if line.startswith("$"):
            yield from () if is_command else ("", "```console")
        else:
            yield from ("```", "") if is_command else ("",)
        is_command = line.startswith("$")
        yield line
    if is_command:
        yield "```"


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
    lines += ["", "## Going on behind damage", "", *_going_on_markdown()]
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

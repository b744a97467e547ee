"""Checks what coordinators store in topics, committed offsets and transactional ids, against logs.

`__consumer_offsets` and `__transaction_state` are read again after the audit: which of their
records count is known only when every end marker is. Of several replicas of a partition, the one
with the largest log end offset counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.explain import UNENDED, force_commands, transaction_commands
from ottla.audit.catalogue.findings import Findings, make_finding, place_finding
from ottla.audit.judge.transaction_rows import UNKNOWN_TO_COORDINATORS, TransactionRows
from ottla.logs.metadata import cluster_id
from ottla.logs.names import (
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from ottla.logs.release_bounds import releases_of
from ottla.text import visible_all
from ottla.words import count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.collector import Outcome, TableRows
    from ottla.audit.plan.logs import Log
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition
    from ottla.logs.releases import Releases
    from ottla.storage import Place

    PlacedRows: TypeAlias = list[tuple[Partition, dict[str, Any]]]
    ReadTopics: TypeAlias = Callable[[Sequence["ReadRequest"]], Iterable["ReadAnswer | None"]]
    """Runs requests."""

UNKNOWN_OF_GROUPS = dict.fromkeys(
    ("offset", "leader_epoch", "metadata", "commit_timestamp_ms", "expire_timestamp_ms")
)

Rows = list[dict[str, Any]]
Undecoded = tuple[int, tuple[int, str] | None, int]
"""Records that cannot be decoded, the first of them with the reason, and records beyond limits."""
ReadAnswer = tuple[Rows, Undecoded]
"""What the records of a partition say, and how many could not be decoded."""
Cluster = str | bytes
"""The id of a cluster, or a log directory without one."""

Key = tuple[Cluster, str | None, int | None]


def with_coordinators(plan: Plan, outcome: Outcome, read: ReadTopics) -> Outcome:
    """Returns the outcome with tables and findings of the coordinators' topics.

    `read` runs requests, and returns their `rows` in order.
    """
    locations = _Locations(plan, outcome)
    findings: list[PlacedFinding] = []
    rows = _read(plan, locations, read, findings)
    groups = _with_share_states(rows[CONSUMER_OFFSETS], rows[SHARE_GROUP_STATE], locations)
    ids = rows[TRANSACTION_STATE]
    topics = {row["topic"] for _, row in groups if row["topic"] is not None}
    logs = _group_logs(plan, outcome, locations, topics)
    for partition, row in groups:
        log = logs.get((locations.cluster(partition), row["topic"], row["partition"]))
        offset = row["offset"]
        row["lag"] = None if log is None or offset is None else max(log.end_offset - offset, 0)
        # A share group begins where its state says, whatever the log still holds.
        if log is not None and offset is not None and row["type"] != "share":
            findings += log.judge(row)
    transactions = outcome.tables["transactions"]
    producers = _TransactionalProducers(ids, transactions, locations)
    tables = dict(outcome.tables)
    tables["transactions"] = TransactionRows(transactions, producers.columns)
    tables["groups"] = tuple(groups)
    tables["transactional_ids"] = tuple(
        (partition, {**row, "partitions": [f"{topic}-{n}" for topic, n in row["partitions"]]})
        for partition, row in ids
    )
    findings += (producers.update(finding) for finding in outcome.findings)
    return outcome._replace(
        tables=tables, findings=Findings.in_order([_engine.PlacedFindings(findings)])
    )


def _with_share_states(groups: PlacedRows, states: PlacedRows, locations: _Locations) -> PlacedRows:
    """Returns the rows of groups with how far share groups have come.

    The state names a topic by its id; the group's own record has the name.
    """
    known: dict[tuple[Any, ...], tuple[Partition, dict[str, Any]]] = {}
    for partition, row in states:
        place = (locations.cluster(partition), row["group"], row["topic_id"], row["partition"])
        known[place] = partition, row
    found: PlacedRows = []
    for partition, row in groups:
        topic_id = row.get("topic_id")
        place = (locations.cluster(partition), row["group"], topic_id, row["partition"])
        _, state = known.pop(place, (partition, {}))
        found.append((partition, {**UNKNOWN_OF_GROUPS, **state, **row}))
    for partition, state in known.values():
        unnamed = {"type": "share", "topic": state["topic_id"]}
        found.append((partition, {**UNKNOWN_OF_GROUPS, **state, **unnamed}))
    for _, row in found:
        row.pop("topic_id", None)
    return found


class _Locations:
    """Clusters of partitions, and start and end of their logs."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        self._clusters = {
            d.path: cluster_id(d, plan.inventory.files) for d in plan.inventory.log_directories
        }
        self._files = plan.inventory.files
        self._releases: dict[bytes, Releases] = {}
        self._partitions = {partition.directory: partition for partition in plan.partitions}
        self.ends: dict[bytes, tuple[int, int]] = {}
        """Log start and end offset by directory, of every live partition that was read."""
        for partition, row in outcome.tables["metrics"]:
            if partition.state == "live":
                start, end = row["log_start_offset"], row["log_end_offset"]
                known = self.ends.get(partition.directory, (start, end))
                self.ends[partition.directory] = min(known[0], start), max(known[1], end)

    def cluster(self, partition: Partition) -> Cluster:
        """Returns the cluster of a partition, or its log directory."""
        above = os.path.dirname(partition.directory)
        return self._clusters.get(above) or above

    def releases(self, partition: Partition) -> Releases:
        """Returns the releases of Kafka that the broker of a partition may be of."""
        above = os.path.dirname(partition.directory)
        if above not in self._releases:
            self._releases[above] = releases_of(above, self._files)
        return self._releases[above]

    def partition(self, finding: PlacedFinding) -> Partition | None:
        """Returns the partition that a finding is about."""
        return self._partitions.get(finding.directory or b"")

    def latest(self, partitions: Iterable[Partition]) -> dict[Key, Partition]:
        """Returns for each partition the replica with the largest log end offset."""
        latest: dict[Key, Partition] = {}
        for partition in partitions:
            if partition.directory not in self.ends:
                continue
            place = self.cluster(partition), partition.topic, partition.partition
            best = latest.setdefault(place, partition)
            if self.ends[partition.directory][1] > self.ends[best.directory][1]:
                latest[place] = partition
        return latest


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A partition of a coordinators' topic to be read again.

    A request is data, executed by this process or by a task of a cluster.
    """

    topic: str
    segments: tuple[tuple[Place, int | None], ...]
    """The files with their base offsets."""
    log_start_offset: int
    size: int
    """Size of all files in bytes."""

    def rows(self) -> ReadAnswer | None:
        """Returns what the records say; None if a file cannot be read."""
        try:
            return _ENGINES[self.topic](list(self.segments), self.log_start_offset)
        except OSError:
            # There is a finding about the file already.
            return None


_ENGINES: dict[str, Callable[..., ReadAnswer]] = {
    CONSUMER_OFFSETS: _engine.committed_offsets,
    SHARE_GROUP_STATE: _engine.share_group_states,
    TRANSACTION_STATE: _engine.transactional_ids,
}


def _read(
    plan: Plan, locations: _Locations, read: ReadTopics, findings: list[PlacedFinding]
) -> dict[str, list[tuple[Partition, dict[str, Any]]]]:
    """Returns the rows of each topic; adds findings about records that could not be decoded."""
    partitions: list[Partition] = []
    requests: list[ReadRequest] = []
    place = plan.inventory.files.place
    owners = plan.logs.partitions
    for topic in INTERNAL_TOPICS:
        logs: dict[bytes, Log] = {
            partition.directory: log
            for index, partition in enumerate(owners)
            if partition is not None
            and partition.topic == topic
            and (log := plan.logs[index]).is_whole
            and not any(file.fault for file in log.files)
        }
        replicas = (p for log in logs.values() if (p := log.partition))
        for partition in locations.latest(replicas).values():
            files = logs[partition.directory].files
            partitions.append(partition)
            requests.append(
                ReadRequest(
                    topic=topic,
                    segments=tuple(
                        (place(file.path, file.size), file.base_offset) for file in files
                    ),
                    log_start_offset=locations.ends[partition.directory][0],
                    size=sum(file.size for file in files),
                )
            )
    found: dict[str, list[tuple[Partition, dict[str, Any]]]] = {t: [] for t in INTERNAL_TOPICS}
    for partition, request, answer in zip(partitions, requests, read(requests), strict=True):
        if answer is not None:
            rows, undecoded = answer
            found[request.topic] += ((partition, visible_all(row)) for row in rows)
            findings += _undecoded_findings(partition.directory, *undecoded)
    return found


def _undecoded_findings(
    directory: bytes, undecoded: int, first: tuple[int, str] | None, beyond_limit: int
) -> Iterator[PlacedFinding]:
    if undecoded and first is not None:
        offset, fault = first
        yield make_finding(
            "undecoded-record",
            f"{count(undecoded, 'record')} cannot be decoded, the first at offset {offset}:"
            f" {fault}",
            path=directory,
            directory=directory,
            first_offset=offset,
            expected="a record of a known type and version",
            found=fault,
        )
    if beyond_limit:
        message = f"{count(beyond_limit, 'record')} with keys beyond the number that is kept"
        found = make_finding("limit-exceeded", message, path=directory, directory=directory)
        # The log is complete; only the coordinator's state is not.
        yield found._replace(severity="info")


class _GroupLog:
    """A log that groups may read: its offsets, and the findings about them."""

    def __init__(
        self, directory: bytes, ends: tuple[int, int], findings: Sequence[PlacedFinding]
    ) -> None:
        self._directory = directory
        self.start_offset, self.end_offset = ends
        self._findings = [
            (f.name, f.first_offset, f.last_offset, f.next_good_offset)
            for f in findings
            if f.first_offset is not None and f.last_offset is not None
        ]

    def judge(self, row: Mapping[str, Any]) -> Iterator[PlacedFinding]:
        """Yields the finding about a committed offset, if there is one."""
        found = _engine.judge_committed_offset(
            row["group"],
            row["topic"],
            row["partition"],
            row["offset"],
            log_start_offset=self.start_offset,
            log_end_offset=self.end_offset,
            findings=self._findings,
        )
        if found is not None:
            yield place_finding(found, path=self._directory, directory=self._directory)


def _group_logs(
    plan: Plan, outcome: Outcome, locations: _Locations, topics: Collection[str]
) -> dict[Key, _GroupLog]:
    by_directory: dict[bytes, list[PlacedFinding]] = {}
    for finding in outcome.findings:
        if finding.directory is not None:
            by_directory.setdefault(finding.directory, []).append(finding)
    complete = (
        p for p in plan.partitions if p.is_whole and p.state == "live" and p.topic in topics
    )
    return {
        place: _GroupLog(
            partition.directory,
            locations.ends[partition.directory],
            by_directory.get(partition.directory, ()),
        )
        for place, partition in locations.latest(complete).items()
    }


class _TransactionalProducers:
    """What coordinators know of producers with an open transaction."""

    def __init__(
        self,
        ids: Iterable[tuple[Partition, Mapping[str, Any]]],
        transactions: TableRows,
        locations: _Locations,
    ) -> None:
        self._locations = locations
        self._known = {
            (locations.cluster(partition), row["producer_id"]): dict(row) for partition, row in ids
        }
        self._open: dict[tuple[bytes, int | None], Mapping[str, Any]] = {
            (partition.directory, row["producer_id"]): row
            for partition, row in transactions
            if row["state"] in UNENDED
        }

    def columns(self, partition: Partition, row: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the columns of a transaction that depend on its coordinator."""
        known = self._known.get((self._locations.cluster(partition), row["producer_id"]))
        if known is None or row["state"] not in UNENDED:
            return UNKNOWN_TO_COORDINATORS
        is_ongoing = self._is_ongoing(known, row["producer_epoch"], partition)
        return {
            "state": "open" if is_ongoing else "hanging",
            "transactional_id": known["transactional_id"],
            "coordinator_state": known["state"],
        }

    def _is_ongoing(self, known: dict[str, Any], producer_epoch: int, partition: Partition) -> bool:
        standing = _engine.judge_open_transaction(
            known, producer_epoch, partition.topic or "", partition.partition or 0
        )
        return standing == "ongoing"

    def update(self, finding: PlacedFinding) -> PlacedFinding:
        """Returns a finding about an open transaction with the state of its coordinator."""
        partition = self._locations.partition(finding)
        if finding.name != "open-transaction" or partition is None:
            return finding
        known = self._known.get((self._locations.cluster(partition), finding.producer_id))
        row = self._open.get((partition.directory, finding.producer_id))
        if known is None or row is None:
            return finding
        name, releases = known["transactional_id"], self._locations.releases(partition)
        if self._is_ongoing(known, row["producer_epoch"], partition):
            message = (
                f"{finding.message}; transactional id {name} is {known['state']}, with a timeout of"
                f" {duration(known['timeout_ms'])}"
            )
            commands = tuple(force_commands(name, releases))
            return finding._replace(message=message, commands=commands)
        message = (
            f"{finding.message}; nothing will end it: the coordinator has transactional id {name}"
            f" as {known['state']} in epoch {known['producer_epoch']}, without this partition"
        )
        place = {"topic": partition.topic, "partition": partition.partition, "state": "hanging"}
        commands = tuple(transaction_commands({**row, **place}, releases))
        return finding._replace(message=message, severity="warning", commands=commands)

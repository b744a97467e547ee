"""What coordinators keep in topics: committed offsets and transactional ids, held against logs.

`__consumer_offsets` and `__transaction_state` are read a second time after the audit: which of
their records count is known only when every end marker is. Of replicas of a partition the one whose
log ends last counts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.explain import HOST
from ottla.audit.catalogue.findings import by_place, make_finding, place_finding
from ottla.logs.metadata import cluster_id
from ottla.logs.names import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.findings import PlacedFinding
    from ottla.audit.judge.gathered import Outcome, TableRows
    from ottla.audit.plan.plan import Log, Plan
    from ottla.logs.inventory import Partition
    from ottla.storage import Place

    Read: TypeAlias = Callable[[Sequence["ReadRequest"]], Iterable["ReadAnswer | None"]]
    """Carries requests out."""

COORDINATOR_TABLES = ("groups", "transactional_ids")
"""Tables that are filled here."""

NOT_ENDED = ("open", "hanging")
"""States of transactions without an end marker."""

UNKNOWN_TO_COORDINATORS = {"transactional_id": None, "coordinator_state": None}

Rows = list[dict[str, Any]]
LeftOut = tuple[int, tuple[int, str] | None, int]
ReadAnswer = tuple[Rows, LeftOut]
"""What the records of a partition say, and what of them cannot be told."""
Cluster = str | bytes
"""The id of a cluster, or a log directory that does not tell its own."""

Key = tuple[Cluster, str | None, int | None]


def without_coordinators(outcome: Outcome) -> Outcome:
    """The outcome where no topic of the coordinators is read."""
    known = _WithStandings(outcome.tables["transactions"], lambda *_: UNKNOWN_TO_COORDINATORS)
    tables = {**outcome.tables, "transactions": known, "groups": (), "transactional_ids": ()}
    return replace(outcome, tables=tables)


def with_coordinators(plan: Plan, outcome: Outcome, read: Read) -> Outcome:
    """The outcome with the tables and findings of the coordinators' topics, as far as audited.

    `read` carries requests out, and gives their `rows` in order.
    """
    if not any(partition.topic in INTERNAL_TOPICS for partition in plan.partitions):
        return without_coordinators(outcome)
    where = _Where(plan, outcome)
    findings: list[PlacedFinding] = []
    told = _read(plan, where, read, findings)
    groups, ids = told[CONSUMER_OFFSETS], told[TRANSACTION_STATE]
    logs = _logs_of_groups(plan, outcome, where, {row["topic"] for _, row in groups})
    for partition, row in groups:
        log = logs.get((where.cluster(partition), row["topic"], row["partition"]))
        row["lag"] = None if log is None else max(log.end_offset - row["offset"], 0)
        if log is not None:
            findings += log.judge(row)
    transactions = outcome.tables["transactions"]
    standings = _Standings(ids, transactions, where)
    tables = dict(outcome.tables)
    tables["transactions"] = _WithStandings(transactions, standings.of_transaction)
    tables["groups"] = tuple(groups)
    tables["transactional_ids"] = tuple(
        (partition, {**row, "partitions": [f"{topic}-{n}" for topic, n in row["partitions"]]})
        for partition, row in ids
    )
    findings += (standings.about(finding) for finding in outcome.findings)
    findings.sort(key=by_place)
    return replace(outcome, tables=tables, findings=tuple(findings))


class _WithStandings:
    """Transactions with what coordinators know of them, told when they are read."""

    def __init__(
        self,
        transactions: TableRows,
        standing: Callable[[Partition, Mapping[str, Any]], Mapping[str, Any]],
    ) -> None:
        self._transactions = transactions
        self._standing = standing

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[tuple[Partition, Mapping[str, Any]]]:
        for partition, row in self._transactions:
            yield partition, {**row, **self._standing(partition, row)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WithStandings) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class _Where:
    """Where partitions are: their clusters, and the start and end of their logs."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        self._clusters = {
            d.path: cluster_id(d, plan.inventory.files) for d in plan.inventory.log_directories
        }
        self._partitions = {partition.directory: partition for partition in plan.partitions}
        self.ends: dict[bytes, tuple[int, int]] = {}
        """Log start and log end offset by directory, of every live partition that was read."""
        for partition, row in outcome.tables["metrics"]:
            if partition.state == "live":
                start, end = row["log_start_offset"], row["log_end_offset"]
                known = self.ends.get(partition.directory, (start, end))
                self.ends[partition.directory] = min(known[0], start), max(known[1], end)

    def cluster(self, partition: Partition) -> Cluster:
        """The cluster of a partition, or its log directory."""
        above = os.path.dirname(partition.directory)
        return self._clusters.get(above) or above

    def partition(self, finding: PlacedFinding) -> Partition | None:
        """The partition that a finding is about."""
        return self._partitions.get(finding.directory or b"")

    def latest(self, partitions: Iterable[Partition]) -> dict[Key, Partition]:
        """Of each partition the directory whose log ends last."""
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
    """A partition of a coordinators' topic to be read a second time.

    It is data: this process carries it out, or a task of a cluster.
    """

    topic: str
    segments: tuple[tuple[Place, int | None], ...]
    """The files with their base offsets."""
    log_start_offset: int
    size: int
    """Bytes of all files."""

    def rows(self) -> ReadAnswer | None:
        """What the records say, and what of them cannot be told; None if a file cannot be read."""
        try:
            return _ENGINES[self.topic](list(self.segments), self.log_start_offset)
        except OSError:
            # That a file cannot be read is a finding already.
            return None


_ENGINES: dict[str, Callable[..., ReadAnswer]] = {
    CONSUMER_OFFSETS: _engine.committed_offsets,
    TRANSACTION_STATE: _engine.transactional_ids,
}


def _read(
    plan: Plan, where: _Where, read: Read, findings: list[PlacedFinding]
) -> dict[str, list[tuple[Partition, dict[str, Any]]]]:
    """The rows of each topic; adds findings about what could not be decoded."""
    partitions: list[Partition] = []
    requests: list[ReadRequest] = []
    place = plan.inventory.files.place
    for topic in INTERNAL_TOPICS:
        logs: dict[bytes, Log] = {
            log.partition.directory: log
            for log in plan.logs
            if log.partition is not None and log.partition.topic == topic and log.is_whole
        }
        for partition in where.latest(p for log in logs.values() if (p := log.partition)).values():
            files = logs[partition.directory].files
            partitions.append(partition)
            requests.append(
                ReadRequest(
                    topic=topic,
                    segments=tuple(
                        (place(file.path, file.size), file.base_offset) for file in files
                    ),
                    log_start_offset=where.ends[partition.directory][0],
                    size=sum(file.size for file in files),
                )
            )
    found: dict[str, list[tuple[Partition, dict[str, Any]]]] = {t: [] for t in INTERNAL_TOPICS}
    for partition, request, told in zip(partitions, requests, read(requests), strict=True):
        if told is not None:
            rows, left_out = told
            found[request.topic] += ((partition, row) for row in rows)
            findings += _left_out(partition.directory, *left_out)
    return found


def _left_out(
    directory: bytes, undecoded: int, first: tuple[int, str] | None, left_out: int
) -> Iterator[PlacedFinding]:
    if undecoded and first is not None:
        offset, fault = first
        count = "a record" if undecoded == 1 else f"{undecoded} records"
        yield make_finding(
            "undecoded-record",
            f"{count} cannot be decoded, the first at offset {offset}: {fault}",
            path=directory,
            directory=directory,
            first_offset=offset,
            expected="a record of a known type and version",
            found=fault,
        )
    if left_out:
        message = f"{left_out} records are of keys beyond those that are kept"
        found = make_finding("limit-exceeded", message, path=directory, directory=directory)
        # No record of the log was left out, only what a coordinator would know of them.
        yield replace(found, severity="info")


class _LogOfGroups:
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
        """The finding about a committed offset, if it is one."""
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


def _logs_of_groups(
    plan: Plan, outcome: Outcome, where: _Where, topics: Collection[str]
) -> dict[Key, _LogOfGroups]:
    by_directory: dict[bytes, list[PlacedFinding]] = {}
    for finding in outcome.findings:
        if finding.directory is not None:
            by_directory.setdefault(finding.directory, []).append(finding)
    whole = (p for p in plan.partitions if p.is_whole and p.state == "live" and p.topic in topics)
    return {
        place: _LogOfGroups(
            partition.directory,
            where.ends[partition.directory],
            by_directory.get(partition.directory, ()),
        )
        for place, partition in where.latest(whole).items()
    }


class _Standings:
    """What coordinators know of producers with an open transaction."""

    def __init__(
        self,
        ids: Iterable[tuple[Partition, Mapping[str, Any]]],
        transactions: TableRows,
        where: _Where,
    ) -> None:
        self._where = where
        self._known = {
            (where.cluster(partition), row["producer_id"]): dict(row) for partition, row in ids
        }
        self._epochs: dict[tuple[bytes, int | None], int] = {
            (partition.directory, row["producer_id"]): row["producer_epoch"]
            for partition, row in transactions
            if row["state"] in NOT_ENDED
        }

    def of_transaction(self, partition: Partition, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that the coordinator's knowledge of a transaction fills."""
        known = self._known.get((self._where.cluster(partition), row["producer_id"]))
        if known is None or row["state"] not in NOT_ENDED:
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

    def about(self, finding: PlacedFinding) -> PlacedFinding:
        """A finding about an open transaction with what its coordinator knows of it."""
        partition = self._where.partition(finding)
        if finding.name != "open-transaction" or partition is None:
            return finding
        known = self._known.get((self._where.cluster(partition), finding.producer_id))
        producer_epoch = self._epochs.get((partition.directory, finding.producer_id))
        if known is None or producer_epoch is None:
            return finding
        name = known["transactional_id"]
        if self._is_ongoing(known, producer_epoch, partition):
            message = (
                f"{finding.message}; transactional id {name} is {known['state']}, with a timeout of"
                f" {known['timeout_ms']} ms"
            )
            tool = f"kafka-transactions.sh --bootstrap-server {HOST}"
            commands = (
                # Of Kafka 4.1 and later (KIP-939).
                f"{tool} forceTerminateTransaction --transactionalId {shlex.quote(name)}",
                f"{tool} describe --transactional-id {shlex.quote(name)}",
            )
            return replace(finding, message=message, commands=commands)
        message = (
            f"{finding.message}; nobody will end it: the coordinator has transactional id {name} as"
            f" {known['state']} in epoch {known['producer_epoch']}, without this partition"
        )
        return replace(finding, message=message, severity="warning")

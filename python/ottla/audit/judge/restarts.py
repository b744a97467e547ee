"""What the next start of a broker makes of the partitions of an audit.

Only partitions that have a finding are looked at: a log without one opens as it is. So a sound log
costs nothing here, and of a damaged one only what was not flushed is read again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ottla.logs.names import (
    CLUSTER_METADATA,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)
from ottla.logs.recovery import RecoveryPrediction, predict_start
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.findings import Finding
    from ottla.audit.judge.gathered import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition
    from ottla.storage import Files

    Tables = Mapping[str, Iterable[tuple[Partition, Mapping[str, Any]]]]
    Predict: TypeAlias = Callable[[Sequence["StartRequest"]], Iterable[Sequence[Row]]]
    """Carries requests out."""

Kind = Literal["refuses", "put-aside", "ends-early", "cuts", "exposes-aborted", "opens"]

ACTIONS: dict[Kind, str] = {
    "refuses": "Mend the file, or move the directory away: the broker then fetches the partition"
    " from another replica",
    "put-aside": "Write partition.metadata anew (version: 0, topic_id: that of the topic)",
    "ends-early": "Delete the .index of the last segment: the broker builds it anew",
    "cuts": "Copy the directory first",
    "exposes-aborted": "Delete the .index of these segments: the broker builds it anew, and the"
    " .txnindex with it",
    "opens": "Nothing",
}
"""What to do before the start, by what it makes of a partition."""

MARK_MISLEADS = (
    "Delete .kafka_cleanshutdown: the broker then recovers the log, and cuts what cannot be read"
)


@dataclass(frozen=True, slots=True)
class Restart:
    """One start over one partition, as the table `recovery` has it."""

    partition: Partition
    is_next: bool
    """The directory is in the state that leads to this start."""
    outcome: Kind
    offsets_lost: int
    """Offsets at the end of the log that the broker gives out again."""
    action: str
    after: RecoveryPrediction


# A start lists the directory again for every segment, and so does its prediction: with many more
# segments than any broker keeps in a partition it would take hours.
MAX_SEGMENTS = 10_000

# What the records themselves say wrongly, and what producers did, is nothing to a start. A segment
# without its index is read from its beginning: what ends that is a finding of its own.
_NOTHING_TO_A_START = frozenset(
    (
        "epoch-regression",
        "index-missing",
        "open-transaction",
        "sequence-gap",
        "sequence-repeat",
        "timestamp-suspect",
        "unknown-start",
    )
)


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A partition whose next start is to be told, and what that depends on beside its files.

    It is data: a thread carries it out, or a task of a cluster.
    """

    partition: Partition
    name: str
    """Of the directory, as tables show it."""
    end_offset: int | None
    aborted: tuple[tuple[int, int, int], ...]
    needs_topic_id: bool

    def rows(
        self, checkpoints: Checkpoints, files: Files, progress: Callable[[int], bool] | None = None
    ) -> list[Row]:
        """Rows of the table `recovery`.

        Raises:
            AuditCancelledError: `progress` said so.
        """
        partition = self.partition
        place = (self.name, partition.topic, partition.partition)
        if (count := len(partition.segments)) > MAX_SEGMENTS:
            return [(*place, *_unknown(f"{count:,} segments, more than {MAX_SEGMENTS:,}"))]
        try:
            restarts = predict_restarts(
                partition,
                checkpoints,
                end_offset=self.end_offset,
                aborted=self.aborted,
                needs_topic_id=self.needs_topic_id,
                progress=progress,
                files=files,
            )
        except OSError as error:
            return [(*place, *_unknown(error.strerror or str(error)))]
        return [(*place, *_row(restart)) for restart in restarts]


def with_restarts(plan: Plan, outcome: Outcome, predict: Predict) -> Outcome:
    """The outcome with the table `recovery`.

    `predict` carries requests out, and gives their `rows` in order.
    """
    requests = start_requests(plan, outcome.findings, outcome.tables)
    rows = tuple(row for rows in predict(requests) for row in rows)
    return replace(outcome, recovery=rows)


def start_requests(plan: Plan, findings: Iterable[Finding], tables: Tables) -> list[StartRequest]:
    """The partitions of an audit that have a finding, in the order of the plan."""
    partitions = plan.inventory.partitions
    has_ids = {os.path.dirname(p.directory) for p in partitions if _has_topic_id(p)}
    suspects = _suspects(plan, findings, has_ids)
    ends: dict[bytes, int] = {}
    aborted: dict[bytes, list[tuple[int, int, int]]] = {p.directory: [] for p in suspects}
    if suspects:
        for partition, row in tables["metrics"]:
            if partition.directory in aborted:
                ends[partition.directory] = row["log_end_offset"]
        for partition, row in tables["transactions"]:
            if row["state"] == "aborted" and partition.directory in aborted:
                ended = row["producer_id"], row["first_offset"], row["marker_offset"]
                aborted[partition.directory].append(ended)
    return [
        StartRequest(
            partition=partition,
            name=plan.inventory.display(partition.directory),
            end_offset=ends.get(partition.directory),
            aborted=tuple(aborted[partition.directory]),
            needs_topic_id=os.path.dirname(partition.directory) in has_ids,
        )
        for partition in suspects
    ]


def _has_topic_id(partition: Partition) -> bool:
    return PARTITION_METADATA in partition.names


def _suspects(
    plan: Plan, findings: Iterable[Finding], has_ids: Collection[bytes]
) -> list[Partition]:
    """The live partitions with a finding that may be something to a start, or without topic id."""
    places: set[tuple[str, str | None, int | None]] = set()
    for finding in findings:
        if finding.name not in _NOTHING_TO_A_START and finding.file is not None:
            for place in (finding.file, os.path.dirname(finding.file)):
                places.add((place, finding.topic, finding.partition))
    suspects = []
    for partition in plan.partitions:
        named = partition.topic, partition.partition
        above, _ = os.path.split(partition.directory)
        if partition.state != "live" or not partition.is_whole:
            continue
        # A finding in the log directory above names the partition; one beside it need not.
        is_found = places and any(
            (plan.inventory.display(path), *named) in places
            for path in (partition.directory, above)
        )
        is_suspect = is_found or (above in has_ids and not _has_topic_id(partition))
        if is_suspect and partition.segments:
            suspects.append(partition)
    return suspects


def _row(restart: Restart) -> Row:
    after = restart.after
    return (
        "clean" if after.clean else "unclean",
        restart.is_next,
        restart.outcome,
        after.opens,
        after.error,
        after.message,
        after.log_start_offset,
        after.log_end_offset,
        restart.offsets_lost,
        after.bytes_cut if after.opens else None,
        after.segments_deleted if after.opens else None,
        len(after.exposed),
        restart.action,
    )


def _unknown(reason: str) -> Row:
    row: list[Any] = [None] * 13
    row[5] = f"cannot be told: {reason}"
    return tuple(row)


def predict_restarts(
    partition: Partition,
    checkpoints: Checkpoints,
    *,
    end_offset: int | None,
    aborted: Sequence[tuple[int, int, int]],
    needs_topic_id: bool = True,
    progress: Callable[[int], bool] | None = None,
    files: Files = ANYWHERE,
) -> list[Restart]:
    """The next start over a partition, first, and the one after the other kind of stop.

    Args:
        partition: a whole one.
        checkpoints: of the log directory above it.
        end_offset: where its log ends by its batches.
        aborted: its aborted transactions.
        needs_topic_id: brokers before 2.8 wrote no `partition.metadata` and miss none.
        progress: called with the bytes read; stops by returning false.
        files: where the partition is read.

    Raises:
        OSError: a file cannot be read.
        AuditCancelledError: `progress` said so.
    """
    # The log of the quorum is recovered whole at every start (`KafkaRaftLog`).
    is_quorum = partition.topic == CLUSTER_METADATA
    next_is_clean = partition.stopped_cleanly and not is_quorum
    point = 0 if is_quorum else checkpoints.offset(partition, RECOVERY_POINTS) or 0
    starts = {
        clean: predict_start(
            partition.directory,
            clean=clean,
            recovery_point=point,
            log_start_offset=checkpoints.offset(partition, LOG_START_OFFSETS) or 0,
            aborted=aborted,
            progress=progress,
            files=files,
        )
        for clean in (next_is_clean, not next_is_clean)
    }
    return [
        _restart(
            partition,
            starts,
            clean,
            is_next=clean == next_is_clean,
            end_offset=end_offset,
            needs_topic_id=needs_topic_id,
        )
        for clean in starts
        if clean == next_is_clean or not is_quorum
    ]


def _restart(
    partition: Partition,
    starts: Mapping[bool, RecoveryPrediction],
    clean: bool,
    *,
    is_next: bool,
    end_offset: int | None,
    needs_topic_id: bool,
) -> Restart:
    after = starts[clean]
    lost = 0
    if after.log_end_offset is not None and end_offset is not None:
        lost = max(0, end_offset - after.log_end_offset)
    outcome: Kind = "opens"
    if not after.opens:
        outcome = "refuses"
    elif after.is_stray and needs_topic_id:
        outcome = "put-aside"
    elif lost:
        outcome = "cuts" if after.bytes_cut else "ends-early"
    elif after.exposed:
        outcome = "exposes-aborted"
    action = ACTIONS[outcome]
    if outcome == "refuses" and clean and starts[False].opens:
        action = MARK_MISLEADS
    return Restart(
        partition=partition,
        is_next=is_next,
        outcome=outcome,
        offsets_lost=lost,
        action=action,
        after=after,
    )

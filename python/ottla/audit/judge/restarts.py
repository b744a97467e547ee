"""Predicts what the next start of a broker does to the partitions of an audit.

Only partitions with a finding are considered: a log without one opens unchanged. So a valid log
costs nothing here, and of a damaged one, only what was not flushed is read again.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.audit.judge.packed import rows_about
from ottla.audit.judge.suspects import has_topic_id, suspects_of
from ottla.logs.names import LOG_START_OFFSETS, RECOVERY_POINTS, display
from ottla.logs.packed import PackedRows
from ottla.logs.recovery import places_of, predict_starts
from ottla.storage import ANYWHERE
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.catalogue.findings import Findings
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition
    from ottla.logs.recovery import Start
    from ottla.storage import Files

    Tables = Mapping[str, Iterable[tuple[Partition, Mapping[str, Any]]]]
    Predict: TypeAlias = Callable[[Sequence["StartRequest"]], Iterable[Sequence[Row]]]
    """Runs requests."""

# A start lists the directory again for every segment, and so does its prediction: with many more
# segments than any broker has in a partition, it would take hours.
MAX_SEGMENTS = 10_000


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A partition whose next start is to be predicted, and what that depends on besides its files.

    A request is data, executed by a thread of this process or by a task of a cluster.
    """

    partition: Partition
    name: str
    """Name of the directory in tables."""
    end_offset: int | None
    aborted: PackedRows[tuple[int, int, int]]
    needs_topic_id: bool

    def rows(
        self, checkpoints: Checkpoints, files: Files, progress: Callable[[int], bool] | None = None
    ) -> list[Row]:
        """Returns rows of the table `recovery`.

        Raises:
            AuditCancelledError: `progress` returned false.
        """
        partition = self.partition
        place = (self.name, partition.topic, partition.partition)
        if (count := len(partition.segments)) > MAX_SEGMENTS:
            return [(*place, *_unknown_row(f"{count:,} segments, more than {MAX_SEGMENTS:,}"))]
        try:
            starts = predict_restarts(
                partition,
                checkpoints,
                end_offset=self.end_offset,
                aborted=self.aborted,
                needs_topic_id=self.needs_topic_id,
                progress=progress,
                files=files,
            )
        except OSError as error:
            return [(*place, *_unknown_row(error.strerror or str(error)))]
        return [(*place, *_row(start)) for start in starts]


def with_restarts(plan: Plan, outcome: Outcome, predict: Predict) -> Outcome:
    """Returns the outcome with the table `recovery`.

    `predict` runs requests, and returns their `rows` in order.
    """
    requests = start_requests(plan, outcome.findings, outcome.tables)
    rows = tuple(row for rows in predict(requests) for row in rows)
    return outcome._replace(recovery=rows)


def start_requests(plan: Plan, findings: Findings, tables: Tables) -> list[StartRequest]:
    """Returns requests for the partitions with a finding, in the order of the plan."""
    partitions = plan.inventory.partitions
    has_ids = {os.path.dirname(p.directory) for p in partitions if has_topic_id(p)}
    suspects = suspects_of(plan, findings, has_ids)
    ends: dict[bytes, int] = {}
    aborted = {p.directory: array("q") for p in suspects}
    if suspects:
        for partition, row in rows_about(tables["metrics"], aborted):
            ends[partition.directory] = row["log_end_offset"]
        for partition, row in rows_about(tables["transactions"], aborted):
            if row["state"] == "aborted":
                ended = row["producer_id"], row["first_offset"], row["marker_offset"]
                aborted[partition.directory].extend(ended)
    return [
        StartRequest(
            partition=partition,
            name=plan.inventory.display(partition.directory),
            end_offset=ends.get(partition.directory),
            aborted=PackedRows(aborted[partition.directory].tobytes()),
            needs_topic_id=os.path.dirname(partition.directory) in has_ids,
        )
        for partition in suspects
    ]


def _row(start: Start) -> Row:
    after = start.predicted
    opens = after.error is None
    left = {file for file, _ in after.segments}
    deleted = tuple(display(file) for file, _ in after.bytes_before if file not in left)
    return (
        "clean" if start.clean else "unclean",
        start.is_next,
        start.outcome,
        opens,
        after.error,
        None if after.message is None else visible(after.message),
        after.log_start_offset if opens else None,
        after.log_end_offset if opens else None,
        start.offsets_lost,
        after.bytes_cut if opens else None,
        deleted if opens else None,
        len(PackedRows(after.exposed)),
        start.action,
    )


def _unknown_row(reason: str) -> Row:
    row: list[Any] = [None] * 13
    row[5] = f"cannot be predicted: {reason}"
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
) -> list[Start]:
    """Predicts the next start over a partition, then the one after the other kind of shutdown.

    Args:
        partition: a complete partition.
        checkpoints: the checkpoints of the log directory above it.
        end_offset: end of its log by its batches.
        aborted: its aborted transactions.
        needs_topic_id: whether the broker requires a `partition.metadata`, as since 2.8.
        progress: called with the bytes read; returns false to stop.
        files: the files to read the partition from.

    Raises:
        OSError: a file cannot be read.
        AuditCancelledError: `progress` returned false.
    """
    return predict_starts(
        partition.directory,
        stopped_cleanly=partition.stopped_cleanly,
        recovery_point=checkpoints.offset(partition, RECOVERY_POINTS),
        log_start_offset=checkpoints.offset(partition, LOG_START_OFFSETS),
        log_end_offset=end_offset,
        needs_topic_id=needs_topic_id,
        aborted=aborted,
        progress=progress,
        places=places_of(partition, files),
    )

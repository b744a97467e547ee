"""A partition's directory loaded by a data plane, in the words of a predicted start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import ottla
from ottla._engine import DataPlane

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.logs.recovery import RecoveryPrediction

NO_TOPIC_ID = bytes(16)
# Before all records: no producer has been idle for long.
NOW_MS = 0


class Log(NamedTuple):
    """What is loaded, or predicted to be."""

    log_start_offset: int | None
    log_end_offset: int | None
    first_undecided_offset: int | None
    segments: dict[str, int]
    producers: list[tuple[int | None, ...]]
    leader_epochs: set[tuple[int, int]]
    files: set[str]


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def load(directory: Path, **options: Any) -> tuple[DataPlane, int]:
    """Open a directory."""
    topic, _, partition = directory.name.rpartition("-")
    plane = DataPlane()
    options = {"now_ms": NOW_MS, **options}
    topic_id = options.pop("topic_id", NO_TOPIC_ID)
    handle = plane.open(topic, topic_id, int(partition), directory=directory, **options)
    return plane, handle


def loaded(directory: Path, plane: DataPlane, handle: int) -> Log:
    """What a plane has loaded from a directory, and left in it."""
    start, _, _, end = plane.offsets(handle)
    producers = plane.producers(handle)
    open_transactions = [
        producer.transaction_first_offset
        for producer in producers
        if producer.transaction_first_offset is not None
    ]
    text = (directory / "leader-epoch-checkpoint").read_text()
    return Log(
        log_start_offset=start,
        log_end_offset=end,
        first_undecided_offset=min(open_transactions, default=None),
        segments={f"{base:020}.log": size for base, size in plane.segments(handle)},
        producers=sorted(
            (
                producer.producer_id,
                producer.producer_epoch,
                producer.last_sequence,
                producer.batches[-1].last_offset if producer.batches else -1,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
            for producer in producers
        ),
        leader_epochs={
            (int(epoch), int(start)) for epoch, start in map(str.split, text.splitlines()[2:])
        },
        files=names_in(directory),
    )


def predicted(directory: Path, after: RecoveryPrediction) -> Log:
    """What is predicted of a directory, which is as it was."""
    files = names_in(directory) - set(after.files_deleted) | set(after.files_created)
    return Log(
        log_start_offset=after.log_start_offset,
        log_end_offset=after.log_end_offset,
        first_undecided_offset=after.first_undecided_offset,
        segments=dict(after.segments),
        producers=[
            (
                p.producer_id,
                p.producer_epoch,
                p.last_sequence,
                p.last_offset,
                p.coordinator_epoch,
                p.transaction_first_offset,
            )
            for p in after.producers
        ],
        # Where none is known, the epoch of this leader begins.
        leader_epochs=set(after.leader_epochs) or {(0, after.log_end_offset or 0)},
        files=files,
    )


def predict_end(directory: Path, after: RecoveryPrediction, log_start: int) -> RecoveryPrediction:
    """The start that recovers the last segment of what is left after another."""
    last = max(int(name.partition(".")[0]) for name in after.segments)
    return ottla.predict_recovery(
        directory, clean=False, recovery_point=last, log_start_offset=log_start
    )

"""Judges the scanned files of a log together: sequences, transactions and gaps across files.

`judge_log` is a function of the scans and of the small files beside the segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.audit.judge import side_files
from ottla.audit.judge.bound import bounded
from ottla.audit.judge.merge import merge_request
from ottla.logs.live import has_grown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ottla.audit.judge.context import Surroundings
    from ottla.audit.plan.logs import Log
    from ottla.logs.inventory import Inventory

    Scans: TypeAlias = Mapping[int, _engine.SegmentScan]
    """Scans of the files of a log, by index."""


class JudgedLog(NamedTuple):
    """The result of judging the files of a log; small and picklable."""

    packed: _engine.PackedLog
    findings: tuple[_engine.PlacedFindings, ...]
    reasons: Mapping[bytes, str]
    """Why a file is not a log, by path."""
    has_small_files: bool
    """Whether the text files of the partition were read."""
    topic_id: str | None
    end_offset: int | None
    """Where the log ends, if every segment was read."""


def judge_log(
    log: Log, scans: Scans, inventory: Inventory, surroundings: Surroundings
) -> tuple[JudgedLog, _engine.PartitionScan | None]:
    """Judges the scans of a log's files: sequences, transactions and gaps across files.

    Also returns the engine's state if every file was scanned, which is needed to compare copies. Of
    the inventory, only names and the files to read are used.
    """
    partition = log.partition
    small = None
    if log.is_live and partition is not None:
        small = side_files.read_small_files(partition, inventory)
    epochs = (small and small.leader_epochs) or ()
    findings: list[_engine.PlacedFindings] = []
    adding: list[_engine.PartitionScan] = []
    """Those that add rows to tables."""
    merged = None
    beside = log.beside
    reasons = _other_files(log, scans)
    logs = {number: scan for number, scan in scans.items() if log.files[number].path not in reasons}
    for run in _consecutive_runs(len(log.files), logs):
        request = merge_request(
            log,
            run,
            beside=beside,
            leader_epochs=epochs,
            surroundings=surroundings,
            files=inventory.files,
        )
        merged = request.merge([(index, scans[index]) for index in run])
        ahead = request.knows_beyond(merged.log_end_offset)
        if ahead and partition is not None and has_grown(partition, inventory.files):
            merged = request.without_ends().merge([(index, scans[index]) for index in run])
        paths = [file.path for file in log.files]
        findings.append(merged.placed(paths, partition and partition.directory))
        first = log.files[run[0]]
        if first.kind == "segment" and first.state == "live":
            adding.append(merged)
    is_read = len(scans) == len(log.files)
    end_offset = merged.log_end_offset if merged and log.is_whole and is_read else None
    if partition is not None and partition.is_whole and small is not None:
        of_small = bounded(side_files.check_partition(partition, end_offset, small))
        findings.append(_engine.PlacedFindings([*of_small]))
    judged = JudgedLog(
        packed=_engine.PackedLog([(number, scans[number]) for number in sorted(scans)], adding),
        findings=tuple(filter(None, findings)),
        reasons=reasons,
        has_small_files=small is not None,
        topic_id=None if small is None else small.topic_id,
        end_offset=end_offset,
    )
    return judged, merged if is_read else None


def _other_files(log: Log, scans: Scans) -> dict[bytes, str]:
    """Returns files of another kind, given by mistake, and the reason they are not logs."""
    return {
        log.files[index].path: f"not a log: no record batch in its {scan.bytes:,} bytes"
        for index, scan in scans.items()
        if log.files[index].base_offset is None and not scan.batches
    }


def _consecutive_runs(count: int, scans: Scans) -> Iterable[Sequence[int]]:
    """Yields scanned files in runs without an unread one between, whose offsets are not missing."""
    run: list[int] = []
    for index in range(count):
        if index in scans:
            run.append(index)
        elif run:
            yield run
            run = []
    if run:
        yield run

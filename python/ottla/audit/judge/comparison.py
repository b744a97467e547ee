"""Compares the copies of a partition."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.findings import UNREADABLE, make_finding, place_finding
from ottla.logs.names import HIGH_WATERMARKS, display

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.plan.copies import Copies
    from ottla.audit.plan.logs import Log
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.inventory import Inventory, Partition

DifferenceRow = dict[str, Any]


class Comparison:
    """Compares copies once the last of them is scanned; safe to share between threads."""

    def __init__(
        self,
        inventory: Inventory,
        copies: Sequence[Copies],
        checkpoints: Checkpoints,
        progress: Callable[[int], bool],
    ) -> None:
        """`progress` is called with the bytes to be read again; it returns false to stop."""
        self.rows: list[tuple[bytes, DifferenceRow]] = []
        """Rows of `differences`, each with the directory of the first copy."""
        self.findings: list[PlacedFinding] = []
        self._inventory = inventory
        self._checkpoints = checkpoints
        self._progress = progress
        self._lock = threading.Lock()
        self._groups = {p.directory: group for group in copies for p in group.partitions}
        self._pending = {id(group): len(group.partitions) for group in copies}
        self._scanned: dict[bytes, tuple[Log, _engine.Copy]] = {}

    def wants(self, log: Log) -> bool:
        """Whether a log is to be compared: the complete log of a partition with copies."""
        return log.is_whole and log.partition is not None and self.has(log.partition)

    def has(self, partition: Partition) -> bool:
        """Whether a partition has copies."""
        return bool(self._groups) and partition.directory in self._groups

    def add(self, log: Log, scan: _engine.PartitionScan | None) -> None:
        """Adds the scan of all segments of a log, None if some could not be read."""
        partition = log.partition
        if partition is None:
            return
        group = self._groups[partition.directory]
        copy = None if scan is None else self._copy(partition, scan)
        with self._lock:
            if copy is not None:
                self._scanned[partition.directory] = log, copy
            self._pending[id(group)] -= 1
            if self._pending[id(group)]:
                return
        self._compare(group)

    def finish(self) -> None:
        """Compares the scanned copies of partitions of which some copy was not scanned."""
        for group in {id(group): group for group in self._groups.values()}.values():
            if self._pending[id(group)]:
                self._compare(group)

    def _copy(self, partition: Partition, scan: _engine.PartitionScan) -> _engine.Copy:
        high_watermark = self._checkpoints.offset(partition, HIGH_WATERMARKS)
        return _engine.Copy(scan, high_watermark=high_watermark)

    def _compare(self, group: Copies) -> None:
        with self._lock:
            scanned = [
                (name, *self._scanned.pop(copy.directory))
                for name, copy in zip(group.names, group.partitions, strict=True)
                if copy.directory in self._scanned
            ]
        if len(scanned) <= 1:
            return
        partition = group.partitions[0]
        rows, findings = self._differences_of(partition, scanned)
        with self._lock:
            self.rows += ((partition.directory, row) for row in rows)
            self.findings += findings

    def _differences_of(
        self, partition: Partition, scanned: Sequence[tuple[str, Log, _engine.Copy]]
    ) -> tuple[list[DifferenceRow], list[PlacedFinding]]:
        place = self._inventory.files.place
        copies = [
            (name, copy, [place(file.path, file.size) for file in log.files])
            for name, log, copy in scanned
        ]
        try:
            differences, found = _engine.compare_copies(copies, progress=self._progress)
        except OSError as error:
            directory = partition.directory
            message = f"the copies could not be compared: {error}"
            return [], [make_finding(UNREADABLE, message, path=directory, directory=directory)]
        logs = {name: log for name, log, _ in scanned}
        rows = [_row(difference, logs) for difference in differences]
        return rows, [_place_finding(finding, rows, logs[finding.replica]) for finding in found]


def _row(difference: _engine.Difference, logs: Mapping[str, Log]) -> DifferenceRow:
    """Returns the row of the table `differences`; its files are paths."""
    segments = zip(difference.replicas, difference.segments, strict=True)
    return {
        "kind": difference.kind,
        "severity": difference.severity,
        "first_offset": difference.first_offset,
        "last_offset": difference.last_offset,
        "good_replicas": difference.good_replicas,
        "bad_replicas": difference.bad_replicas,
        "only_replica": difference.only_replica,
        "replicas": difference.replicas,
        "files": [
            None if index is None else logs[name].files[index].path for name, index in segments
        ],
        "positions": difference.positions,
        "sizes": difference.sizes,
        "batches": difference.batches,
        "records": difference.records,
        "leader_epochs": difference.leader_epochs,
        "action": difference.action,
        "message": difference.message,
        "commands": _commands(difference, logs),
    }


def _place_finding(
    copy_finding: _engine.CopyFinding, rows: Sequence[DifferenceRow], log: Log
) -> PlacedFinding:
    return place_finding(
        copy_finding.finding,
        path=log.files[copy_finding.segment].path,
        directory=log.partition.directory if log.partition else None,
        replica=copy_finding.replica,
        good_replicas=tuple(copy_finding.good_replicas),
        commands=tuple(rows[copy_finding.difference]["commands"]),
    )


def _commands(difference: _engine.Difference, logs: Mapping[str, Log]) -> list[str]:
    """Returns the command that saves records which only one copy has."""
    only = difference.only_replica
    partition = None if only is None else logs[only].partition
    if partition is None:
        return []
    import shlex

    directory = shlex.quote(display(partition.directory))
    first, end = difference.first_offset, difference.last_offset + 1
    # One file each: a shell overwrites what is there.
    target = shlex.quote(f"{display(os.path.basename(partition.directory))}-from-{first}.jsonl")
    return [f"ottla read {directory} --from {first} --to {end} --format jsonl > {target}"]

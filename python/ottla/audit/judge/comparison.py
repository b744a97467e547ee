"""What comparing the copies of a partition shows."""

from __future__ import annotations

import shlex
import threading
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.findings import UNREADABLE, Finding, from_engine
from ottla.logs.names import HIGH_WATERMARKS, display

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.audit.plan.copies import Copies
    from ottla.audit.plan.plan import Log
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.inventory import Inventory, Partition

Row = dict[str, Any]


class Comparison:
    """Compares copies as soon as the last of them is scanned; threads may share it."""

    def __init__(
        self,
        inventory: Inventory,
        copies: Sequence[Copies],
        checkpoints: Checkpoints,
        progress: Callable[[int], bool],
    ) -> None:
        """`progress` is called before something is read again, with its bytes; False stops."""
        self.rows: list[tuple[bytes, Row]] = []
        """Of the table `differences`, each with the directory of the first copy."""
        self.findings: list[Finding] = []
        self._inventory = inventory
        self._checkpoints = checkpoints
        self._progress = progress
        self._lock = threading.Lock()
        self._groups = {p.directory: group for group in copies for p in group.partitions}
        self._pending = {id(group): len(group.partitions) for group in copies}
        self._scanned: dict[bytes, tuple[Log, Any]] = {}

    def wants(self, log: Log) -> bool:
        """Whether a log is to be compared: the whole one of a partition that has copies."""
        partition = log.partition if log.is_whole else None
        return partition is not None and partition.directory in self._groups

    def add(self, log: Log, scan: Any | None) -> None:
        """Takes the scan of all segments of a log, None when some could not be read."""
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
        """Compares what there is of those of which some copy was not scanned."""
        for group in {id(group): group for group in self._groups.values()}.values():
            if self._pending[id(group)]:
                self._compare(group)

    def _copy(self, partition: Partition, scan: Any) -> Any:
        high_watermark = self._checkpoints.offset(partition, HIGH_WATERMARKS)
        return _engine.Copy(scan, high_watermark=high_watermark)

    def _compare(self, group: Copies) -> None:
        with self._lock:
            there = [
                (name, *self._scanned.pop(copy.directory))
                for name, copy in zip(group.names, group.partitions, strict=True)
                if copy.directory in self._scanned
            ]
        if len(there) <= 1:
            return
        partition = group.partitions[0]
        rows, findings = self._compared(partition, there)
        with self._lock:
            self.rows += ((partition.directory, row) for row in rows)
            self.findings += findings

    def _compared(
        self,
        partition: Partition,
        there: Sequence[tuple[str, Log, Any]],
    ) -> tuple[list[Row], list[Finding]]:
        display, place = self._inventory.display, self._inventory.files.place
        arguments = [
            (name, copy, [(place(f.path, f.size), display(f.path)) for f in log.files])
            for name, log, copy in there
        ]
        try:
            rows, findings = _engine.compare_copies(arguments, progress=self._progress)
        except OSError as error:
            failure = Finding(
                name=UNREADABLE,
                severity="error",
                file=display(partition.directory),
                topic=partition.topic,
                partition=partition.partition,
                message=f"the copies could not be compared: {error}",
            )
            return [], [failure]
        directories = {
            name: log.partition.directory for name, log, _ in there if log.partition is not None
        }
        for row in rows:
            row["commands"] = _commands(row, directories)
        return rows, [
            from_engine(
                finding,
                file=finding["file"],
                topic=partition.topic,
                partition=partition.partition,
                commands=tuple(rows[finding["difference"]]["commands"]),
            )
            for finding in findings
        ]


def _commands(row: Row, directories: Mapping[str, bytes]) -> list[str]:
    """Saves the records that only one copy has."""
    only = row["only_replica"]
    if only is None:
        return []
    directory = shlex.quote(display(directories[only]))
    return [
        (
            f"ottla read {directory} --from {row['first_offset']} --to {row['last_offset'] + 1}"
            " --format jsonl > saved.jsonl"
        )
    ]

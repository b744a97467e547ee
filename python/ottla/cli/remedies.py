"""What to do about a finding where its place in the log decides, not its name alone.

The catalogue's sentence is for all cases of a name. Here the case at hand is known: whether its
segment is the active one, what the next start makes of its partition, which deed was tried, and
whether anything is lost at all.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ottla.audit.catalogue.explain import offset_after
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.cli.copies import Copies
from ottla.cli.leftovers import Leftovers
from ottla.logs.names import LOG_START_OFFSETS, classify, display
from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit import AuditResult
    from ottla.audit.advice.deed import Deed

TAILS = ("truncated-tail", "garbage-tail", "zero-tail")
"""Bytes at the end of a segment that are no batch."""

UNREADABLE_BATCHES = ("crc-mismatch", "damaged-range", "magic-fault", "undecodable", "record-fault")
"""Bytes at which a consumer stops."""

DERIVED = ("index-mismatch", "timeindex-mismatch", "txnindex-mismatch", "snapshot-mismatch")
"""Wrong files that a start can make anew from the segments."""

SEE_NEXT_START = "See the next start above."

RESTORE = "Restore the partition from a replica that is sound here."

HARMLESS = ("opens", "exposes-aborted")
"""Outcomes of a start that take no record."""

FILES_SHOWN = 3


class Remedies:
    """What to do about each finding of a result."""

    def __init__(self, result: AuditResult) -> None:
        self._next: dict[str, Mapping[str, Any]] = {}
        self._other: dict[str, Mapping[str, Any]] = {}
        for row in result.recovery:
            (self._next if row["is_next"] else self._other)[row["directory"]] = row
        self._deeds: dict[str, list[Deed]] = {}
        for deed in result.advice:
            self._deeds.setdefault(deed.log_directory, []).append(deed)
        self._base = result.directory
        self._copies = Copies(result)
        self.leftovers = Leftovers(result)
        self._segments = result.finding_segments
        self._gaps: dict[str, list[str]] = {}
        """The segments of each directory before which offsets are missing."""
        for finding in result.findings:
            if (
                finding["name"] in ("missing-segment", "offset-gap")
                and finding["severity"] != "info"
            ):
                directory, name = os.path.split(finding["file"])
                self._gaps.setdefault(directory, []).append(name)

    def of_all(self, findings: Sequence[Mapping[str, Any]]) -> list[str]:
        """What to do about findings of one name, each sentence once; none where the name says it.

        One that is not decided by its place has them all told by the name.
        """
        found = [self.of(finding, is_alone=len(findings) == 1) for finding in findings]
        return list(dict.fromkeys(text for text in found if text)) if all(found) else []

    def of(self, finding: Mapping[str, Any], *, is_alone: bool = True) -> str | None:
        """What to do; None where the name of the finding says it all."""
        if finding["name"] == UNREADABLE:
            return _unread(finding)
        if finding["file"] is None:
            return None
        if remedy := self.leftovers.remedy(finding):
            return remedy
        if finding["topic"] is None:
            is_tail = finding["name"] in TAILS and is_unbounded(finding)
            return _compared(is_cut=True) if is_tail else None
        if finding["name"] == "open-transaction":
            return _transaction(finding)
        if finding["name"] == "checkpoint-mismatch" and finding["first_offset"] is not None:
            return self._checkpoint(finding)
        directory, _ = os.path.split(finding["file"])
        name = finding["name"]
        start = self._next.get(directory)
        if start is None or start["outcome"] is None:
            return self._tail(finding, None, is_alone=is_alone) if name in TAILS else None
        if name in DERIVED:
            return self._derived(finding)
        if name in TAILS:
            return self._tail(finding, start, is_alone=is_alone)
        if name in UNREADABLE_BATCHES:
            return self._unreadable(finding, start, is_alone=is_alone)
        if name in ("epoch-checkpoint-mismatch", "transaction-fault"):
            return self._as_it_starts(finding, start, is_alone=is_alone)
        return None

    def _derived(self, finding: Mapping[str, Any]) -> str:
        directory, file = os.path.split(finding["file"])
        above, inside = os.path.split(os.path.join(self._base, directory))
        is_snapshot = classify(os.fsencode(file))[0] == "producer-snapshot"
        nothing = None
        for deed in sorted(self._deeds.get(above, ()), key=lambda deed: len(deed.operations)):
            prices = [p for p in deed.partitions if f"{p.topic}-{p.partition}" == inside]
            nothing = nothing or deed
            if not any(file in price.side_files_mended for price in prices):
                continue
            if not deed.operations:
                does = "deletes it and reads the log instead" if is_snapshot else "makes it anew"
                return f"Nothing: the next start {does}."
            if any(nothing.cost.expected):
                return SEE_NEXT_START
            paths = [o.path for o in deed.operations if o.path.startswith(f"{inside}/")]
            names = listed([os.path.basename(path) for path in paths], FILES_SHOWN)
            anew = "reads the log instead" if is_snapshot else "makes the file anew from the log"
            return (
                f"Delete {names} while the broker is stopped: the next start {anew}. This was"
                " tried: no readable record is lost, and no producer is forgotten."
            )
        if is_snapshot:
            return (
                "Do not delete it: the next start would then forget producers with their open"
                " transactions, or cut off records. Stop the broker, and replace the file by the"
                " one that ottla rebuild writes."
            )
        return (
            "Leave the file as it is: without it the next start would read the segment from its"
            " beginning, and cut off records that can be read, or give up. Restore the partition"
            " from another replica first."
        )

    def _checkpoint(self, finding: Mapping[str, Any]) -> str | None:
        """What to do where a log ends before an offset that its broker has noted."""
        above, file = os.path.split(finding["file"])
        partition = f"{finding['topic']}-{finding['partition']}"
        if file == display(LOG_START_OFFSETS):
            return (
                f"The next start deletes every segment of {partition}: stop the broker and copy"
                " the directory first."
            )
        place = finding["topic"], finding["partition"], finding["first_offset"]
        cure = self._copies.cure(os.path.join(above, partition), *place)
        if cure is None:
            return None
        return " ".join(line for line in cure.lines if not line.startswith("$"))

    def _tail(
        self, finding: Mapping[str, Any], start: Mapping[str, Any] | None, *, is_alone: bool
    ) -> str | None:
        directory, file = os.path.split(finding["file"])
        if start is not None and start["outcome"] not in HARMLESS:
            return SEE_NEXT_START
        if file == max(self._segments.get(directory, ()), default=file):
            return self._tail_of_log(finding, start)
        lost = finding["first_offset"] is not None or self._lacks_offsets_behind(directory, file)
        first = self.cure(finding) or (RESTORE if lost else "No record is lost by these bytes.")
        return " ".join([first, *self._other_start(directory, is_alone=is_alone)])

    def _tail_of_log(
        self, finding: Mapping[str, Any], start: Mapping[str, Any] | None
    ) -> str | None:
        # That the start takes no record is no comfort where records are gone already.
        if is_unbounded(finding) or is_without_batch(finding):
            is_cut = start is None or start["bytes_cut"] > 0
            return self.cure(finding) or _compared(is_cut=is_cut)
        if finding["severity"] == "error" or start is None:
            return None
        if start["stop"] == "clean":
            return "Nothing: the next start opens the log, and no record in it is lost."
        return "Nothing: the next start cuts these bytes off, and no record in front of them."

    def _lacks_offsets_behind(self, directory: str, file: str) -> bool:
        """Whether offsets are missing between a segment and the next one."""
        behind = [name for name in self._gaps.get(directory, ()) if name > file]
        between = (name for name in self._segments.get(directory, ()) if name > file)
        return bool(behind) and min(behind) == min(between, default=None)

    def _unreadable(
        self, finding: Mapping[str, Any], start: Mapping[str, Any], *, is_alone: bool
    ) -> str:
        if cure := self.cure(finding):
            return cure
        parts = [RESTORE]
        if finding["first_offset"] is None and finding["name"] == "damaged-range":
            parts.insert(0, "No record is lost: these bytes are between two batches.")
        if is_alone and (offset := offset_after(finding)) is not None:
            page = f"`ottla explain {finding['name']}`"
            parts.append(f"Without one, consumers go on at offset {offset}: see {page}.")
        directory, _ = os.path.split(finding["file"])
        if start["outcome"] in HARMLESS:
            parts += self._other_start(directory, is_alone=is_alone)
        else:
            parts.append(SEE_NEXT_START)
        return " ".join(parts)

    def _as_it_starts(
        self, finding: Mapping[str, Any], start: Mapping[str, Any], *, is_alone: bool
    ) -> str | None:
        if start["outcome"] not in HARMLESS:
            return SEE_NEXT_START
        if finding["name"] == "epoch-checkpoint-mismatch":
            return (
                "Stop the broker, and replace leader-epoch-checkpoint by the one that ottla rebuild"
                " writes: followers truncate their logs by it. The next start opens the log even"
                " so."
            )
        directory, _ = os.path.split(finding["file"])
        after = self._other_start(directory, is_alone=is_alone)
        compare = "Compare the batch with another replica; the next start opens the log as it is."
        return " ".join([compare, *after])

    def cure(self, finding: Mapping[str, Any]) -> str | None:
        """How to take the records from a copy that has them, where one is known."""
        lines = self._cure_lines(finding)
        return " ".join(line for line in lines if not line.startswith("$")) or None

    def commands_of(self, finding: Mapping[str, Any]) -> list[str]:
        """Commands of the remedy."""
        if commands := self.leftovers.commands(finding):
            return commands
        if finding["file"] is None or finding["name"] not in (*TAILS, *UNREADABLE_BATCHES):
            return []
        lines = self._cure_lines(finding)
        return [line.removeprefix("$ ") for line in lines if line.startswith("$")]

    def _cure_lines(self, finding: Mapping[str, Any]) -> list[str]:
        if finding["first_offset"] is None:
            return []
        topic, partition = finding["topic"], finding["partition"]
        directory, name = os.path.split(finding["file"])
        if name.endswith("-offset-checkpoint"):
            # It is beside the partition.
            directory = os.path.join(directory, f"{topic}-{partition}")
        cure = self._copies.cure(directory, topic, partition, first=finding["first_offset"])
        return cure.lines if cure else []

    def _other_start(self, directory: str, *, is_alone: bool) -> list[str]:
        """What a start without the mark of a clean stop would do, which is there now."""
        other = self._other.get(directory)
        if other is None or other["stop"] != "unclean":
            return []
        start = "the broker does not start with this partition"
        if other["outcome"] in ("cuts", "ends-early"):
            place = (
                f"the log off at offset {other['log_end_offset']}" if is_alone else "off records"
            )
            start = f"the start cuts {place}"
        elif other["outcome"] != "refuses":
            return []
        return [f"Do not delete .kafka_cleanshutdown: without it {start}."]


def is_unbounded(finding: Mapping[str, Any]) -> bool:
    """Whether records are lost from an offset on, and nothing shows how many."""
    first, last = finding["first_offset"], finding["last_offset"]
    return finding["severity"] == "error" and first is not None and last is None


def is_without_batch(finding: Mapping[str, Any]) -> bool:
    """Whether the tail of a segment is all of it, and nothing shows that records were there."""
    return bool(finding["position"] == 0 and finding["severity"] == "warning")


def _compared(*, is_cut: bool) -> str:
    """What to do where records behind the last batch are gone, and no copy at hand has them."""
    return (
        "Copy the partition, and compare the end of its log with another replica before the broker"
        f" starts{', since the start cuts these bytes off' if is_cut else ''}."
    )


def _transaction(finding: Mapping[str, Any]) -> str:
    """What to do about an open transaction, by what its coordinator knows of it."""
    commands = " ".join(finding["commands"])
    if " forceTerminateTransaction " in commands:
        return "If its producer is gone, end the transaction by its id."
    if " describe " in commands:
        return (
            "If its producer is gone, start one with its transactional id: that ends the"
            " transaction. Brokers before Kafka 4.1 have no command for it."
        )
    if " abort " in commands:
        return "Its coordinator has moved on: see that find-hanging lists it, then abort it."
    return (
        "See whether find-hanging lists it: if so, nothing else will end it. Else its producer is"
        " at work, or its coordinator ends it after the timeout of the producer."
    )


def _unread(finding: Mapping[str, Any]) -> str | None:
    """What to do about something that was asked for and not read."""
    message = str(finding["message"]).lower()
    if finding["file"] is None:
        return "Name a topic that is there, or a pattern as of the shell, such as 'orders-*'."
    if any(reason in message for reason in ("no such file", "not a directory", "not found")):
        return "Check the path."
    if "not a log" in message:
        return "Check the path: a segment is named by its first offset and ends in .log."
    if "holds no" in message:
        return "Check the path: a log directory has a directory for each partition."
    if "permission denied" in message:
        return "Run this as the user of the broker."
    return None

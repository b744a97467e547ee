"""How to take records from another copy of a partition, where the audit compared several.

A directory that is moved away is fetched again from the partition's leader. So two things have to
be so before: another broker leads the partition, or an empty log becomes everybody's, and some copy
has all that this one has.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.audit.catalogue.explain import HOST
from ottla.words import listed, offsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit import AuditResult

COPIES_SHOWN = 3
RANGES_SHOWN = 3

LAWFUL = ("begins-later", "compaction")
"""Differences of retention and compaction, which leave nothing to fetch."""


class Cure(NamedTuple):
    """How to take what a copy lacks from others."""

    is_whole: bool
    """Some copy has all of it: what deletes records has no place beside this."""
    lines: list[str]
    """Sentences, and commands with a dollar."""


class Copies:
    """What copies of partitions have of each other, by the table `differences`."""

    def __init__(self, result: AuditResult) -> None:
        self._base = result.directory
        self._rows: dict[tuple[Any, Any], list[Mapping[str, Any]]] = defaultdict(list)
        self._names = {
            os.path.dirname(finding["file"]): str(finding["replica"])
            for finding in result.findings
            if finding["replica"] is not None and finding["file"] is not None
        }
        """Copies by their directory, as far as they have a finding as such."""
        for row in result.differences:
            if row["kind"] not in LAWFUL:
                self._rows[row["topic"], row["partition"]].append(row)

    def cure(
        self, directory: str, topic: str | None, partition: int | None, first: int | None = None
    ) -> Cure | None:
        """What has a broker fetch its copy again; None if no copy helps.

        Args:
            directory: of the copy that lacks something, relative to the audited directory.
            topic: its topic.
            partition: its partition.
            first: an offset that it lacks; None for whatever it lacks.
        """
        rows = self._rows.get((topic, partition), [])
        here = self._name_of(directory, rows)
        lacked = [row for row in rows if here in row["bad_replicas"] and row["good_replicas"]]
        if first is not None:
            lacked = [row for row in lacked if row["first_offset"] <= first <= row["last_offset"]]
        if here is None or not lacked:
            return None
        holders = dict.fromkeys(name for row in lacked for name in row["good_replicas"])
        whole = [name for name in holders if not any(name in row["bad_replicas"] for row in rows)]
        if not whole:
            said = dict.fromkeys(_said(row["good_replicas"], [row]) for row in lacked)
            none = (
                "No copy at hand has everything: save the readable records of each with ottla read"
                " before any broker starts."
            )
            return Cure(is_whole=False, lines=[*[*said][:RANGES_SHOWN], none])
        look = f"$ kafka-topics.sh --bootstrap-server {HOST} --describe --topic"
        look = f"{look} {shlex.quote(topic or '')}"
        if all(row["kind"] == "behind" for row in lacked):
            lead = (
                f"{_said(whole, lacked)} Before the broker of {directory} starts, see that"
                f" {' or '.join(whole[:COPIES_SHOWN])} leads the partition: as a follower this copy"
                " fetches what it lacks, as leader it has the others cut that off."
            )
            return Cure(is_whole=True, lines=[lead, look])
        fetch = (
            f"{_said(whole, lacked)} Stop the broker of this copy. Once another one leads the"
            f" partition, move {directory} out of the log directory and start the broker: it"
            " fetches the partition from there. Without another leader its empty log becomes"
            " everybody's."
        )
        return Cure(is_whole=True, lines=[*self._only(here, rows), fetch, look])

    def are_compared(self, topic: str | None, partition: int | None) -> bool:
        """Whether copies of a partition differ, or lack the same."""
        return (topic, partition) in self._rows

    def _only(self, here: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """How to save before what no other copy has."""
        only = [row for row in rows if row["only_replica"] == here]
        if not only:
            return []
        ranges = [offsets(row["first_offset"], row["last_offset"]) for row in only]
        text = f"Save first what only this copy has: {listed(ranges, RANGES_SHOWN)}."
        return [text, *(f"$ {line}" for row in only[:RANGES_SHOWN] for line in row["commands"])]

    def _name_of(self, directory: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """The name of the copy in a directory."""
        if directory in self._names:
            return self._names[directory]
        for row in rows:
            for name, file in zip(row["replicas"], row["files"], strict=True):
                if file is not None and os.path.dirname(file) == directory:
                    return str(name)
        return None


def _said(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Who has which offsets."""
    ranges = dict.fromkeys(offsets(row["first_offset"], row["last_offset"]) for row in rows)
    has = "has" if len(names) == 1 else "have"
    return f"{listed(names, COPIES_SHOWN)} {has} {listed([*ranges], RANGES_SHOWN)}."

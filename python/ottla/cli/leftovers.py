"""Segments that were to be deleted and are still there, where the log lacks their offsets."""

from __future__ import annotations

import os
import shlex
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.cli.words import shell_path
from ottla.storage import store_of
from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.audit import AuditResult

LACKING = ("missing-segment", "offset-gap", "checkpoint-mismatch", "truncated-tail", "zero-tail")
"""Findings about offsets that a log had."""

FILES_SHOWN = 3


class Leftovers:
    """The files of a result that the next start of a broker deletes."""

    def __init__(self, result: AuditResult) -> None:
        self._base = result.directory
        self._files = result.files

    @cached_property
    def _of(self) -> dict[str, list[tuple[int, str]]]:
        """The base offsets and paths in each directory, relative to what was audited.

        Not by their findings, which may have been left out.
        """
        found: dict[str, list[tuple[int, str]]] = {}
        for row in self._files:
            if row["state"] == "deleted" and row["kind"] == "segment":
                place = row["base_offset"], row["file"]
                found.setdefault(os.path.dirname(row["file"]), []).append(place)
        return found

    def holding(self, finding: Mapping[str, Any]) -> list[str]:
        """The files that begin within the offsets that a finding says are missing."""
        first, last = finding["first_offset"], finding["last_offset"]
        if finding["name"] not in LACKING or first is None or finding["file"] is None:
            return []
        directory, name = os.path.split(finding["file"])
        if name.endswith("-checkpoint"):
            # It is beside the partition.
            directory = os.path.join(directory, f"{finding['topic']}-{finding['partition']}")
        return [
            path
            for base_offset, path in sorted(self._of.get(directory, ()))
            if first <= base_offset and (last is None or base_offset <= last)
        ]

    def remedy(self, finding: Mapping[str, Any]) -> str | None:
        """What to do about the files that may hold missing offsets; None without such files."""
        held = self.holding(finding)
        if not held:
            return None
        names = listed([os.path.basename(path) for path in held], FILES_SHOWN)
        files = "file" if len(held) == 1 else "files"
        return (
            f"Before the broker starts, copy {names}: the start deletes the {files}, which may hold"
            " these offsets."
        )

    def commands(self, finding: Mapping[str, Any]) -> list[str]:
        """Commands that copy and read the files that may hold missing offsets."""
        lines = []
        for path in self.holding(finding)[:FILES_SHOWN]:
            whole = shell_path(os.path.join(self._base, path))
            if store_of(os.fsencode(whole)) is None:
                copy = shlex.quote(f"COPY/{os.path.basename(path).removesuffix('.deleted')}")
                lines += [f"cp -a {shlex.quote(whole)} {copy}", f"ottla read {copy}"]
        return lines

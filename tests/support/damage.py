"""Damaged logs with the truth about every injury, and what an audit owes to it.

A case is a directory with `log/` (or copies in it, `log/replica-1` and so on) and `injuries.json`:
what was done, what an audit must say of it (`must`), what it may say, and what was odd before.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import ottla

if TYPE_CHECKING:
    from pathlib import Path

Row = Mapping[str, Any]
Truth = dict[str, Any]

RANKS = {"none": 0, "info": 1, "warning": 2, "error": 3}
# Words of the truth that another word of an audit means, too.
ALSO = {"damaged-range": {"crc-mismatch"}, "garbage-tail": {"damaged-range"}}
PARTITION = re.compile(r".+-\d+")
INDEXES = {".index", ".timeindex", ".txnindex"}


def unpack(archive: Path, directory: Path) -> Path:
    """Write the sample's damaged logs into an empty directory, and return it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None
            path = directory / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    return directory


def truth_of(case: Path) -> Truth:
    """Return what is known of a case."""
    truth: Truth = json.loads((case / "injuries.json").read_text(encoding="utf-8"))
    return truth


def audited(case: Path) -> ottla.AuditResult:
    """Return the audit of a case's log, or of its copies."""
    copies = sorted((case / "log").glob("replica-*"))
    return ottla.audit(copies or case / "log")


class Place(NamedTuple):
    """Where something is: each part that is known."""

    replica: str | None
    partition: str | None
    name: str | None


def place_of(path: str) -> Place:
    """Return the parts of a path."""
    replica = partition = name = None
    for word in filter(None, path.split("/")):
        if word.startswith("replica-"):
            replica = word
        elif PARTITION.fullmatch(word):
            partition = word
        else:
            name = word
    return Place(replica, partition, name)


def concerns(found: Row, path: str, *, itself: bool) -> bool:
    """Whether a finding is about a file: the file `itself`, or its segment or partition too."""
    place, expected = place_of(found["file"] or ""), place_of(path)
    replica = place_of(found["replica"] or "").replica or place.replica
    partition = place.partition
    if partition is None and found["topic"] is not None:
        partition = f"{found['topic']}-{found['partition']}"
    for its, wanted in ((replica, expected.replica), (partition, expected.partition)):
        if None not in {its, wanted} and its != wanted:
            return False
    if place.name is None:
        return not itself
    if expected.name is None or place.name == expected.name:
        return place.name == expected.name
    is_of_segment = place.name[:20] == expected.name[:20] and expected.name[20:] in INDEXES
    return is_of_segment and not itself


def is_at(found: Row, expected: Row) -> bool:
    """Whether a finding is at an expected place: it shares a byte or an offset, where both say."""
    files = [expected["file"], *expected.get("files", [])]
    if not any(concerns(found, file, itself=False) for file in files):
        return False
    position, first = found["position"], found["first_offset"]
    if expected["position"] and position is not None and concerns(found, files[0], itself=True):
        start, stop = expected["position"]
        return bool(
            position < max(stop, start + 1) and position + max(1, found["size"] or 1) > start
        )
    if expected["offsets"] and first is not None:
        last = first if found["last_offset"] is None else found["last_offset"]
        return bool(first <= expected["offsets"][1] and last >= expected["offsets"][0])
    return True


def means(found: Row, expected: Row) -> bool:
    """Whether a finding has a name that the truth has for it."""
    kinds = {expected["kind"], *expected.get("alt", [])}
    return found["name"] in kinds.union(*(ALSO.get(kind, set()) for kind in kinds))


def answers(found: Row, expected: Row) -> bool:
    """Whether a finding is one that is expected, or allowed, at its place."""
    return means(found, expected) and is_at(found, expected)


def missed(truth: Truth, rows: Sequence[Row]) -> list[str]:
    """Return what must be said and is not, or not loudly enough."""
    return [
        f"{expected['kind']} ({expected['severity']}) in {expected['file']}, for {injury['kind']}"
        for injury in truth["injuries"]
        for expected in injury["expect"]
        if expected["must"]
        and not any(
            answers(found, expected) and RANKS[found["severity"]] >= RANKS[expected["severity"]]
            for found in rows
        )
    ]


def natural_place(natural: Row) -> Row:
    """Return where something odd before any injury is, as the truth writes places."""
    first, last = natural["first_offset"], natural["last_offset"]
    offsets = None if first is None else [first, first if last is None else last]
    return {**natural, "position": None, "offsets": offsets}


def wrong(truth: Truth, rows: Sequence[Row]) -> list[str]:
    """Return the errors that are said and are none."""
    allowed = [expected for injury in truth["injuries"] for expected in injury["expect"]]
    allowed += [natural_place(natural) for natural in truth["natural"]]
    return [
        f"{found['name']} in {found['file']}: {found['message']}"
        for found in rows
        if found["severity"] == "error"
        and not any(
            answers(found, expected) and expected.get("ceiling", "error") == "error"
            for expected in allowed
        )
    ]


def statuses(truth: Truth) -> set[int]:
    """Return the exit statuses that fit what must be said."""
    musts = [e["severity"] for i in truth["injuries"] for e in i["expect"] if e["must"]]
    worst = max(musts, key=RANKS.__getitem__, default="none")
    return {"error": {2}, "warning": {1, 2}, "info": {0, 1, 2}, "none": {0, 1}}[worst]

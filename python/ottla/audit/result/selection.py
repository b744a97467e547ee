"""Which findings count: all but those that the user knows or does not want to see.

What is left out stays in the verdict: a log with an error that everybody knows is not sound.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.audit.catalogue.explain import catalogue
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.audit.catalogue.finding import Finding

_PLACE = (
    "name",
    "file",
    "topic",
    "partition",
    "position",
    "first_offset",
    "last_offset",
    "record_index",
    "producer_id",
)
"""What two audits of one log have in common of a finding."""

MAX_BASELINE_BYTES = 1 << 30
"""Size of the largest baseline: an audit with a million findings has half of it."""


class BaselineError(ValueError):
    """A file is not the JSON of an audit."""


class Baseline(NamedTuple):
    """Findings of an earlier audit, with the severity that they had."""

    known: Mapping[tuple[Any, ...], Severity]

    @classmethod
    def of(cls, findings: Iterable[Mapping[str, Any]]) -> Baseline:
        """Returns the baseline of findings given as rows of the table `findings`."""
        return cls({tuple(row.get(key) for key in _PLACE): row["severity"] for row in findings})

    @classmethod
    def parse(cls, text: str | bytes) -> Baseline:
        """Returns the baseline in the output of `ottla audit --format json`.

        >>> text = '{"findings": [{"name": "zero-tail", "severity": "info", "file": "a-0/0.log"}]}'
        >>> len(Baseline.parse(text).known)
        1

        Raises:
            BaselineError: the text is something else.
        """
        import json

        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BaselineError(f"is not JSON: {error}") from error
        rows = document.get("findings") if isinstance(document, dict) else None
        if not isinstance(rows, list):
            raise BaselineError("has no list of findings: expected the output of --format json")
        for number, row in enumerate(rows):
            if not (isinstance(row, dict) and row.get("severity") in SEVERITIES and _is_flat(row)):
                raise BaselineError(f"finding {number} has no name and severity")
        return cls.of(rows)

    def knows(self, finding: Finding) -> bool:
        """Whether the earlier audit had a finding at this place, as grave or graver."""
        severity = self.known.get(tuple(getattr(finding, key) for key in _PLACE))
        return severity is not None and _rank(severity) <= _rank(finding.severity)


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Returns the baseline in a local file.

    Raises:
        OSError: the file cannot be read.
        BaselineError: it is not the JSON of an audit, or is too large.
    """
    if not os.path.isfile(path):
        # A pipe would have to be waited for.
        os.stat(path)
        raise BaselineError("is not a file")
    with open(path, "rb") as file:
        text = file.read(MAX_BASELINE_BYTES + 1)
    if len(text) > MAX_BASELINE_BYTES:
        raise BaselineError(f"has more than {MAX_BASELINE_BYTES:,} bytes")
    return Baseline.parse(text)


class Selection(NamedTuple):
    """The findings that count.

    Args:
        severity: the lowest severity that counts.
        ignore: names of findings that do not count.
        baseline: findings that are known already.
    """

    severity: Severity = "info"
    ignore: frozenset[str] = frozenset()
    baseline: Baseline | None = None

    @classmethod
    def of(cls, severity: Severity, ignore: Iterable[str], baseline: Baseline | None) -> Selection:
        """Returns a selection by names of somebody's.

        Raises:
            ValueError: there is no such severity or finding.
        """
        if severity not in SEVERITIES:
            raise ValueError(f"severity is {severity!r}, not one of {', '.join(SEVERITIES)}")
        names = frozenset(ignore)
        if names and (unknown := sorted(names - {*catalogue()})):
            raise ValueError(f"ignore has {unknown[0]!r}, which is no finding")
        return cls(severity, names, baseline)

    def has(self, finding: Finding) -> bool:
        """Whether a finding counts."""
        if _rank(finding.severity) > _rank(self.severity) or finding.name in self.ignore:
            return False
        return self.baseline is None or not self.baseline.knows(finding)


EVERYTHING = Selection()


def _is_flat(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("name"), str) and not any(
        isinstance(row.get(key), (list, dict)) for key in _PLACE
    )


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)

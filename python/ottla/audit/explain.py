"""The catalogue of findings as people read it: what a finding means, its causes, what to do.

The catalogue itself is the engine's (`rust/ottla-core/src/audit/findings.rs`). Here it becomes
the answers of `ottla explain` and `docs/findings.md`, and a finding becomes the commands to look
further.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.findings import SEVERITIES, Severity, severity_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Explanation:
    """One row of the catalogue."""

    name: str
    severity: Severity
    """How grave it usually is."""
    meaning: str
    causes: str
    action: str
    kafka: str
    """The class of Kafka or the KIP that knows about it."""


@cache
def catalogue() -> Mapping[str, Explanation]:
    """Every finding there is, by name, in the catalogue's order."""
    return {
        row["name"]: Explanation(
            name=row["name"],
            severity=severity_of(row["severity"]),
            meaning=row["meaning"],
            causes=row["causes"],
            action=row["action"],
            kafka=row["kafka"],
        )
        for row in _engine.finding_catalogue()
    }


def explain(name: str) -> Explanation:
    """The explanation of a finding.

    >>> explain("crc-mismatch").severity
    'error'

    Raises:
        KeyError: there is no such finding.
    """
    return catalogue()[name]


def commands(finding: Mapping[str, Any], path: str | None) -> list[str]:
    """Commands to copy that look at a finding, or mend it.

    Args:
        finding: a row of the `findings` table.
        path: of its file, to be opened from where the user is.
    """
    lines = []
    if finding["name"] == "open-transaction" and finding["topic"] is not None:
        lines.append(
            "kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging"
            f" --topic {finding['topic']} --partition {finding['partition']}"
        )
    elif path is not None and path.endswith(".log") and finding["position"] is not None:
        offset = "" if finding["first_offset"] is None else f" --offset {finding['first_offset']}"
        lines.append(f"ottla inspect {shlex.quote(path)}{offset}")
    return lines


def findings_markdown() -> str:
    """`docs/findings.md`."""
    lines = [
        "# Findings",
        "",
        "What `ottla audit` can say. `ottla explain NAME` prints the same at a terminal. A name is",
        "never renamed and never used for something else. The severity is the usual one; a finding",
        "may be graver or milder where the log around it tells more.",
    ]
    for severity in SEVERITIES:
        rows = [row for row in catalogue().values() if row.severity == severity]
        lines += ["", f"## {severity}"]
        for row in rows:
            lines += [
                "",
                f"### {row.name}",
                "",
                row.meaning,
                "",
                f"- Causes: {row.causes}",
                f"- What to do: {row.action}",
                f"- In Kafka: {row.kafka}",
            ]
    return "\n".join(lines) + "\n"

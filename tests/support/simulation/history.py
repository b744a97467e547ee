"""What clients did and were told: all that the checker knows."""

from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["done", "refused", "unknown"]


@dataclass
class Sent:
    """A batch that a producer wrote."""

    producer: str
    topic: str
    partition: int
    values: list[bytes]
    outcome: Outcome = "unknown"
    base_offset: int = -1
    """Where the broker said that it is."""


@dataclass
class Transaction:
    """A transaction as its producer saw it."""

    producer: str
    sent: list[Sent] = field(default_factory=list)
    wants_commit: bool = False
    """Whether its producer asked for it to be committed."""
    outcome: Literal["committed", "aborted", "unknown"] = "aborted"
    offsets: dict[int, int] = field(default_factory=dict)
    """What it commits for a group, by partition."""


@dataclass
class Reading:
    """What a reader got from a partition, from an offset on."""

    topic: str
    partition: int
    is_committed: bool
    records: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass
class Commit:
    """An offset that a group committed, or was told, and when it was asked and answered."""

    kind: Literal["commit", "fetch"]
    partition: int
    offset: int
    sent_at: int
    answered_at: int


@dataclass
class History:
    """Of one simulation."""

    sent: list[Sent] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What a broker should not have answered."""
    steps: int = 0

    def step(self) -> int:
        """Counts moments."""
        self.steps += 1
        return self.steps

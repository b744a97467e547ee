"""What clients did and were told: all that the checker knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["done", "refused", "unknown", "lost"]

Moment = tuple[int, int]
"""The time, and how many steps there were until then."""


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
    records: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    """Keys and values, where they are not the values alone."""


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
class Start:
    """A session of a transactional producer begins: from then on it is the only one of its name."""

    producer: str
    session: int
    sent_at: int
    answered_at: int


@dataclass
class Reading:
    """What a reader got from a partition, from an offset on."""

    topic: str
    partition: int
    is_committed: bool
    records: list[tuple[int, bytes]] = field(default_factory=list)
    next_offset: int = 0


@dataclass
class Commit:
    """An offset that a group committed, or was told, and when it was asked and answered."""

    kind: Literal["commit", "fetch"]
    partition: int
    offset: int
    sent_at: int
    answered_at: int
    group: str = ""
    epoch: int = -1
    """The generation or epoch of the member that commits."""
    is_repeated: bool = False
    """Whether an attempt was given up, which may have been held and be served at any time."""


@dataclass
class Ownership:
    """A member of a group has a partition, from one moment to another."""

    group: str
    partition: int
    member: str
    epoch: int
    begin: Moment
    end: Moment | None = None


@dataclass
class History:
    """Of one simulation."""

    sent: list[Sent] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    ends: list[tuple[str, int, int]] = field(default_factory=list)
    """Producer and session of each transaction that could be ended, and when that was asked for."""
    readings: list[Reading] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    ownerships: list[Ownership] = field(default_factory=list)
    generations: list[tuple[str, int, str, list[int]]] = field(default_factory=list)
    """Group, generation, member and its partitions."""
    faults: list[str] = field(default_factory=list)
    """What a broker should not have answered."""
    deleted_to: int = 0
    """The offset up to which a client was told that records are deleted."""
    has_lost: bool = False
    """Whether a power cut has taken what was acknowledged in the page cache alone."""
    has_jumped: bool = False
    """Whether time has jumped: sessions and transactions may have ended of a sudden."""
    steps: int = 0

    def step(self) -> int:
        """Counts moments."""
        self.steps += 1
        return self.steps

    def unread(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Readers forget what a power cut has taken, and go on where the logs end now."""
        for reading in self.readings:
            end = ends[reading.topic, reading.partition]
            reading.records = [record for record in reading.records if record[0] < end]
            reading.next_offset = min(reading.next_offset, end)

    def lose(self, ends: Mapping[tuple[str, int], int]) -> None:
        """A power cut has taken what is behind these ends, and nothing of what was committed."""
        self.has_lost = True
        committed = {
            id(sent)
            for transaction in self.transactions
            if transaction.outcome == "committed"
            for sent in transaction.sent
        }
        for sent in self.sent:
            end = ends[sent.topic, sent.partition]
            if sent.outcome == "done" and sent.base_offset + len(sent.values) > end:
                sent.outcome = "lost"
                if id(sent) in committed:
                    self.faults.append(f"a power cut has taken {sent} of a committed transaction")

"""A deed before the next start of a broker, with its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DeedName = Literal[
    "nothing",
    "delete-index",
    "delete-snapshot",
    "delete-leader-epochs",
    "delete-side-files",
    "delete-clean-shutdown-mark",
    "move-segment",
    "move-file",
    "move-partition",
    "several",
]
"""What a deed does, in a word."""


MARK = ".kafka_cleanshutdown"
"""The mark of a clean stop, in the log directory."""


class Cost(NamedTuple):
    """How bad a start is: what refuses to open, readable offsets gone, transactions exposed."""

    expected: tuple[int, int, int]
    worst: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done to a file or directory, by hand, while the broker is stopped."""

    operation: Literal["delete", "move"]
    """Move: out of the log directory."""
    path: str
    """Relative to the log directory."""


class StartPrice(NamedTuple):
    """What one start makes of a partition, in short."""

    opens: bool | None
    """False: the broker gives up its start. None: the partition is not there."""
    is_put_aside: bool
    log_end_offset: int | None
    gone: int
    """Readable offsets that the log does not have any more."""
    exposed_transactions: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """As in `Cost`."""
        return self.opens is False, self.gone, self.exposed_transactions


@dataclass(frozen=True, slots=True)
class PartitionPrice:
    """What the next start makes of a partition after a deed."""

    topic: str | None
    partition: int | None
    opens: bool | None
    """False: the broker gives up its start. None: the partition is not there."""
    error: str | None
    """The exception with which it gives up."""
    is_put_aside: bool
    """The directory has no topic id: a broker since 4.0 renames it to `-stray`."""
    log_start_offset: int | None
    log_end_offset: int | None
    """This and what follows is the start at worst: after an unclean stop with every segment
    recovered, as where the recovery point is lost."""
    readable_offsets: int
    """Offsets that `ottla read` gives before."""
    readable_offsets_lost: int
    """Of these, those outside the log after the start: that of `goes_on_in`, if it has one."""
    readable_offsets_cut: int
    """Of these, those inside it, in bytes that are cut off before its end."""
    exposed_transactions: int
    """Aborted transactions whose records read_committed consumers get."""
    goes_on_in: str | None
    """The other directory of a partition that the broker has twice, once this one is moved."""
    goes_on_at: int | None
    """The end of the log there."""
    producers: int | None
    """Producers whose sequence numbers and open transactions the broker then knows, as expected;
    None: it is put aside, and was not looked into."""
    side_files_mended: tuple[str, ...]
    """Wrong side files that the start, as expected, makes anew or does without."""
    expected: Mapping[str, Any] | None
    """`opens`, `is_put_aside`, `log_end_offset`, `readable_offsets_lost`, `readable_offsets_cut`
    and `exposed_transactions` of the start to be expected, where they are others: the recovery
    point of the checkpoint is believed, and where no partition has a topic id, none is missed."""

    @property
    def at_worst(self) -> StartPrice:
        """What the start makes of the partition at worst."""
        return StartPrice(
            self.opens,
            self.is_put_aside,
            self.log_end_offset,
            self.readable_offsets_lost + self.readable_offsets_cut,
            self.exposed_transactions,
        )

    @property
    def as_expected(self) -> StartPrice:
        """What is to be expected."""
        told = self.expected
        if told is None:
            return self.at_worst
        return StartPrice(
            told["opens"],
            told["is_put_aside"],
            told["log_end_offset"],
            told["readable_offsets_lost"] + told["readable_offsets_cut"],
            told["exposed_transactions"],
        )


@dataclass(frozen=True, slots=True)
class Deed:
    """Something to do before the next start, and its price."""

    log_directory: str
    deed: DeedName
    operations: tuple[Operation, ...]
    partitions: tuple[PartitionPrice, ...]
    """Those to which the start or the deed does something."""
    partitions_unchanged: int
    """Others of the log directory, which open as they are, whatever is done."""
    partitions_not_priced: int
    """Others, of which nothing is known: they were not audited, or are too many."""
    not_tried: int
    """Things that could be done to partitions, and were not tried: they would read too much."""

    @property
    def deletes_mark(self) -> bool:
        """Every partition is recovered."""
        return any(operation.path == MARK for operation in self.operations)

    @property
    def cost(self) -> Cost:
        """That of all partitions."""
        return Cost(
            _sum([price.as_expected.cost for price in self.partitions]),
            _sum([price.at_worst.cost for price in self.partitions]),
        )


def _sum(costs: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    refuse, gone, exposed = (sum(cost[number] for cost in costs) for number in range(3))
    return refuse, gone, exposed

"""What a consumer gets of the damaged logs, beside what the audit shows of them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.logs.reading import log_start_offset

Row = Mapping[str, Any]

MAX_RELATIVE_OFFSET = 2**31
"""An index counts offsets from that of its segment's name, in 31 bits."""

WHY = (
    "is before the log start",
    "is there twice",
    "is outside its batch",
    "is of a batch that the names of segments leave no place for",
    "is of a batch that contradicts one that was read",
)
"""Why no consumer gets a record, as `docs/tables.md` says it."""


def partitions(damage: Path) -> Iterator[Path]:
    """Every partition of every damaged log, each copy included."""
    for case in sorted((damage / "cases").iterdir()):
        logs = sorted((case / "log").glob("replica-*")) or [case / "log"]
        yield from (path for log in logs for path in sorted(log.iterdir()) if path.is_dir())
    for case in sorted((damage / "segments").iterdir()):
        yield from (path for path in sorted(case.iterdir()) if path.is_dir())


class Held:
    """What the audit shows of a partition, and what a consumer gets of it."""

    def __init__(self, partition: Path) -> None:
        result = ottla.audit(partition, threads=1)
        self.start = log_start_offset(partition)
        self.batches = [row for row in result.batches if row["is_valid"]]
        self.rows = [row for row in result.records if row["control"] is None]
        self.bases = sorted(int(path.stem) for path in partition.glob("*.log"))
        read = ottla.read_partition(partition, on_damage=lambda _: None)
        self.read = [(one.offset, one.timestamp, one.key, one.value) for one in read]
        self.read_offsets = {one[0] for one in self.read}

    def beyond(self) -> list[Row]:
        """The records that no consumer gets."""
        left = Counter(self.read)
        beyond: list[Row] = []
        for row in self.rows:
            record = (row["offset"], row["timestamp"], row["key"], row["value"])
            if left[record]:
                left[record] -= 1
            else:
                beyond.append(row)
        assert not +left, "a consumer gets what the audit does not show"
        return beyond

    def why(self, row: Row) -> str | None:
        """Why no consumer gets a record; None where nothing is known of."""
        index = next(n for n, b in enumerate(self.batches) if _place(b) == _place_of(row))
        batch = self.batches[index]
        first, last = batch["base_offset"], batch["last_offset"]
        base = int(Path(batch["file"]).stem)
        following = next((other for other in self.bases if other > base), None)
        holds = (
            row["offset"] < self.start,
            row["offset"] in self.read_offsets,
            not first <= row["offset"] <= last,
            first < base
            or last - base >= MAX_RELATIVE_OFFSET
            or (following is not None and last >= following),
            any(one["last_offset"] >= first for one in self.batches[:index] if self.is_read(one))
            or any(
                one["base_offset"] <= last for one in self.batches[index + 1 :] if self.is_read(one)
            ),
        )
        return next((why for why, is_so in zip(WHY, holds, strict=True) if is_so), None)

    def is_read(self, batch: Row) -> bool:
        """Whether a consumer gets a record of a batch."""
        return any(
            batch["base_offset"] <= row["offset"] <= batch["last_offset"]
            and row["offset"] in self.read_offsets
            for row in self.rows
            if _place_of(row) == _place(batch)
        )


def _place(batch: Row) -> tuple[str, int]:
    return batch["file"], batch["position"]


def _place_of(record: Row) -> tuple[str, int]:
    return record["file"], record["batch_position"]


@pytest.mark.shared
@pytest.mark.slow
def test_of_every_damaged_log_a_consumer_gets_all_but_what_the_page_of_tables_names(
    shared: Path,
) -> None:
    reasons: Counter[str] = Counter()
    more = 0
    for partition in partitions(shared / "damage"):
        held = Held(partition)
        beyond = held.beyond()
        more += bool(beyond)
        for row in beyond:
            why = held.why(row)
            assert why is not None, (partition, row["offset"])
            reasons[why] += 1
        assert len(held.read) + len(beyond) == len(held.rows), partition
    assert more == 45
    assert set(reasons) == set(WHY)

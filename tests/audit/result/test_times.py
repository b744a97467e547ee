"""When records were written, by the segments around them."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from ottla.audit.result.times import LogTimes, written
from ottla.logs.inventory import Partition
from support.logs import segment_name

DIRECTORY = b"/orders-0"


class Counted(int):
    """A timestamp that counts how often timestamps are compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) > int(other)


def log_of(timestamps: Sequence[tuple[int, int]]) -> LogTimes:
    """A log whose segments have one offset each, and these least and greatest timestamps."""
    partition = Partition(DIRECTORY, "orders", 0, "live", (), (), (), (), stopped_cleanly=False)
    rows = [
        {
            "file": DIRECTORY + b"/" + segment_name(offset).encode(),
            "base_offset": offset,
            "next_offset": offset + 1,
            "min_timestamp": least,
            "max_timestamp": greatest,
        }
        for offset, (least, greatest) in enumerate(timestamps)
    ]
    return written((partition, row) for row in rows)[DIRECTORY]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), st.data())
def test_records_were_written_between_the_extremes_of_their_segments(
    timestamps: list[tuple[int, int]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(timestamps) - 1))
    last = data.draw(st.integers(first, len(timestamps) - 1))
    around = timestamps[first : last + 1]
    expected = min(least for least, _ in around), max(greatest for _, greatest in around)
    assert log_of(timestamps).span(None, first, last) == expected


def test_wide_ranges_of_many_events_do_not_look_at_every_segment_each() -> None:
    size = 1000
    log = log_of([(Counted(n * 7 % 10), Counted(n * 7 % 10)) for n in range(size)])
    Counted.comparisons = 0
    for first in range(size):
        log.span(None, first, size)
    assert Counted.comparisons < 50 * size

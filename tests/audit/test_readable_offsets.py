"""How much of a log is read to count the offsets that are left of it."""

from ottla import _engine
from support.logs import segment

RECORDS = 300


class Place:
    """A file that counts the bytes that are read of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.read_bytes = 0

    def read_at(self, position: int, size: int) -> bytes:
        data = self._data[position : position + size]
        self.read_bytes += len(data)
        return data


def offsets_of(place: Place) -> _engine.ReadableOffsets:
    return _engine.ReadableOffsets([(place, 0)], start_offset=0, stopped_cleanly=True)


def test_a_log_is_read_once_for_all_that_may_be_left_of_it() -> None:
    data = segment(RECORDS // 3)
    place = Place(data)
    offsets = offsets_of(place)
    assert offsets.count([(0, RECORDS, [len(data)])]) == (RECORDS, [RECORDS])
    once = place.read_bytes
    remainders = [
        (start, end, [size])
        for start in (0, 7, RECORDS)
        for end in (0, 8, RECORDS + 9)
        for size in (0, len(data) // 2, len(data))
    ]
    later = [offsets.count([left]) for left in remainders]
    assert place.read_bytes == once
    assert later == [offsets_of(Place(data)).count([left]) for left in remainders]
    assert {kept[0] for _, kept in later} > {0, 1, 8, RECORDS}

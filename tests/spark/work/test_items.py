"""Work that is sent to tasks by number: large plans travel in parts."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.spark.work import items
from ottla.spark.work.items import frame_of_work, parts_of


def test_a_task_receives_some_neighbours_of_its_item_and_not_the_plan() -> None:
    packed = [bytes(40)] * 800_000
    parts = list(parts_of(packed))
    assert len(parts) <= items.MAX_PARTS + 1
    assert max(sum(map(len, part)) for _, part in parts) <= 40 * len(packed) // items.MAX_PARTS + 40
    assert [first for first, _ in parts] == [
        sum(len(part) for _, part in parts[:at]) for at in range(len(parts))
    ]
    assert sum(len(part) for _, part in parts) == len(packed)


def test_a_small_plan_is_one_part() -> None:
    assert list(parts_of([b"a", b"b"])) == [(0, [b"a", b"b"])]
    assert list(parts_of([])) == [(0, [])]


@pytest.mark.spark
@pytest.mark.parametrize("count", [0, 1, 23])
def test_rows_are_in_the_order_of_the_items_however_many_parts_there_are(
    everywhere: Any, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def rows(limit: int) -> list[Any]:
        monkeypatch.setattr(items, "PART_BYTES", limit)
        requests = [SimpleNamespace(rows=partial(int, number)) for number in range(count)]
        target = "ottla.spark.audit.tasks:read"
        frame = frame_of_work(everywhere, target, None, requests, "id bigint, data binary")
        return [tuple(row) for row in frame.collect()]

    assert rows(1) == rows(1 << 20)
    assert [number for number, _ in rows(1)] == list(range(count))

"""What is planned for many partitions, and what of it travels with a task."""

import pickle
import zlib

import pytest

pytest.importorskip("pyspark", minversion="3.5")

from ottla.logs.listing import take_inventory
from ottla.spark.source import options
from ottla.spark.source.options import request_for
from ottla.spark.source.pieces import task_pieces
from ottla.spark.work.items import MAX_PARTS, PART_BYTES, parts_of

from benches.spark.scale import Listing

PARTITIONS = 6_000


def test_a_task_is_sent_a_bounded_part_of_a_plan_of_many_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listing = Listing(PARTITIONS)
    monkeypatch.setattr(
        options, "take_inventory", lambda paths, **_: take_inventory(paths, files=listing)
    )
    request = request_for(("/logs",), "records", partition_bytes=65_536)
    monkeypatch.setattr(options, "expand_globs", lambda paths, _: paths)
    packed = [zlib.compress(pickle.dumps(task, protocol=5), 1) for task in task_pieces(request)]
    # Each of three segments is a task: none is larger for what the others hold.
    assert len(packed) == 3 * PARTITIONS
    assert max(map(len, packed)) < 1_000
    whole = sum(map(len, packed))
    parts = [sum(map(len, part)) for _, part in parts_of(packed)]
    assert whole > 4 * PART_BYTES
    assert max(parts) <= max(PART_BYTES, whole // MAX_PARTS + 1_000)

"""Checkpoints and paths that a stream is not made for."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.logs import segment, segment_name

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import SparkError
from ottla.spark.source.checkpoint import from_json, to_json
from support.streams import Query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """A query that has read a log of six records."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / segment_name(0)).write_bytes(segment(2))
    query = Query(tmp_path)
    query.trigger()
    return query


def grow(query: Query) -> None:
    path = Path(query.options["path"]) / "orders-0" / segment_name(0)
    path.write_bytes(segment(4))


def test_a_checkpoint_is_read_as_it_was_written(query: Query) -> None:
    assert to_json(from_json(query.offset)) == query.offset


def test_a_checkpoint_without_a_version_is_read_on(query: Query) -> None:
    (name,) = query.offset["partitions"]
    entry = query.entry()
    old = {key: entry[key] for key in ("segment", "position", "next_offset")}
    query.start = {name: old}
    assert not query.trigger()
    assert query.start == {name: old}
    grow(query)
    query.trigger()
    assert query.offsets() == list(range(12))
    assert query.offset["version"] == 2


def test_a_batch_that_an_earlier_ottla_planned_is_replayed(query: Query) -> None:
    (name,) = query.offset["partitions"]
    size = len(segment(4))
    query.start = {name: {"segment": 0, "position": size // 2, "next_offset": 6}}
    query.planned = {name: {"segment": 0, "position": size, "next_offset": 12}}
    grow(query)
    query.trigger()
    assert query.offsets() == list(range(12))


def test_a_checkpoint_of_a_newer_ottla_is_refused(query: Query) -> None:
    query.start = query.offset | {"version": 3}
    with pytest.raises(SparkError, match="of version 3, this Ottla reads up to 2: go on with"):
        query.trigger()


@pytest.mark.parametrize(
    "checkpoint",
    [
        [],
        7,
        "",
        {"version": "2"},
        {"version": True},
        {"version": 0},
        {"version": 2},
        {"version": 2, "partitions": []},
        {"orders": {"0": 23}},
        {"logOffset": 4},
        {"/logs/orders-0": {"segment": 0, "position": 0}},
    ],
)
def test_what_another_source_has_written_is_refused(checkpoint: Any, query: Query) -> None:
    query.start = checkpoint
    with pytest.raises(SparkError, match=r"checkpoint is not one of format ottla: .*checkpointLoc"):
        query.trigger()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("segment", -1),
        ("segment", None),
        ("position", "12"),
        ("position", 2**63),
        ("next_offset", 1.5),
        ("next_offset", True),
        ("first_offset", 7),
        ("leader_epoch", -2),
        ("topic_id", 3),
        ("has_earlier", 1),
        ("last_batch", [1]),
        ("last_batch", [1, "xyz"]),
        ("holes", [[1]]),
        ("holes", 3),
        ("planned", []),
        ("planned", {"first_offset": 0}),
        ("planned", {"first_offset": 0, "digest": "FFFF"}),
    ],
)
def test_an_entry_that_was_changed_by_hand_is_refused(field: str, value: Any, query: Query) -> None:
    changed = copy.deepcopy(query.offset)
    (entry,) = changed["partitions"].values()
    entry[field] = value
    query.start = changed
    with pytest.raises(SparkError, match="checkpoint is not one of format ottla"):
        query.trigger()


def test_a_checkpoint_that_was_cut_is_refused(query: Query) -> None:
    text = json.dumps(query.offset)
    for field in query.entry():
        cut = json.loads(text)
        (entry,) = cut["partitions"].values()
        del entry[field]
        if field in ("segment", "position", "next_offset"):
            with pytest.raises(SparkError, match=f"has {field} None"):
                from_json(cut)
        else:
            from_json(cut)


def test_the_checkpoint_of_another_directory_is_told(query: Query, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "orders-0"
    other.mkdir(parents=True)
    (other / segment_name(0)).write_bytes(segment(2))
    moved = Query(other.parent)
    moved.start = query.offset
    with pytest.raises(SparkError, match="the checkpoint is of other directories, such as"):
        moved.trigger()


def test_a_checkpoint_that_goes_back_is_told(query: Query) -> None:
    before = query.offset
    grow(query)
    query.trigger()
    query.start, query.planned = query.offset, before
    query.restart()
    with pytest.raises(SparkError, match="the checkpoint goes back, from offset 12 to 6"):
        query.trigger()


def test_a_single_file_is_refused(query: Query) -> None:
    path = Path(query.options["path"]) / "orders-0" / segment_name(0)
    with pytest.raises(SparkError, match=r"a stream follows directories.*give the directory"):
        Query(path).trigger()


def test_a_stream_has_no_end(query: Query) -> None:
    with pytest.raises(SparkError, match=r"endingOffsets is of spark\.read: a stream goes on"):
        query.restart(endingOffsets='{"orders": {"0": 3}}')

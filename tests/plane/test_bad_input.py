"""Arguments of a data plane that mean nothing, and threads that share one."""

import threading
from typing import Any

import pytest
from ottla import TopicConfig
from ottla._engine import DataPlane
from support.plane_frames import HEADER, NOW_MS, Plane, batch, produce_frame

OPEN: dict[str, Any] = {"topic": "t", "topic_id": bytes(16), "partition": 0, "now_ms": 0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"topic_id": b"short"}, "topic_id has 5 bytes, expected 16"),
        ({"partition": -1}, "partition is -1, expected 0 or more"),
        ({"next_offset": -1}, "next_offset is -1, expected 0 to"),
        ({"leader_epoch": -1}, "leader_epoch is -1, expected 0 to"),
        ({"now_ms": -1}, "now_ms is -1, expected 0 to"),
        (
            {"settings": TopicConfig(kafka_version="4.2")},
            "kafka_version is 4.1.2, but the TopicConfig",
        ),
    ],
)
def test_what_a_partition_cannot_be_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataPlane(kafka_version="4.1").open(**OPEN | changed)


@pytest.mark.parametrize(
    "options", [{"profile": "lax"}, {"kafka_version": "1"}, {"unknown_producer": "never"}]
)
def test_what_a_plane_cannot_be_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"'(strict|auto)'|1"):
        DataPlane(**options)


def test_an_option_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'retention'"):
        DataPlane().open(**OPEN | {"retention": 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        DataPlane(speed=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("refused", [[("t", 0)], {"t": 3}, {("t", 0): "x"}, {("t",): 3}])
def test_refusals_are_codes_by_topic_and_partition(refused: Any) -> None:
    plane = Plane()
    plane.open()
    with pytest.raises((TypeError, ValueError)):
        plane.append(batch(), refused=refused)
    assert plane.engine.offsets(0)[3] == 0


def test_settings_stay_where_none_are_given() -> None:
    plane = Plane()
    handle = plane.open(settings=TopicConfig(max_message_bytes=100), min_insync_replicas=2)
    plane.engine.configure(handle, in_sync_replicas=2)
    assert plane.append(batch(b"x" * 100)).error_code == 10
    plane.engine.configure(handle, settings=TopicConfig())
    assert plane.append(batch(b"x" * 100)).error_code == 0
    plane.engine.configure(handle, in_sync_replicas=1)
    assert plane.append(batch()).error_code == 19


def test_threads_that_share_a_plane_take_turns() -> None:
    """Above 16 KiB the interpreter's lock is let go of."""
    plane = Plane()
    handle = plane.open()
    frame = produce_frame(9, {("t", 0): batch(b"x" * 50_000)})
    count, threads = 50, 4

    def produce() -> None:
        for _ in range(count):
            plane.engine.produce(frame, len(HEADER), 9, now_ms=NOW_MS)
            plane.read(plane.engine.offsets(handle)[3] - 1)

    running = [threading.Thread(target=produce) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert plane.engine.offsets(handle)[3] == count * threads

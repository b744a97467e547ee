"""Frames that are no requests: the connection is closed, and nothing happens."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import MalformedFrameError
from support.plane_frames import (
    FETCH_VERSIONS,
    HEADER,
    NOW_MS,
    PRODUCE_VERSIONS,
    Plane,
    batch,
    fetch_frame,
    produce_frame,
)

T = ("t", 0)


def produce(plane: Plane, frame: bytes, version: int) -> None:
    plane.engine.produce(frame, len(HEADER), version, now_ms=NOW_MS)


def fetch(plane: Plane, frame: bytes, version: int) -> None:
    plane.engine.fetch(frame, len(HEADER), version, now_ms=NOW_MS, must_answer=True)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_that_ends_anywhere_is_malformed(version: int) -> None:
    plane = Plane()
    plane.open()
    frame = produce_frame(version, {T: batch(b"a"), ("t", 1): b"x"}, transactional_id="x")
    for end in range(len(HEADER), len(frame)):
        with pytest.raises(MalformedFrameError) as raised:
            produce(plane, frame[:end], version)
        assert len(HEADER) <= raised.value.position <= end
    assert plane.engine.offsets(0)[3] == 0


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_that_ends_anywhere_is_malformed(version: int) -> None:
    plane = Plane()
    plane.open()
    forgotten = [T] if version >= 7 else []
    frame = fetch_frame(version, {T: 0, ("t", 1): 0}, forgotten=forgotten)
    for end in range(len(HEADER), len(frame)):
        with pytest.raises(MalformedFrameError):
            fetch(plane, frame[:end], version)


@pytest.mark.parametrize("version", [-1, 0, 2, 14, 99])
def test_a_version_that_is_not_served_is_malformed(version: int) -> None:
    with pytest.raises(MalformedFrameError, match=f"version {version}, expected 3 to 13"):
        produce(Plane(), HEADER, version)


@pytest.mark.parametrize(
    ("version", "body", "what"),
    [
        # transactional id, acks, timeout, topics: null; more than there are bytes; a null name.
        (3, b"\xff\xff" + bytes(6) + b"\xff\xff\xff\xff", "topic_data is null"),
        (3, b"\xff\xff" + bytes(6) + b"\x7f\xff\xff\xff", "topic_data counts 2147483647 elements"),
        (3, b"\xff\xff" + bytes(6) + b"\0\0\0\1\xff\xff", "name is null"),
        (3, b"\xff\xff" + bytes(6) + b"\0\0\0\1\0\1t\xff\xff\xff\xff", "partition_data is null"),
        (9, bytes(8), "topic_data is null"),
        (9, bytes(7) + b"\xff" * 5, "a varint exceeds 32 bits"),
        (9, bytes(7) + b"\xff\xff\xff\xff\x0f", "topic_data counts 4294967294 elements"),
        (9, b"\x81\x80\x02" + bytes(32768), "transactional_id has 32768 bytes"),
    ],
)
def test_what_the_layout_does_not_allow_is_named(version: int, body: bytes, what: str) -> None:
    with pytest.raises(MalformedFrameError) as raised:
        produce(Plane(), HEADER + body, version)
    assert str(raised.value).startswith(what)


def test_more_topics_than_a_request_may_name_are_malformed() -> None:
    """Each is six bytes on the wire and dozens in memory."""
    count = (1 << 20) + 1
    body = b"\xff\xff" + bytes(6) + struct.pack(">i", count) + bytes(6 * count)
    with pytest.raises(MalformedFrameError, match="more than 1048576 topics and partitions"):
        produce(Plane(), HEADER + body, 3)


def test_tagged_fields_that_nobody_knows_are_skipped() -> None:
    plane = Plane()
    plane.open()
    frame = produce_frame(9, {T: batch()})
    assert frame.endswith(b"\0\0\0")
    tagged = frame[:-3] + b"\2\5\3abc\x90\x4e\0" + b"\1\0\0" + b"\1\7\2xy"
    produced = plane.engine.produce(tagged, len(HEADER), 9, now_ms=NOW_MS)
    assert not produced.failed
    assert plane.engine.offsets(0)[3] == 1


@given(st.data())
def test_a_damaged_frame_is_answered_or_malformed(data: st.DataObject) -> None:
    plane = Plane()
    plane.open()
    is_produce = data.draw(st.booleans())
    version = data.draw(st.sampled_from(PRODUCE_VERSIONS if is_produce else FETCH_VERSIONS))
    whole = produce_frame(version, {T: batch(b"a")}) if is_produce else fetch_frame(version, {T: 0})
    frame = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(len(HEADER), len(frame) - 1))
        frame[place] = data.draw(st.integers(0, 255))
    call = produce if is_produce else fetch
    with suppress(MalformedFrameError):
        call(plane, bytes(frame), version)

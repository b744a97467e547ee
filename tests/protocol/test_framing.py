import sys
import tracemalloc
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import MalformedFrameError
from ottla.protocol.framing import Frames, framed


def taken(frames: Frames) -> list[bytes]:
    """Every whole frame."""
    return list(iter(frames.take, None))


@given(
    bodies=st.lists(st.binary(max_size=40), max_size=20),
    cuts=st.lists(st.integers(0, 900), max_size=20),
)
def test_a_stream_cut_anywhere_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(b"".join(framed([body])) for body in bodies)
    frames, found, begin = Frames(max_bytes=40), [], 0
    for end in (*sorted(min(cut, len(stream)) for cut in cuts), len(stream)):
        frames.feed(stream[begin:end])
        found += taken(frames)
        begin = end
    assert found == bodies
    assert frames.held_bytes == 0


@given(
    sizes=st.lists(st.sampled_from([0, 1, 5, 4095, 4096, 9000, 30_000]), max_size=6),
    pieces=st.lists(st.sampled_from([1, 3, 4, 100, 4095, 4096, 20_000]), min_size=1, max_size=12),
    is_taken=st.lists(st.booleans(), min_size=1, max_size=3),
)
def test_large_frames_are_put_together_from_pieces_of_any_size(
    sizes: list[int], pieces: list[int], is_taken: list[bool]
) -> None:
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b"".join(b"".join(framed([body])) for body in bodies)
    frames, found, begin, turn = Frames(max_bytes=30_000), [], 0, 0
    while begin < len(stream):
        piece = pieces[turn % len(pieces)] * (1 if begin < 1000 else 10)
        frames.feed(stream[begin : begin + piece])
        begin += piece
        # Frames are not taken while one before them waits for its answer.
        if is_taken[turn % len(is_taken)]:
            found += taken(frames)
        held = min(begin, len(stream)) - sum(4 + len(body) for body in found)
        assert frames.held_bytes == held
        assert frames.missing_bytes <= 30_000
        turn += 1
    assert found + taken(frames) == bodies


def test_a_frame_stays_the_same_whatever_is_fed_after_it() -> None:
    frames = Frames(max_bytes=10)
    received = bytearray(b"\0\0\0\3abc\0\0\0\1")
    frames.feed(memoryview(received))
    first = frames.take()
    received[:] = bytes(len(received))
    frames.feed(b"d")
    assert (first, frames.take(), frames.take()) == (b"abc", b"d", None)


@pytest.mark.parametrize(("size", "is_refused"), [(99, False), (100, False), (101, True)])
def test_a_frame_above_the_bound_is_refused_before_it_is_there(size: int, is_refused: bool) -> None:
    frames = Frames(max_bytes=100)
    frames.feed(b"\0\0\0\2ok" + size.to_bytes(4, "big"))
    assert frames.take() == b"ok"
    if is_refused:
        with pytest.raises(MalformedFrameError, match="a frame of 101 bytes, where 100 are the"):
            frames.take()
    else:
        assert frames.take() is None


@pytest.mark.parametrize(
    ("begin", "what"),
    [(b"\x16\x03\x01\x02", "TLS"), (b"GET /", "HTTP"), (b"POST /", "HTTP"), (b"SSH-", None)],
)
def test_what_is_another_protocol_is_told_by_its_name(begin: bytes, what: str | None) -> None:
    frames = Frames(max_bytes=100 << 20)
    frames.feed(begin)
    with pytest.raises(MalformedFrameError) as caught:
        frames.take()
    hint = f"; it begins as {what} does, which is not spoken here"
    assert (hint in str(caught.value)) is (what is not None)
    assert ("begins as" in str(caught.value)) is (what is not None)


def test_a_negative_size_is_refused_each_time() -> None:
    frames = Frames(max_bytes=100)
    frames.feed(b"\xff\xff\xff\xff")
    for _ in range(2):
        with pytest.raises(MalformedFrameError, match="a frame of -1 bytes"):
            frames.take()


def test_a_frame_that_comes_byte_by_byte_takes_little_more_memory_than_its_bytes() -> None:
    frames = Frames(max_bytes=1 << 20)
    stream = b"".join(framed([bytes(100_000)]))
    tracemalloc.start()
    for byte in stream:
        frames.feed(bytes([byte]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert frames.take() == bytes(100_000)
    assert peak < 130_000


def lines_run(count: int) -> int:
    """How many lines of code so many small frames in one buffer take."""
    frames, lines = Frames(max_bytes=10), 0
    frames.feed(b"\0\0\0\1a" * count)

    def on_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return on_line

    previous = sys.gettrace()
    sys.settrace(on_line)
    try:
        assert len(taken(frames)) == count
    finally:
        sys.settrace(previous)
    return lines


def test_many_small_frames_in_one_buffer_are_linear() -> None:
    assert lines_run(2_000) < 2.1 * lines_run(1_000)


def test_cutting_small_frames_copies_nothing_but_them() -> None:
    # 64 MiB would be copied 500 times over if each frame took the rest of the buffer along.
    frames = Frames(max_bytes=1 << 20)
    frames.feed(b"".join(b"".join(framed([bytes(131_072)])) for _ in range(500)))
    tracemalloc.start()
    while (frame := frames.take()) is not None:
        assert len(frame) == 131_072
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300_000

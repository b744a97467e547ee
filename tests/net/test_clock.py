"""The broker's clock goes forward only, at its own speed or at none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.net.clock import Clock

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(0, 10**12)),
        st.tuples(st.sampled_from(["freeze", "resume"]), st.just(0)),
    )
)


@given(STEPS, st.one_of(st.none(), st.integers(0, 2**42)))
def test_it_never_goes_back_and_moves_by_what_it_is_advanced(
    steps: list[tuple[str, int]], frozen_at_ms: int | None
) -> None:
    clock = Clock(frozen_at_ms)
    for deed, duration_ms in steps:
        before = clock.now_ms()
        if deed == "advance":
            clock.advance(duration_ms)
        elif deed == "freeze":
            clock.freeze()
        else:
            clock.resume()
        assert clock.is_frozen == (deed == "freeze" or (deed == "advance" and clock.is_frozen))
        passed = clock.now_ms() - before - duration_ms
        assert passed >= 0
        assert passed == 0 or not clock.is_frozen or deed == "freeze"


def test_real_time_is_that_of_the_system() -> None:
    assert abs(Clock().now_ms() - time.time_ns() // 1_000_000) < 1000


def test_a_deadline_of_a_frozen_clock_never_comes_by_itself() -> None:
    clock = Clock(frozen_at_ms=100)
    assert [clock.until_ms(moment) for moment in (None, 99, 100, 101)] == [None, 0, 0, None]
    clock.advance(1)
    assert clock.until_ms(101) == 0
    clock.resume()
    assert clock.until_ms(60_101) in range(50_000, 60_001)


def test_it_is_not_advanced_backwards() -> None:
    with pytest.raises(ValueError, match="duration_ms is -1"):
        Clock().advance(-1)

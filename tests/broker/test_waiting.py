"""What waits is attempted when it is woken or due, in order, and never twice."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from ottla.broker.waiting import Waiting, WaitingList

Attempt = Callable[[bool, int], bool]


def done_after(effect: Callable[[], object]) -> Attempt:
    def attempt(_is_due: bool, _now_ms: int) -> bool:
        effect()
        return True

    return attempt


def recorder(
    into: list[tuple[str, bool, int]], name: str, done: bool
) -> Callable[[bool, int], bool]:
    def attempt(is_due: bool, now_ms: int) -> bool:
        into.append((name, is_due, now_ms))
        return done

    return attempt


def test_what_is_due_is_attempted_by_deadline_and_then_by_age() -> None:
    seen: list[tuple[str, bool, int]] = []
    waiting = WaitingList()
    for name, deadline_ms in (("late", 30), ("early", 10), ("second", 10)):
        waiting.add(Waiting(deadline_ms, recorder(seen, name, done=True)))
    assert waiting.next_deadline_ms() == 10
    waiting.tick(9)
    assert seen == []
    waiting.tick(30)
    assert seen == [("early", True, 30), ("second", True, 30), ("late", True, 30)]
    assert waiting.next_deadline_ms() is None
    assert len(waiting) == 0


def test_what_is_woken_stays_until_it_is_done_and_ends_at_its_deadline() -> None:
    seen: list[tuple[str, bool, int]] = []
    waiting = WaitingList()
    waiting.add(Waiting(50, recorder(seen, "fetch", done=False), ["orders"]))
    waiting.wake("payments")
    waiting.wake("orders")
    waiting.settle(1)
    waiting.wake("orders")
    waiting.tick(2)
    waiting.tick(50)
    waiting.wake("orders")
    waiting.tick(51)
    assert seen == [("fetch", False, 1), ("fetch", False, 2), ("fetch", True, 50)]


def test_a_heartbeat_postpones_a_session_without_growing_the_list() -> None:
    seen: list[tuple[str, bool, int]] = []
    waiting = WaitingList()
    session = waiting.add(Waiting(10, recorder(seen, "session", done=True)))
    for now_ms in range(10_000):
        waiting.postpone(session, now_ms + 10)
        waiting.tick(now_ms)
    assert seen == []
    assert len(waiting._heap) <= 2
    waiting.tick(10_009)
    assert seen == [("session", True, 10_009)]


def test_what_is_cancelled_is_neither_woken_nor_due_and_takes_no_memory() -> None:
    seen: list[tuple[str, bool, int]] = []
    waiting = WaitingList()
    for number in range(10_000):
        one = waiting.add(Waiting(number, recorder(seen, "x", done=True), [number]))
        waiting.cancel(one)
        waiting.cancel(one)
    assert len(waiting._heap) < 200
    assert not waiting._watchers
    waiting.wake(5)
    waiting.tick(1 << 40)
    assert seen == []


def test_an_attempt_may_add_cancel_and_wake() -> None:
    seen: list[str] = []
    waiting = WaitingList()
    other = waiting.add(Waiting(99, done_after(lambda: seen.append("other")), ["a"]))

    def first(_is_due: bool, now_ms: int) -> bool:
        seen.append("first")
        waiting.cancel(other)
        waiting.wake("b")
        waiting.add(Waiting(now_ms, done_after(lambda: seen.append("added"))))
        return True

    waiting.add(Waiting(99, first, ["a"]))
    waiting.add(Waiting(99, done_after(lambda: seen.append("woken")), ["b"]))
    # Those who watch a key are attempted by age.
    waiting.cancel(other)
    waiting.wake("a")
    waiting.tick(7)
    assert seen == ["first", "woken", "added"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "cancel", "postpone", "wake", "tick"]),
            st.integers(0, 20),
            st.integers(0, 9),
        ),
        max_size=60,
    )
)
def test_any_history_equals_a_plain_list_of_deadlines(steps: list[tuple[str, int, int]]) -> None:
    """The naive twin: everything that waits in one list, looked through at each step."""
    waiting, plain = WaitingList(), dict[int, int]()
    found: list[int] = []
    items: dict[int, Waiting] = {}
    now_ms = 0
    for verb, number, key in steps:
        if verb == "add" and key not in plain:
            plain[key] = now_ms + number
            items[key] = waiting.add(
                Waiting(now_ms + number, done_after(partial(found.append, key)), [key])
            )
        elif verb == "cancel" and key in items:
            plain.pop(key, None)
            waiting.cancel(items[key])
        elif verb == "postpone" and key in plain:
            plain[key] = now_ms + number
            waiting.postpone(items[key], now_ms + number)
        elif verb in {"wake", "tick"}:
            if verb == "wake":
                waiting.wake(key)
            now_ms += number
            expected = {key} & set(plain) if verb == "wake" else set()
            expected |= {each for each, deadline_ms in plain.items() if deadline_ms <= now_ms}
            found.clear()
            waiting.tick(now_ms)
            assert sorted(found) == sorted(expected)
            for each in expected:
                del plain[each]
            assert len(waiting) == len(plain)
            upcoming = waiting.next_deadline_ms()
            assert (upcoming is None) == (not plain)
            assert upcoming is None or upcoming <= min(plain.values())

"""Work done ahead by threads, without Spark."""

import threading
from collections.abc import Iterator

import pytest
from ottla.spark.work.ahead import work_ahead

AT_ONCE = 4


def test_answers_come_in_the_order_of_the_items() -> None:
    done = [threading.Event() for _ in range(40)]

    def work(number: int) -> int:
        # Each waits for the one behind it, if that may run at the same time.
        if number % AT_ONCE != AT_ONCE - 1:
            assert done[number + 1].wait(60)
        done[number].set()
        return -number

    assert list(work_ahead(work, range(40), AT_ONCE)) == [-number for number in range(40)]


def test_no_more_is_taken_than_is_worked_on() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    answers = work_ahead(lambda number: number, items(), AT_ONCE)
    for number in range(20):
        assert next(answers) == number
        assert len(asked) <= number + 1 + AT_ONCE
    answers.close()  # type: ignore[attr-defined]
    assert len(asked) <= 20 + AT_ONCE
    assert not [each for each in threading.enumerate() if each.name.startswith("ottla-ahead")]


def test_a_failure_comes_in_place_of_its_answer() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise OSError("gone")
        return number

    answers = work_ahead(work, range(9), AT_ONCE)
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="gone"):
        next(answers)

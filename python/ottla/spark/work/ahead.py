"""Work done ahead of whoever takes the answers, a bounded part of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def work_ahead(
    work: Callable[[Item], Answer], items: Iterable[Item], at_once: int
) -> Iterator[Answer]:
    """Yields the answers to items, in their order, worked on by threads.

    At most `at_once` items are worked on or wait to be taken. An exception of the work is raised in
    place of its answer.
    """
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[Future[Answer]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="ottla-ahead") as executor:
        try:
            for item in items:
                if len(pending) == at_once:
                    yield pending.popleft().result()
                pending.append(executor.submit(work, item))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

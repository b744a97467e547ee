"""Threads that work together until all of them are done.

`concurrent.futures` does the same and more; importing it takes as long as auditing a small log.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def work_together(count: int, work: Callable[[], object], stop: Callable[[], object]) -> None:
    """Has so many threads work, and raises what the first of them that failed has raised.

    Args:
        count: the number of threads.
        work: what each of them calls, once.
        stop: called when a thread has failed, and on Ctrl-C: has the others return soon.
    """
    failures: list[BaseException] = []

    def member() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failures.append(error)
            stop()

    crew = [threading.Thread(target=member, name=f"ottla-audit-{n}") for n in range(count)]
    started: list[threading.Thread] = []
    try:
        for thread in crew:
            thread.start()
            started.append(thread)
        for thread in started:
            thread.join()
    except BaseException:
        stop()
        for thread in started:
            thread.join()
        raise
    if failures:
        raise failures[0]

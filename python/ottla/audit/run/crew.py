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
    # Not `Thread.join`: up to Python 3.12 a Ctrl-C in it has a thread that still runs be taken for
    # one that has ended, and the interpreter would end around it.
    ended = threading.Semaphore(0)

    def member() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failures.append(error)
            stop()
        finally:
            ended.release()

    running = 0
    try:
        for n in range(count):
            threading.Thread(target=member, name=f"ottla-audit-{n}").start()
            running += 1
        while running:
            ended.acquire()
            running -= 1
    except BaseException:
        stop()
        for _ in range(running):
            ended.acquire()
        raise
    if failures:
        raise failures[0]

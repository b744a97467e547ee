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

    def member(ended: threading.Event) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failures.append(error)
            stop()
        finally:
            ended.set()

    # Not `Thread.join`: up to Python 3.12 a Ctrl-C in it has a thread that still runs be taken for
    # one that has ended, and the interpreter would end around it.
    started: list[threading.Event] = []
    try:
        for n in range(count):
            ended = threading.Event()
            threading.Thread(target=member, args=(ended,), name=f"ottla-audit-{n}").start()
            started.append(ended)
        for ended in started:
            ended.wait()
    except BaseException:
        stop()
        for ended in started:
            ended.wait()
        raise
    if failures:
        raise failures[0]

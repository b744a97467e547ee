"""Threads that work together end together, also after Ctrl-C."""

import os
import signal
import threading
import time

import pytest
from ottla.audit.run.crew import work_together


def test_after_ctrl_c_no_thread_still_works() -> None:
    told = threading.Event()
    entered = threading.Event()
    ended = threading.Event()

    def work() -> None:
        entered.set()
        told.wait()
        # As a thread that is in the middle of a window.
        time.sleep(0.1)
        ended.set()

    def interrupt() -> None:
        entered.wait()
        # By now the caller most likely waits for it; else it is told again.
        while not told.wait(0.5):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        work_together(1, work, told.set)
    signal.signal(signal.SIGINT, before)
    assert ended.is_set()
    other.join()


def test_what_the_first_thread_that_failed_has_raised_is_raised() -> None:
    told = threading.Event()
    numbers = iter((0, 1))

    def work() -> None:
        if next(numbers) == 0:
            raise ZeroDivisionError
        told.wait()

    with pytest.raises(ZeroDivisionError):
        work_together(2, work, told.set)
    assert told.is_set()

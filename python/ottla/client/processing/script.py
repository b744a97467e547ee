"""Steps written down once, for callers that wait and for those that await.

A script is a generator: it yields calls, and gets back what each returned, or raised. `run` makes
them one after the other; `run_async` awaits those that are to be awaited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Script", "run", "run_async"]

R = TypeVar("R")

Script: TypeAlias = Generator[Callable[[], Any], Any, R]


def run(script: Script[R]) -> R:
    """Plays a script, and returns what it returns."""
    try:
        call = next(script)
        while True:
            try:
                value = call()
            except BaseException as error:  # noqa: BLE001 - it is the script's to deal with
                call = script.throw(error)
            else:
                call = script.send(value)
    except StopIteration as end:
        returned: R = end.value
        return returned


async def run_async(script: Script[R]) -> R:
    """Plays a script whose calls may have to be awaited, and returns what it returns."""
    try:
        call = next(script)
        while True:
            try:
                value = call()
                if isinstance(value, Awaitable):
                    value = await value
            except GeneratorExit:
                script.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is the script's to deal with
                call = script.throw(error)
            else:
                call = script.send(value)
    except StopIteration as end:
        returned: R = end.value
        return returned

"""An event loop that runs between commands as well, for clients on asyncio."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Loop:
    """A loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what a coroutine comes to."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def outcomes(
    sending: list[Coroutine[Any, Any, asyncio.Future[Any]]],
) -> list[BaseException | None]:
    """Send records one after the other, and return what came of each."""
    sent: list[asyncio.Future[Any] | BaseException] = []
    for each in sending:
        try:
            sent.append(await each)
        except Exception as error:  # noqa: BLE001 - what it raises is what is measured
            sent.append(error)
    told: list[BaseException | None] = []
    for future in sent:
        if isinstance(future, BaseException):
            told.append(future)
            continue
        outcomes: Any = await asyncio.gather(future, return_exceptions=True)
        told += [one if isinstance(one, BaseException) else None for one in outcomes]
    return told

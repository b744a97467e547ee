"""A fault in a test's hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.testing.desk import Desk

__all__ = ["FaultHandle"]


class FaultHandle:
    """A fault that was set by `ottla.testing.Broker.fail`; as a context it is gone at the end."""

    def __init__(self, desk: Desk, number: int, arguments: Mapping[str, object]) -> None:
        self._desk = desk
        self._number = number
        self._arguments = arguments

    @property
    def hits(self) -> int:
        """How often it has struck.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, broker.fail("Fetch", delay=1) as fault:
        ...     fault.hits
        0
        """
        hits: int = self._desk.call("hits", fault=self._number)
        return hits

    def wait(self, hits: int = 1, *, timeout_s: float = 10.0) -> None:
        """Returns once it has struck so often.

            >>> from ottla.testing import Broker
            >>> with Broker() as broker:
            ...     broker.fail("Fetch", observe=True).wait(timeout_s=0)
            Traceback (most recent call last):
            TimeoutError: the fault was to strike 1 times within 0 s: it has struck 0 times

        Raises:
            TimeoutError: it has not, with how often it has.
        """
        __tracebackhide__ = True
        self._desk.wait("wait", timeout_s, fault=self._number, hits=hits)

    async def wait_async(self, hits: int = 1, *, timeout_s: float = 10.0) -> None:
        """Waits as `wait` does, and lets other coroutines go on meanwhile.

        >>> import asyncio
        >>> from ottla.testing import Broker
        >>> async def wait():
        ...     async with Broker() as broker:
        ...         await broker.fail("Fetch").wait_async(0)
        >>> asyncio.run(wait())
        """
        __tracebackhide__ = True
        await self._desk.wait_async("wait", timeout_s, fault=self._number, hits=hits)

    def pause(self) -> None:
        """Has requests that match wait, unanswered, until `release` or `remove`.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, broker.fail("Fetch", delay=1) as fault:
        ...     fault.pause()
        """
        self._desk.call("pause", fault=self._number)

    def release(self) -> None:
        """Lets requests go on that wait, and those to come.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, broker.fail("Fetch", delay=1) as fault:
        ...     fault.pause()
        ...     fault.release()
        """
        self._desk.call("release", fault=self._number)

    def remove(self) -> None:
        """Takes it away; nothing if it is gone. What it has struck can still be read.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker:
        ...     fault = broker.fail("Fetch", error="KAFKA_STORAGE_ERROR")
        ...     fault.remove()
        """
        self._desk.call("remove", fault=self._number)

    def __enter__(self) -> FaultHandle:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        # What was left out is None, 0 or False, all but a partition 0.
        given = [
            f"{name}={value!r}"
            for name, value in self._arguments.items()
            if value or (name == "partition" and value is not None)
        ]
        return f"<FaultHandle {', '.join(given) or 'of everything'}>"

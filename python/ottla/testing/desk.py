"""Where a test's questions go to: a broker in this process, or in one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.net.operations import Operations
from ottla.testing.options import address_of, prepare, server_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker as Core
    from ottla.net.server import Server
    from ottla.testing.options import Options

__all__ = ["Desk", "InProcess"]


class Desk(Protocol):
    """A running broker, asked by the names of `ottla.net.operations.Operations`."""

    def start(self) -> None:
        """Begins to serve."""

    def stop(self) -> None:
        """Ends it."""

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens."""

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """Returns what an operation returns."""

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Returns once there is what an operation waits for.

        Raises:
            TimeoutError: it did not come, with what is there instead.
        """

    async def wait_async(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Waits as `wait` does."""

    @property
    def server(self) -> Server[Core]:
        """The server itself.

        Raises:
            ValueError: it is in another process.
        """


class InProcess:
    """A broker in this process, on a thread of its own."""

    def __init__(self, options: Options, log: Callable[[str], None] | None) -> None:
        self.server = server_of(options, log)
        self._options = options
        self._operations = Operations(self.server)

    def start(self) -> None:
        """Begins to serve.

        Raises:
            KafkaError: a topic that Kafka would not create.
        """
        self.server.start()
        try:
            prepare(self._options, self.server, self._operations)
        except BaseException:
            self.server.stop()
            raise

    def stop(self) -> None:
        """Ends it."""
        self.server.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens."""
        return address_of(self.server)

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """Returns what an operation returns."""
        return getattr(self._operations, operation)(**arguments)

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Returns once there is what an operation waits for."""
        # pytest shows the line of the test, and not how it is waited here.
        __tracebackhide__ = True
        wanted = self.call(operation, **arguments)
        found = self.server.wait(lambda _: wanted.look(), timeout_s)
        if found:
            raise TimeoutError(wanted.lateness(found, timeout_s))

    async def wait_async(self, operation: str, timeout_s: float, /, **arguments: Any) -> None:
        """Waits as `wait` does."""
        # pytest shows the line of the test, and not how it is waited here.
        __tracebackhide__ = True
        wanted = self.call(operation, **arguments)
        found = await self.server.wait_async(lambda _: wanted.look(), timeout_s)
        if found:
            raise TimeoutError(wanted.lateness(found, timeout_s))

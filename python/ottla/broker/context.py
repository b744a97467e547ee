"""One request on its way through the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.api import Api
    from ottla.broker.connection import Connection
    from ottla.broker.image import Image
    from ottla.broker.trace import Trace
    from ottla.protocol.wire import Message

__all__ = ["LATER", "Context", "Later"]


class Later:
    """The type of `LATER`."""


LATER: Final = Later()
"""A handler returns it when it will answer by `Context.reply`; the next frame waits until then."""


class Home(Protocol):
    """What a request needs of the broker that serves it."""

    image: Image

    def answer(self, context: Context, response: Message) -> None:
        """Answers a request."""


class Context:
    """What a handler may know beside the request itself.

    Attributes:
        api: the row of its API.
        version: version of the request.
        client_id: as the request's header has it; null reads as empty.
        connection: where it came from.
        image: the cluster when the request arrived: one request sees one image.
        now_ms: the broker's clock when the request arrived.
        send: takes the parts of the answer, its header included; `None` closes the connection.
        is_answered: whether it was.
        spared_by: faults whose condition it does not meet.
        is_held: whether the answer waits until what it rests on is on the disk.
        trace: what the log of requests remembers of it until then.
    """

    __slots__ = (
        "_home",
        "api",
        "client_id",
        "connection",
        "correlation_id",
        "image",
        "is_answered",
        "is_held",
        "now_ms",
        "send",
        "spared_by",
        "trace",
        "version",
    )

    def __init__(  # noqa: PLR0917 - one for each request, and names would cost half of it
        self,
        home: Home,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str,
        connection: Connection,
        now_ms: int,
        send: Callable[[list[bytes] | None], None],
    ) -> None:
        self._home = home
        self.image = home.image
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.now_ms = now_ms
        self.is_answered = False
        self.is_held = False
        self.spared_by: tuple[object, ...] = ()
        self.trace: Trace | None = None
        self.send = send

    @property
    def principal(self) -> str:
        """Who asks."""
        return self.connection.principal

    def reply(self, response: Message) -> None:
        """Sends the answer of a handler that returned `LATER`; only the first counts."""
        if not self.is_answered:
            self._home.answer(self, response)

"""What answers requests of HTTP beside the broker, on the server's thread.

A site is served as the broker is (`Served`), with the same bounds; of requests it gets
`HttpRequest` in place of frames, and what it sends is an answer as `http_answer` makes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ottla.net.http import HttpRefusal, http_answer

if TYPE_CHECKING:
    from ottla.net.http import HttpRequest
    from ottla.net.served import Peer, Send

__all__ = ["Site"]


class Site(ABC):
    """Answers requests; the base of all sites, which define `answer`.

    Attributes:
        max_body_bytes: of a request.
    """

    max_body_bytes = 0

    def connect(self, peer: Peer) -> Any:
        """Returns what is known of a client."""
        return peer

    def disconnect(self, connection: Any) -> None:  # noqa: B027 - most have nothing to forget
        """Forgets a client."""

    def handle(self, connection: Any, request: Any, now_ms: int, send: Send) -> bool:
        """Takes a request; whether the next one waits until it is answered."""
        try:
            if isinstance(request, HttpRefusal):
                raise request
            return self.answer(connection, request, now_ms, send)
        except HttpRefusal as refusal:
            is_last = refusal is request or request.is_last
            send(http_answer(refusal.status, f"{refusal.message}\n".encode(), is_last=is_last))
            return False

    @abstractmethod
    def answer(self, connection: Any, request: HttpRequest, now_ms: int, send: Send) -> bool:
        """Answers a request, or returns true and does so later.

        An `HttpRefusal` that it raises is the answer.
        """

    def tick(self, now_ms: int) -> None:  # noqa: B027 - as above, nothing to do
        """Does nothing: what is due is the broker's."""

    def next_deadline_ms(self) -> int | None:
        """Returns when something is due: never."""
        return None

"""One request of a group's, and who hears what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.network.exchange import Exchange
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.protocol.wire import Message

__all__ = ["Call"]


class Call(Exchange):
    """A request whose message is made of the fields that its version has.

    Args:
        request: the class of the message.
        fields: its values, of all versions.
        answered: gets this call, the answer and the time.
        failed: gets this call, why no answer comes, and the time.
        versions: those that it can be made in.
        timeout_ms: until it fails.

    Attributes:
        node_id: whom it was sent to.
        sent_ms: when it was handed over.
        version: that it was answered in.
    """

    def __init__(
        self,
        request: type[Message],
        fields: Mapping[str, Any],
        answered: Callable[[Call, Any, int], None],
        failed: Callable[[Call, Exception, int], None],
        *,
        versions: range | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        self.request = request
        self.fields = fields
        self.versions = versions
        self.timeout_ms = timeout_ms
        self.node_id: int | None = None
        self.sent_ms = 0
        self.version = -1
        self._answered = answered
        self._failed = failed

    def message(self, version: int) -> Message:
        """Returns what a version has of it."""
        return self.request(
            **{
                field.name: self.fields[field.name]
                for field in schema(self.request).fields
                if version in field.versions and field.name in self.fields
            }
        )

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        """Passes the answer on."""
        self.version = version
        self._answered(self, response, now_ms)

    def failed(self, error: Exception, now_ms: int) -> None:
        """Passes on why no answer comes."""
        self._failed(self, error, now_ms)

"""A request and what becomes of it: what the parts of a client ask of the network.

A part hands a `Request` to `Network.send` and hears exactly once what became of it: `answered` or
`failed`, from within a later call into the network, never from within `send`. It sends nothing
again by itself: whether to repeat is for the part that asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ottla.client.errors import KafkaError
    from ottla.client.network.metadata import Metadata
    from ottla.client.network.warned import Warned
    from ottla.protocol.wire import Message

__all__ = ["ANY_NODE", "Exchange", "Network"]

ANY_NODE = None
"""Whichever broker is there, and has the least to do."""


class Exchange(ABC):
    """One request, made for the version that a broker has in common with the client.

    Attributes:
        request: the class of its message, which tells the API and the versions known here.
        versions: those that it can be made in; ``None`` for all that are known here.
        timeout_ms: from the time it is handed over, until it fails; ``None`` for
            `request_timeout_ms` of the settings.
        has_answer: whether a broker answers it (not a Produce with acks 0): one without is answered
            with ``None`` once it is written.
    """

    request: type[Message]
    versions: range | None = None
    timeout_ms: int | None = None
    has_answer = True

    @abstractmethod
    def message(self, version: int) -> Message:
        """Returns the message to send in a version."""

    @abstractmethod
    def answered(self, response: Any, version: int, now_ms: int) -> None:
        """The answer has come."""

    @abstractmethod
    def failed(self, error: KafkaError | Exception, now_ms: int) -> None:
        """No answer comes.

        Args:
            error: a `NetworkError` where the connection broke or could not be made, or the time of
                the request is over (`is_sent` tells whether the broker may have seen it); an
                `AuthenticationError`, an `UnsupportedVersionError`, an `InvalidRequestError`, which
                do not pass by themselves; a `CorrelationIdMismatchError` or another
                `IllegalStateError` where the broker broke the protocol.
            now_ms: the time.
        """


class Network(Protocol):
    """What parts of a client see of it."""

    @property
    def metadata(self) -> Metadata:
        """The cluster as it was last told."""

    @property
    def warned(self) -> Warned:
        """What is to be logged."""

    def send(self, node_id: int | None, exchange: Exchange, now_ms: int) -> None:
        """Has a request sent to a node as soon as a connection to it is ready; connects if needed.

        Args:
            node_id: of the metadata or of a coordinator that was told; `ANY_NODE` for any.
            exchange: the request.
            now_ms: the time.
        """

    def may_send(self, node_id: int, now_ms: int) -> bool:
        """Whether a request to a node would leave at once, or as soon as it is connected.

        Not where the node waits for its next attempt to connect, is throttled (KIP-219), or has
        `max_in_flight_requests_per_connection` requests under way.
        """

    def chance_ms(self, node_id: int) -> int | None:
        """Returns when `may_send` may become true by the clock alone.

        That is the next attempt to connect, or the end of a pause that the node asked for
        (KIP-219); ``None`` where it takes an event, such as an answer. It may lie in the past.
        """

    def version_of(self, node_id: int, request: type[Message]) -> int | None:
        """Returns the version that a node is asked in; ``None`` before it is connected.

        Raises:
            UnsupportedVersionError: there is none in common.
        """

    def features_of(self, node_id: int) -> dict[str, int]:
        """Returns the levels of features that a node has told, as ``transaction.version``."""

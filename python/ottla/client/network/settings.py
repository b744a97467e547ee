"""The settings that connections and metadata need, by Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["NetworkSettings"]


class NetworkSettings(Protocol):
    """Those that all clients have."""

    @property
    def bootstrap_servers(self) -> Sequence[str]:
        """Addresses as ``host:port``."""

    @property
    def client_id(self) -> str:
        """What brokers call the client in logs and metrics."""

    @property
    def client_software_name(self) -> str:
        """Of KIP-511."""

    @property
    def client_software_version(self) -> str:
        """Of KIP-511."""

    @property
    def security_protocol(self) -> str:
        """One of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""

    @property
    def sasl_mechanism(self) -> str | None:
        """One of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."""

    @property
    def sasl_username(self) -> str | None:
        """Of PLAIN and SCRAM."""

    @property
    def sasl_password(self) -> str | None:
        """Of PLAIN and SCRAM."""

    @property
    def sasl_oauth_token(self) -> Callable[..., Any] | None:
        """Returns a token of OAUTHBEARER, or something that it can be awaited of."""

    @property
    def request_timeout_ms(self) -> int:
        """Until a request fails that no answer came to."""

    @property
    def max_in_flight_requests_per_connection(self) -> int:
        """How many requests may be without an answer on a connection."""

    @property
    def receive_message_max_bytes(self) -> int:
        """Of the largest answer that is taken."""

    @property
    def reconnect_backoff_ms(self) -> int:
        """Before a node is connected to again, the first time."""

    @property
    def reconnect_backoff_max_ms(self) -> int:
        """The same, at most."""

    @property
    def socket_connection_setup_timeout_ms(self) -> int:
        """Until a connection that is not there yet fails."""

    @property
    def socket_connection_setup_timeout_max_ms(self) -> int:
        """The same, at most, where it failed before."""

    @property
    def connections_max_idle_ms(self) -> int:
        """Until a connection that nobody uses is closed; -1 for never."""

    @property
    def retry_backoff_ms(self) -> int:
        """Before metadata is asked for again, the first time."""

    @property
    def retry_backoff_max_ms(self) -> int:
        """The same, at most."""

    @property
    def metadata_max_age_ms(self) -> int:
        """Until metadata is asked for again though nothing changed."""

    @property
    def allow_auto_create_topics(self) -> bool:
        """Whether brokers may create a topic that is asked for."""

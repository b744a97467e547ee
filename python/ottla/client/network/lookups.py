"""When metadata is asked for, and what is made of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import NetworkError
from ottla.client.network.backoff import Backoff
from ottla.client.network.exchange import Exchange
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.cluster import ClusterMetadata
    from ottla.client.network.settings import NetworkSettings

__all__ = ["Lookups"]


class _Lookup(Exchange):
    request = MetadataRequest

    def __init__(self, lookups: Lookups, topics: frozenset[str] | None) -> None:
        self._lookups = lookups
        self._topics = topics

    def message(self, version: int) -> MetadataRequest:
        topics: list[MetadataRequestTopic] | None
        if self._topics is None:
            topics = [] if version == 0 else None
        else:
            topics = [MetadataRequestTopic(name=name) for name in sorted(self._topics)]
        # Older brokers have no choice but their own.
        may_create = version < _WITH_CHOICE or self._lookups.may_create
        return MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        self._lookups.answered(response, version, now_ms)

    def failed(self, error: Exception, now_ms: int) -> None:
        self._lookups.failed(error, now_ms)


class Lookups:
    """One after the other; after a failure, and where topics are missing still, with a back-off."""

    def __init__(
        self,
        cluster: ClusterMetadata,
        settings: NetworkSettings,
        random: Callable[[], float],
        rebootstrap: Callable[[], None],
    ) -> None:
        self.may_create = settings.allow_auto_create_topics
        self._cluster = cluster
        self._max_age_ms = settings.metadata_max_age_ms
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._rebootstrap = rebootstrap
        self._is_under_way = False
        self._ended_ms: int | None = None
        self._answered_ms: int | None = None
        self._delay_ms = 0
        self._attempts = 0

    def next_deadline_ms(self) -> int | None:
        """Returns when metadata has to be asked for."""
        cluster = self._cluster
        if self._is_under_way:
            return None
        if self._ended_ms is None:
            return 0 if cluster.is_followed or cluster.wants_update else None
        if cluster.has_new and not self._attempts:
            return 0
        if cluster.wants_update or cluster.has_new:
            return self._ended_ms + self._delay_ms
        if cluster.is_followed and self._answered_ms is not None:
            return self._answered_ms + self._max_age_ms
        return None

    def begin(self, now_ms: int) -> Exchange | None:
        """Returns the request that is due, if any."""
        due_ms = self.next_deadline_ms()
        if due_ms is None or now_ms < due_ms:
            return None
        cluster = self._cluster
        cluster.wants_update = cluster.has_new = False
        self._is_under_way = True
        return _Lookup(self, None if cluster.follows_all else cluster.interest)

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        """An answer has come."""
        self._is_under_way = False
        self._ended_ms = now_ms
        cluster = self._cluster
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._rebootstrap()
            self._again()
        elif response.error_code or not cluster.accept(response, version, now_ms):
            self._again()
        else:
            self._answered_ms = now_ms
            if cluster.is_complete and not cluster.wants_update:
                self._attempts = 0
                self._delay_ms = self._backoff.delay_ms(1)
            else:
                self._again()

    def failed(self, error: Exception, now_ms: int) -> None:
        """No answer comes."""
        self._is_under_way = False
        self._ended_ms = now_ms
        self._again()
        if not isinstance(error, NetworkError):
            # It does not pass by itself: asked again when somebody wants something again.
            self._cluster.wants_update = False
            self._cluster.fail(error)

    def _again(self) -> None:
        self._attempts += 1
        self._delay_ms = self._backoff.delay_ms(self._attempts)
        self._cluster.wants_update = True


_WITH_CHOICE = 4

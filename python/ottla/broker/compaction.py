"""Compaction of topics: which logs, and when (KIP-58, KIP-354).

The plane makes a job of a log's sealed segments, `submit` has it run, and the broker's thread takes
it back. One job is on its way at a time, as with one thread of Kafka's cleaner.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.broker.configs.setting import parse
from ottla.broker.configs.topic import TOPIC_SETTINGS
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.image import Image, Topic
    from ottla.broker.plane import Compaction, CompactJob
    from ottla.broker.state import State

__all__ = ["Cleaner"]

_FIRST_PAUSE_MS = 15_000
_LONGEST_PAUSE_MS = 3_600_000
# As long a log is left alone for which there was no room.
_NO_ROOM_PAUSE_MS = 300_000
_SETTINGS = (
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
)


class _Topics(Protocol):
    def settings_of(self, configs: Mapping[str, str]) -> dict[str, str]: ...


class _Due(NamedTuple):
    name: str
    topic_id: bytes
    partition_index: int
    now_ms: int
    is_forced: bool

    @property
    def log(self) -> tuple[bytes, int]:
        return self.topic_id, self.partition_index

    def __str__(self) -> str:
        return f"{self.name}-{self.partition_index}"


class Cleaner:
    """Compacts the logs of topics whose ``cleanup.policy`` says so.

    Args:
        broker: whose logs.
        topics: what knows their settings.

    Attributes:
        submit: has a job run, and calls back when that is done; by default at once.
        uncleanable: why a log cannot be compacted, by topic id and partition. As with Kafka it is
            left alone from then on.
        done: how many compactions were done.
        say: takes a line about a log that cannot be compacted.
        keep: is called when a log has been compacted.
    """

    def __init__(self, broker: State, topics: _Topics) -> None:
        self.submit: Callable[
            [Callable[[], None], Callable[[BaseException | None], None]], None
        ] = _at_once
        self.uncleanable: dict[tuple[bytes, int], str] = {}
        self.done = 0
        self.say: Callable[[str], None] = _nobody
        self.keep: Callable[[], None] = _nothing
        self._broker = broker
        self._topics = topics
        self._options: dict[bytes, tuple[Mapping[str, str], BrokerConfig, dict[str, Any]]] = {}
        self._due: deque[_Due] = deque()
        self._not_before_ms: dict[tuple[bytes, int], int] = {}
        self._running: CompactJob | None = None
        self._is_beginning = False
        self._is_stopped = False
        self._seen: tuple[Image | None, BrokerConfig | None, int] = None, None, 0
        self._looked_ms = 0
        self._pause_ms = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left of what was begun."""
        return not self._due and self._running is None

    def look(self, now_ms: int) -> None:
        """Compacts what its settings say is due, unless the last look is not done with yet."""
        if not self.is_idle or self._is_quiet(now_ms):
            return
        self._forget_deleted()
        self._compact(self._broker.image.topics.values(), now_ms, is_forced=False)

    def _forget_deleted(self) -> None:
        """Forgets what is known of topics that are gone."""
        known = self._broker.image.topics_by_id
        self._options = {at: value for at, value in self._options.items() if at in known}
        for by_log in (self.uncleanable, self._not_before_ms):
            for topic_id, index in [each for each in by_log if each[0] not in known]:
                del by_log[topic_id, index]

    def _is_quiet(self, now_ms: int) -> bool:
        """Whether nothing has changed since the last look, which is soon enough past.

        What only time makes due is found a little later, so that days pass quickly for a clock that
        is advanced.
        """
        broker = self._broker
        image, config, stored_bytes = self._seen
        self._seen = broker.image, broker.config, broker.plane.stored_bytes
        is_same = image is broker.image and config is broker.config
        if not is_same or stored_bytes != broker.plane.stored_bytes:
            self._pause_ms = 0
        elif now_ms < self._looked_ms + self._pause_ms:
            return True
        else:
            self._pause_ms = min(2 * self._pause_ms + _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        self._looked_ms = now_ms
        return False

    def compact(self, topics: Iterable[Topic], now_ms: int) -> None:
        """Compacts topics with all that they hold, however little it is."""
        self._compact(topics, now_ms, is_forced=True)

    def compacts(self, topic: Topic) -> bool:
        """Returns whether the settings of a topic have it compacted."""
        return self._options_of(topic) is not None

    def stop(self) -> None:
        """Compacts no more: a job that runs ends early, and leaves its log as it was."""
        self._is_stopped = True
        self._due.clear()
        if self._running is not None:
            self._running.stop()

    def _compact(self, topics: Iterable[Topic], now_ms: int, *, is_forced: bool) -> None:
        if self._is_stopped:
            return
        for topic in topics:
            if self.compacts(topic):
                indexes = (partition.partition_index for partition in topic.partitions)
                self._due.extend(
                    _Due(topic.name, topic.topic_id, index, now_ms, is_forced) for index in indexes
                )
        self._begin()

    def _options_of(self, topic: Topic) -> dict[str, Any] | None:
        """Returns what a topic's settings say of its compaction, `None` for no compaction."""
        config = self._broker.config
        known = self._options.get(topic.topic_id)
        if known is None or known[0] is not topic.configs or known[1] is not config:
            texts = self._topics.settings_of(topic.configs)
            options: dict[str, Any] = {}
            if "compact" in texts["cleanup.policy"]:
                buffer_size = config.number("log.cleaner.dedupe.buffer.size")
                options = {
                    name.replace(".", "_"): parse(TOPIC_SETTINGS[name], texts[name])
                    for name in _SETTINGS
                }
                options["dedupe_buffer_size"] = buffer_size
            known = self._options[topic.topic_id] = topic.configs, config, options
        return known[2] or None

    def _begin(self) -> None:
        """Begins the next job, and with jobs that are done at once all of them."""
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            while self._due and self._running is None:
                due = self._due.popleft()
                job = self._job(due)
                if job is not None:
                    self._running = job
                    self.submit(job.run, self._taker(due, job))
        finally:
            self._is_beginning = False

    def _job(self, due: _Due) -> CompactJob | None:
        # The topic may be gone, or have other settings, since it was found.
        topic = self._broker.image.topics_by_id.get(due.topic_id)
        partition = topic and topic.partition(due.partition_index)
        if topic is None or not partition or due.log in self.uncleanable:
            return None
        not_before_ms = self._not_before_ms.get(due.log, due.now_ms)
        options = self._options_of(topic)
        if options is None or (due.now_ms < not_before_ms and not due.is_forced):
            return None
        try:
            return self._broker.plane.compact_job(
                partition.handle,
                now_ms=due.now_ms,
                is_forced=due.is_forced,
                **options,
            )
        except KafkaError:
            # It is offline.
            return None

    def _taker(self, due: _Due, job: CompactJob) -> Callable[[BaseException | None], None]:
        def take_back(error: BaseException | None) -> None:
            self._running = None
            if error is not None:
                self.say(f"{due} could not be compacted: {error}")
            elif (done := self._compacted(due, job)) is not None:
                self.done += 1
                self.keep()
                if not done.is_whole and not self._is_stopped:
                    # Behind the others, of which none waits for a log of very many keys.
                    self._due.append(due)
            self._begin()

        return take_back

    def _compacted(self, due: _Due, job: CompactJob) -> Compaction | None:
        self._not_before_ms.pop(due.log, None)
        try:
            return self._broker.plane.compacted(job)
        except KafkaError as error:
            if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                # The log is as it was, and perhaps there is room the next time.
                self._not_before_ms[due.log] = due.now_ms + _NO_ROOM_PAUSE_MS
                self.say(f"{due} could not be compacted: {error}")
            else:
                self.uncleanable[due.log] = str(error)
                self.say(f"{due} is compacted no more: {error}")
            return None


def _nobody(_line: str) -> None:
    """Hears nothing."""


def _nothing() -> None:
    """Keeps nothing."""


def _at_once(job: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
    job()
    then(None)

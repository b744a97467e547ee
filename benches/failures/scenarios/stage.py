"""What a scenario is, what it has in its hand, and what it observes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka.admin import AdminClient
from ottla.records import NewRecord, build_batch
from ottla.testing import Broker

from benches.failures.client import (
    AT_ONCE,
    IN_TIME,
    NO_ANSWER,
    OK,
    TIMEOUT_MS,
    Answer,
    Client,
    command_of,
)
from benches.failures.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOPIC = "orders"
GROUP = "readers"


@dataclass
class Observed:
    """What a client did, as data.

    Attributes:
        told: what came of each record of the failing send, or of the read: `ok` or an error.
        stored: values in the log afterwards, or those that readers of committed records get.
        read: values that a consumer returned.
        calls: what came of further calls, by what was asked, in order.
        time: of the call that the failure strikes, as a class.
        says_why: whether the broker's reason is among the words of the errors.
    """

    told: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    time: str = AT_ONCE
    says_why: bool = False

    @property
    def is_told_in_time(self) -> bool:
        """Tell whether the program knew when its time-out was over."""
        return self.time in {AT_ONCE, IN_TIME}


@dataclass(frozen=True)
class Wish:
    """What a user would have, and whether it was so."""

    text: str
    is_met: Callable[[Observed], bool]


@dataclass(frozen=True)
class Scenario:
    """A failure.

    Attributes:
        name: as in the results.
        title: a few words.
        story: what happens, in sentences.
        wishes: what a user would have.
        profile: of the broker's verdicts.
    """

    name: str
    title: str
    story: str
    wishes: tuple[Wish, ...]
    run: Callable[[Stage], Observed]
    profile: str = "kafka"


class Stage:
    """A broker, a proxy before it where it is asked for, and clients of one kind.

    Attributes:
        settings: of the first producer and the first consumer.
        made: what came of making the last producer.
    """

    def __init__(self, kind: str, profile: str) -> None:
        self._command = command_of(kind)
        self._clients: list[Client] = []
        self._proxy: Proxy | None = None
        self.settings: dict[str, dict[str, Any]] = {}
        self.made = Answer(0)
        self._profile = profile
        self.broker = self._start()

    def _start(self) -> Broker:
        return Broker(
            config={
                "auto.create.topics.enable": False,
                "group.initial.rebalance.delay.ms": 0,
            },
            profile=self._profile,
        ).start()

    def close(self) -> None:
        """End everything."""
        for client in self._clients:
            client.close()
        if self._proxy is not None:
            self._proxy.close()
        self.broker.stop()

    def topic(self, name: str = TOPIC, **configs: object) -> str:
        """Create a topic of one partition."""
        self.broker.create_topic(name, 1, **configs)
        return name

    @property
    def proxy(self) -> Proxy:
        """Return a proxy that clients are sent to from now on."""
        if self._proxy is None:
            made = Proxy(int(self.broker.bootstrap_servers.rpartition(":")[2]))
            self._proxy = made

            def advertise(core: Any) -> None:
                endpoints = core.image.brokers[core.node_id].endpoints
                for name in endpoints:
                    endpoints[name] = ("127.0.0.1", made.port)

            self.broker.run(advertise)
        return self._proxy

    @property
    def servers(self) -> str:
        """Return where clients connect."""
        if self._proxy is not None:
            return f"127.0.0.1:{self._proxy.port}"
        return self.broker.bootstrap_servers

    def producer(self, **options: str) -> Client:
        """Return a client with a producer."""
        client = self._client()
        self.made = self._make(client, "producer", options)
        return client

    def consumer(self, client: Client | None = None, **options: str) -> Client:
        """Return a client with a consumer, by default a new one."""
        made = client or self._client()
        self._make(made, "consumer", options)
        return made

    def _client(self) -> Client:
        client = Client(self._command)
        self._clients.append(client)
        return client

    def _make(self, client: Client, what: str, options: dict[str, str]) -> Answer:
        given = {"servers": self.servers, "timeout_ms": str(TIMEOUT_MS), **options}
        answer = client.ask(what, *(f"{name}={value}" for name, value in given.items()))
        if answer.error == OK:
            self.settings.setdefault(what, answer.settings)
        return answer

    def values(self, topic: str = TOPIC) -> list[str]:
        """Return the values in the log of a topic."""
        return [(record.value or b"").decode().rstrip() for record in self.broker.records(topic)]

    def committed(self, topic: str = TOPIC) -> list[str]:
        """Return the values that a reader of committed records gets from the start."""
        return values_of(self.broker.bootstrap_servers, topic, "read_committed")

    def fill(self, values: Sequence[str], topic: str = TOPIC) -> None:
        """Append values, each in a batch of its own."""
        self.broker.run(lambda core: _append(core, topic, values))

    def replace_records(self, offset: int, values: Sequence[str], topic: str = TOPIC) -> None:
        """Have a leader take over whose log is another from an offset on: an unclean election."""

        def replace(core: Any) -> None:
            found = core.image.topics[topic]
            partition = found.partitions[0]
            epoch = partition.leader_epoch + 1
            core.plane.truncate(partition.handle, offset, now_ms=_now_ms())
            core.plane.configure(partition.handle, leader_epoch=epoch)
            moved = found._replace(partitions=(partition._replace(leader_epoch=epoch),))
            core.image = core.image.with_topics([moved])
            _append(core, topic, values)

        self.broker.run(replace)

    def make_again(self, values: Sequence[str], topic: str = TOPIC) -> None:
        """Have a topic be deleted and created again, with other records."""

        def make(core: Any) -> None:
            now_ms = _now_ms()
            core.topics.delete([topic])
            wanted, checked = core.topics.check(topic, 1, -1, {})
            core.topics.create(topic, wanted, checked, now_ms)
            _append(core, topic, values)

        self.broker.run(make)

    def delete_records(self, start_offset: int, topic: str = TOPIC) -> None:
        """Have records be deleted."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        partition = confluent_kafka.TopicPartition(topic, 0, start_offset)
        for future in admin.delete_records([partition]).values():
            future.result(60)

    def forget_producers(self, start_offset: int, topic: str = TOPIC) -> None:
        """Have records be deleted, and what the partition knew of its producers."""

        def forget(core: Any) -> None:
            handle = core.image.partition(topic, 0).handle
            core.plane.delete_records(handle, start_offset)
            core.plane.expire_producers(1 << 60)

        self.broker.run(forget)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _append(core: Any, topic: str, values: Sequence[str]) -> None:
    handle = core.image.partition(topic, 0).handle
    now_ms = _now_ms()
    for value in values:
        batch = build_batch([NewRecord(b"k", value.encode(), now_ms)])
        core.plane.append(handle, batch, now_ms=now_ms)
    if values:
        core.moved((handle,))
        core.tick(now_ms)


def word(value: str, *, topic: str = TOPIC, key: str = "k", size: int = 0) -> str:
    """Return the word of a record."""
    return f"{topic},{key},{value},{size}"


def words(*values: int, topic: str = TOPIC) -> list[str]:
    """Return the words of records with numbers for values."""
    return [word(str(value), topic=topic) for value in values]


def told_of(answer: Answer) -> list[str]:
    """Return what came of each record, or of all of them."""
    return answer.told if answer.error == OK else [answer.error]


def read(client: Client, count: int, *, tries: int = 12) -> tuple[list[str], str, Answer]:
    """Return values until there are so many, or an error comes; and the error."""
    found: list[str] = []
    answer = Answer(0)
    for _ in range(tries):
        answer = client.ask("poll", "0.5")
        found += answer.read
        if answer.error != OK or len(found) >= count:
            break
    return found, answer.error, answer


def has_no_key(texts: Sequence[str]) -> bool:
    """Tell whether a text says so, in the words of Ottla's broker or of Kafka's."""
    return any("no key" in text or "without key" in text for text in texts)


def is_error(outcome: str) -> bool:
    """Tell whether that is an error, and one that was told."""
    return outcome not in {OK, NO_ANSWER}


def values_of(servers: str, topic: str, isolation: str) -> list[str]:
    """Return the values that a reader gets from the start to the end."""
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    found: list[str] = []
    try:
        reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        while True:
            message = reader.poll(30)
            if message is None or message.error() is not None:
                return found
            found.append(message.value().decode().rstrip())
    finally:
        reader.close()

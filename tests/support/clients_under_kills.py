"""Clients of Ottla that go on while their broker is killed, and remember what they were told.

One sends to two partitions, one writes transactions, one copies what the first has sent, with the
offsets of its group in the same transactions, and one reads what is committed as it comes.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ottla.client import (
    Consumer,
    KafkaError,
    Producer,
    RecordMetadata,
    TopicPartition,
    run_transaction,
)
from support.content import listed

PARTITIONS = 2
ENDS_WITHIN_S = 180
TOPICS = ("plain", "copied", "decided")
_ABORTS_EVERY = 5
# So that they meet the broker at work, and not only on its way up.
_SOON = {"reconnect_backoff_max_ms": 100, "retry_backoff_max_ms": 100}


class Clients:
    """Each in a thread of its own.

    Args:
        servers: where the broker is, or comes back.

    Attributes:
        sent: how many numbers were sent to each partition of ``plain``.
        acknowledged: those of them that were, in order.
        committed: the numbers of transactions that were.
        undecided: those of which it is not known.
        followed: what the reader of ``decided`` has seen, by partition.
        copies: how many transactions of copies there were.
        faults: what should not have happened.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self.sent = [0] * PARTITIONS
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.committed: list[int] = []
        self.undecided: set[int] = set()
        self.followed: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.copies = 0
        self.faults: list[str] = []
        self._ends: dict[int, int] = {}
        self._is_over = threading.Event()
        self._has_sent_all = threading.Event()
        self._has_decided_all = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(run,), name=run.__name__, daemon=True)
            for run in (self._produce, self._transact, self._copy, self._follow)
        ]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def wait_for_copies(self) -> None:
        """Returns once some more was copied: after a kill the group has to come together first."""
        before = self.copies
        for _ in range(ENDS_WITHIN_S * 100):
            if self.copies > before or self.faults:
                return
            self._is_over.wait(0.01)
        self.faults.append("nothing is copied")

    def finish(self) -> None:
        """Lets them end what they have begun, with a broker that stays."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)
            if thread.is_alive():
                self.faults.append(f"{thread.name} does not end")

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            self.faults.append(f"{run.__name__}: {error!r}")
        finally:
            # Others read on until then.
            if run == self._produce:
                self._has_sent_all.set()
            elif run == self._transact:
                self._has_decided_all.set()

    def _producer(self, **options: Any) -> Producer:
        return Producer(bootstrap_servers=self._servers, linger_ms=1, **_SOON, **options)

    def _consumer(self, **options: Any) -> Consumer:
        return Consumer(
            bootstrap_servers=self._servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
            **_SOON,
            **options,
        )

    def _produce(self) -> None:
        with self._producer() as producer:
            while not self._is_over.is_set():
                for partition in range(PARTITIONS):
                    number = self.sent[partition]
                    producer.send(
                        "plain",
                        b"%d" % number,
                        partition=partition,
                        on_delivery=partial(self._told, partition, number),
                    )
                    self.sent[partition] += 1
                self._is_over.wait(0.002)
            producer.flush(ENDS_WITHIN_S)

    def _told(
        self,
        partition: int,
        number: int,
        metadata: RecordMetadata | None,
        error: BaseException | None,
    ) -> None:
        if metadata is None or metadata.partition != partition:
            self.faults.append(f"{number} is not delivered: {error!r}")
        else:
            self.acknowledged[partition].append(number)

    def _transact(self) -> None:
        number = 0
        while not self._is_over.is_set():
            with self._producer(transactional_id="decides") as producer:
                try:
                    producer.init_transactions()
                    while not self._is_over.is_set():
                        self._one_transaction(producer, number)
                        number += 1
                except KafkaError as error:
                    # What is fatal; whether it was committed is not known.
                    self.faults.append(f"transaction {number}: {error!r}")
                    self.undecided.add(number)
                    number += 1

    def _one_transaction(self, producer: Producer, number: int) -> None:
        producer.begin_transaction()
        for partition in (0, 1, 0):
            producer.send("decided", b"%d" % number, partition=partition)
        if number % _ABORTS_EVERY == _ABORTS_EVERY - 1:
            producer.flush(ENDS_WITHIN_S)
            producer.abort_transaction()
            return
        producer.commit_transaction()
        self.committed.append(number)

    def _copy(self) -> None:
        with (
            self._producer(transactional_id="copies") as producer,
            self._consumer(group_id="copying") as consumer,
        ):
            producer.init_transactions()
            consumer.subscribe(["plain"])
            done = [0] * PARTITIONS
            while not (self._has_sent_all.is_set() and done == self.sent):
                records = consumer.poll(200)
                if not records:
                    continue

                def copy(records: list[Any] = records) -> None:
                    for one in records:
                        producer.send("copied", one.value, partition=one.partition)

                if run_transaction(producer, consumer, copy):
                    self.copies += 1
                    for one in records:
                        done[one.partition] = one.offset + 1

    def _follow(self) -> None:
        partitions = [TopicPartition("decided", number) for number in range(PARTITIONS)]
        with self._consumer() as consumer:
            consumer.assign(partitions)
            ends = dict.fromkeys(partitions, -1)
            while any(consumer.position(one) < end for one, end in ends.items()) or -1 in {
                *ends.values()
            }:
                columns = consumer.poll_columns(200)
                values = listed(columns.value[:2])
                for partition, value in zip(columns.partition.tolist(), values, strict=True):
                    self.followed[partition].append(int(value))
                if self._has_decided_all.is_set() and -1 in {*ends.values()}:
                    ends = consumer.end_offsets(*partitions)

    def losses(self, values: Callable[[str, int], list[int]]) -> Iterator[str]:
        """Yields what is not as the clients were told.

        Args:
            values: what is committed of a partition, in order.
        """
        yield from self.faults
        for partition, known in enumerate(self.acknowledged):
            stored = values("plain", partition)
            if known != [*range(self.sent[partition])]:
                yield f"plain-{partition}: acknowledged are {len(known)} of {self.sent[partition]}"
            if stored != known:
                missing, more = len({*known} - {*stored}), len(stored) - len({*stored})
                yield f"plain-{partition}: {missing} are missing, {more} are there twice"
            if values("copied", partition) != stored:
                yield f"copied-{partition} is not plain-{partition}"
            followed = self.followed[partition]
            if followed != values("decided", partition):
                yield f"decided-{partition}: what was read as it came is not what is there"
        first, second = values("decided", 0), values("decided", 1)
        if first != [number for number in second for _ in range(2)]:
            yield "a transaction is there in part"
        stored = [number for number in second if number not in self.undecided]
        if stored != self.committed:
            lost, unexpected = {*self.committed} - {*stored}, {*stored} - {*self.committed}
            yield (
                f"of {len(self.committed)} transactions that were committed, {sorted(lost)} are not"
                f" there, and {sorted(unexpected)} are though they were not"
            )

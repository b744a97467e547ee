"""`ottla serve --data` as a process that is killed and comes back, under clients that go on.

Each client remembers what it was told: what was acknowledged, which transactions were committed,
which offsets. `losses` compares that with what is in the directory in the end.
"""

import contextlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

SERVE = "from ottla_command import main; main()"
PARTITIONS = 2
STARTS_WITHIN_S = 60
ENDS_WITHIN_S = 120
_SETTINGS = ("offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2")
_SOON = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}


class KilledBroker:
    """A broker on one port."""

    def __init__(self, path: Path, *settings: str) -> None:
        self.path = path
        self.port = 0
        self._settings = [f"--set={text}" for text in (*_SETTINGS, *settings)]
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", SERVE, "serve", "--data", str(self.path)),
                *("--port", str(self.port), "--topic", f"plain:{PARTITIONS}", "--topic", "tx:2"),
                *self._settings,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        ready = re.fullmatch(r"ready: .*:(\d+)\n", self._process.stdout.readline())
        assert ready is not None
        self.port = int(ready[1])

    def end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.communicate(timeout=ENDS_WITHIN_S)


class Clients:
    """An idempotent producer, a transactional one, and a group that commits, each in a thread."""

    def __init__(self, broker: KilledBroker) -> None:
        self.broker = broker
        self.sent = [0] * PARTITIONS
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.committed: list[int] = []
        self.undecided: set[int] = set()
        self.offsets: dict[int, int] = {}
        self.faults: list[str] = []
        self._is_over = threading.Event()
        self._threads = [
            # Without a broker they do not end.
            threading.Thread(target=self._guarded, args=(run,), daemon=True)
            for run in (self._produce, self._transact, self._consume)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait_for_commit(self) -> None:
        """Returns once the group has committed more: after a kill it has to come together first."""
        before = dict(self.offsets)
        for _ in range(ENDS_WITHIN_S * 100):
            if self.offsets != before:
                return
            self._is_over.wait(0.01)
        self.faults.append("the group does not commit")

    def finish(self) -> None:
        """Lets them end what they have begun, with a broker that stays."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)
            if thread.is_alive():
                self.faults.append(f"{thread.name} does not end")

    def _guarded(self, run: Any) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            self.faults.append(f"{run.__name__}: {error!r}")

    def _config(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0, **_SOON, **more}

    def _produce(self) -> None:
        def told(error: KafkaError | None, message: Message) -> None:
            partition, value = message.partition(), message.value()
            if error is not None or partition is None or value is None:
                self.faults.append(f"not delivered: {error}")
            else:
                self.acknowledged[partition].append(int(value))

        producer = Producer(self._config(**{"enable.idempotence": True, "linger.ms": 1}))
        while not self._is_over.is_set():
            for partition in range(PARTITIONS):
                producer.produce(
                    "plain", b"%d" % self.sent[partition], partition=partition, on_delivery=told
                )
                self.sent[partition] += 1
            producer.poll(0.002)
        if producer.flush(ENDS_WITHIN_S):
            self.faults.append("the producer has something left")

    def _transact(self) -> None:
        number = 0
        while not self._is_over.is_set():
            producer = Producer(self._config(**{"transactional.id": "t"}))
            try:
                producer.init_transactions(ENDS_WITHIN_S)
                while not self._is_over.is_set():
                    self._one_transaction(producer, number)
                    number += 1
            except KafkaException:
                # Whether it was committed is not known; its records are there all or none.
                self.undecided.add(number)
                number += 1

    def _one_transaction(self, producer: Producer, number: int) -> None:
        producer.begin_transaction()
        for partition in (0, 1, 0):
            producer.produce("tx", b"%d" % number, partition=partition)
        if number % 5 == 4:
            producer.abort_transaction(ENDS_WITHIN_S)
            return
        while True:
            try:
                producer.commit_transaction(ENDS_WITHIN_S)
                break
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    producer.abort_transaction(ENDS_WITHIN_S)
                    return
                if not error.args[0].retriable():
                    raise
        self.committed.append(number)

    def _consume(self) -> None:
        consumer = Consumer(
            self._config(
                **{
                    "group.id": "g",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "session.timeout.ms": 6000,
                }
            )
        )
        consumer.subscribe(["plain"])
        while not self._is_over.is_set():
            read = [m for m in consumer.consume(200, timeout=0.2) if m.error() is None]
            if not read:
                continue
            with contextlib.suppress(KafkaException):
                for done in consumer.commit(asynchronous=False) or []:
                    if done.error is None and done.offset >= 0:
                        before = self.offsets.get(done.partition, 0)
                        self.offsets[done.partition] = max(before, done.offset)
        consumer.close()

    def losses(self) -> Iterator[str]:
        """Yields what is not as the clients were told, in a directory that nobody writes."""
        yield from self.faults
        for partition, known in enumerate(self.acknowledged):
            stored = [int(value) for value in _values(self.broker.path / f"plain-{partition}")]
            if known != sorted(known):
                yield f"plain-{partition}: acknowledged out of order"
            if stored != [*range(self.sent[partition])]:
                missing = set(known) - set(stored)
                yield f"plain-{partition}: {len(missing)} acknowledged records are missing, "
                yield f"{len(stored) - len(set(stored))} are there twice"
        first, second = (
            [int(value) for value in _values(self.broker.path / f"tx-{partition}")]
            for partition in (0, 1)
        )
        if sorted(first) != sorted([*second, *second]):
            yield "a transaction is there in part"
        if [number for number in second if number not in self.undecided] != self.committed:
            yield "transactions that were committed are not those that are there"

    def offsets_that_went_back(self) -> dict[int, tuple[int, int]]:
        """Partitions whose committed offset is before one that the group was told of."""
        consumer = Consumer(self._config(**{"group.id": "g"}))
        partitions = [TopicPartition("plain", partition) for partition in self.offsets]
        found = consumer.committed(partitions, timeout=ENDS_WITHIN_S) if partitions else []
        consumer.close()
        return {
            each.partition: (self.offsets[each.partition], each.offset)
            for each in found
            if each.offset < self.offsets[each.partition]
        }


def _values(path: Path) -> Iterator[bytes]:
    for record in ottla.read_partition(path, isolation="read_committed"):
        assert record.value is not None
        yield record.value

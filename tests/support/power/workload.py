"""A broker that is recorded, its clients, and what they were told at which place of the journal.

Each client asks one thing at a time, and looks where the journal ends as soon as it is answered. So
whatever a power cut leaves behind that place has to hold what the answer said.
"""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import ottla
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.power.journal import Recorder
from support.served import COMMAND, WITHIN_S, Served, SocketClient

PLAIN = ("cached", "synced")
"""Topics by their level, each with records of a producer that is idempotent."""
TRANSACTED = ("tx-cached", "tx-synced")
"""The same, with records of transactions, in both partitions of each."""
GROUP = "readers"
SETTINGS = (
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
    "auto.create.topics.enable=false",
    "log.segment.bytes=1048576",
    "log.index.interval.bytes=1024",
)
_PADDING = (10, 100, 600, 5_000, 120_000)
_RETRIABLE = (14, 15, 16, 51)
"""A coordinator that loads, one that is not there yet, and a transaction before that goes on."""
Partition = tuple[str, int]


@dataclass
class Told:
    """Something that was asked for, and where the journal ended before and after."""

    what: Any
    asked: int
    told: int = sys.maxsize

    def is_told(self, cut: int) -> bool:
        return self.told <= cut

    def is_asked(self, cut: int) -> bool:
        return self.asked <= cut


@dataclass
class History:
    """What clients were told.

    Attributes:
        produced: records by partition, each numbered from 0 on.
        transactions: by topic, numbered likewise, and whether each is a commit. Each writes its
            number to both partitions, and commits the next as an offset of the group of that name.
        offsets: of the group `GROUP`, by partition.
        topics: names, and whether each was created or deleted.
        producer_ids: those that were given.
    """

    produced: dict[Partition, list[Told]] = field(default_factory=dict)
    transactions: dict[str, list[Told]] = field(default_factory=dict)
    offsets: dict[Partition, list[Told]] = field(default_factory=dict)
    topics: list[Told] = field(default_factory=list)
    producer_ids: list[Told] = field(default_factory=list)

    def places(self) -> list[int]:
        """Where somebody was told something, in order."""
        told = [
            *(each for known in self.produced.values() for each in known),
            *(each for known in self.transactions.values() for each in known),
            *(each for known in self.offsets.values() for each in known),
            *self.topics,
            *self.producer_ids,
        ]
        return sorted({each.told for each in told if each.told < sys.maxsize})


class Workload:
    """Clients of a broker that is started more than once.

    Args:
        recorder: of its directory; the broker's own is ``data`` in it.
        seed: of what they do.
    """

    def __init__(self, recorder: Recorder, seed: int) -> None:
        self.history = History()
        self._recorder = recorder
        self._random = Random(seed)
        self._producers: dict[str, tuple[int, int]] = {}
        self._faults: list[BaseException] = []

    @contextmanager
    def broker(self, how: signal.Signals) -> Iterator[tuple[str, int]]:
        """A broker that is recorded, and ended in this way."""
        command = [*COMMAND, "--port", "0", "--data", str(self._recorder.directory / "data")]
        for text in SETTINGS:
            command += ["--set", text]
        for topic in (*PLAIN, *TRANSACTED):
            command += ["--topic", f"{topic}:2"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=self._recorder.environment()
        ) as process:
            try:
                assert process.stdout is not None
                ready = Served(process, process.stdout.readline())
                yield ready.address
                process.send_signal(how)
                process.wait(WITHIN_S)
            finally:
                process.kill()

    def live(self, count: int, how: signal.Signals) -> None:
        """Starts a broker, has each client do so many things, and ends it."""
        with self.broker(how) as address:
            with self._client(address) as client:
                self._set_levels(client)
            jobs = [
                *((self._produce, topic, index, count) for topic in PLAIN for index in (0, 1)),
                *((self._transact, topic, count // 2) for topic in TRANSACTED),
                (self._commit, count),
                (self._administer, max(1, count // 8)),
            ]
            threads = [
                threading.Thread(target=self._guarded, args=(address, self._random.random(), *job))
                for job in jobs
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self._faults:
            raise self._faults[0]

    @contextmanager
    def _client(self, address: tuple[str, int]) -> Iterator[SocketClient]:
        with socket.create_connection(address, timeout=WITHIN_S) as sock:
            yield SocketClient(sock)

    def _guarded(
        self, address: tuple[str, int], seed: float, job: Callable[..., None], *arguments: Any
    ) -> None:
        try:
            with self._client(address) as client:
                job(client, Random(seed), *arguments)
        except BaseException as error:  # noqa: BLE001 - raised by the test's own thread
            self._faults.append(error)

    def _set_levels(self, client: SocketClient) -> None:
        from ottla.protocol.messages.incremental_alter_configs import (  # noqa: PLC0415
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        synced = AlterableConfig(name="flush.messages", config_operation=0, value="1")
        resources = [
            AlterConfigsResource(resource_type=2, resource_name=name, configs=[synced])
            for name in ("synced", "tx-synced")
        ]
        request = IncrementalAlterConfigsRequest(resources=resources)
        answer = client.ask(request, 1)
        assert [each.error_code for each in answer.responses] == [0, 0]
        for kind, key in ((0, GROUP), *((kind, topic) for kind in (0, 1) for topic in TRANSACTED)):
            find = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
            assert client.ask(find, 4).coordinators[0].error_code == 0

    def _asked(self, what: Any) -> Told:
        return Told(what, self._recorder.position())

    def _is_told(self, told: Told) -> None:
        told.told = self._recorder.position()

    # What clients do.

    def _producer(self, client: SocketClient, transactional_id: str | None) -> tuple[int, int]:
        told = self._asked(None)
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        answer = _until_it_works(lambda: client.ask(request, 4), lambda each: each.error_code)
        told.what = answer.producer_id
        self._is_told(told)
        self.history.producer_ids.append(told)
        return answer.producer_id, answer.producer_epoch

    def _produce(
        self, client: SocketClient, random: Random, topic: str, index: int, count: int
    ) -> None:
        known = self.history.produced.setdefault((topic, index), [])
        name = f"{topic}-{index}"
        if name not in self._producers:
            self._producers[name] = self._producer(client, None)
        for _ in range(count):
            told = self._asked(len(known))
            known.append(told)
            request = produce(topic, index, len(known) - 1, self._producers[name], random=random)
            code = client.ask(request, 9).responses[0].partition_responses[0].error_code
            assert code == 0, f"{name}: {code}"
            self._is_told(told)

    def _transact(self, client: SocketClient, random: Random, topic: str, count: int) -> None:
        known = self.history.transactions.setdefault(topic, [])
        producer = self._producer(client, topic)
        sequences = [0, 0]
        for _ in range(count):
            number = len(known)
            told = self._asked(random.random() < 0.8)
            known.append(told)
            self._begin(client, topic, producer)
            for index in (0, 1, 0):
                request = produce(
                    topic, index, number, producer, sequence=sequences[index], random=random
                )
                code = client.ask(request, 9).responses[0].partition_responses[0].error_code
                assert code == 0, f"{topic}: {code}"
                sequences[index] += 1
            offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number + 1)
            commit = TxnOffsetCommitRequest(
                transactional_id=topic,
                group_id=topic,
                producer_id=producer[0],
                producer_epoch=producer[1],
                topics=[TxnOffsetCommitRequestTopic(name="synced", partitions=[offset])],
            )
            code = client.ask(commit, 3).topics[0].partitions[0].error_code
            assert code == 0, f"{topic}: {code}"
            end = EndTxnRequest(
                transactional_id=topic,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=told.what,
            )
            _until_it_works(partial(client.ask, end, 3), lambda each: each.error_code)
            self._is_told(told)

    def _begin(self, client: SocketClient, topic: str, producer: tuple[int, int]) -> None:
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=topic,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0, 1])],
        )
        _until_it_works(
            lambda: client.ask(add, 3),
            lambda each: (
                each.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )
        offsets = AddOffsetsToTxnRequest(
            transactional_id=topic,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=topic,
        )
        _until_it_works(lambda: client.ask(offsets, 3), lambda each: each.error_code)

    def _commit(self, client: SocketClient, random: Random, count: int) -> None:
        for _ in range(count):
            name = random.choice(PLAIN), random.randrange(2)
            told_of = sum(each.told < sys.maxsize for each in self.history.produced.get(name, ()))
            known = self.history.offsets.setdefault(name, [])
            told = self._asked(told_of)
            known.append(told)
            partition = OffsetCommitRequestPartition(
                partition_index=name[1], committed_offset=told_of
            )
            request = OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=-1,
                topics=[OffsetCommitRequestTopic(name=name[0], partitions=[partition])],
            )
            _until_it_works(
                partial(client.ask, request, 8),
                lambda each: each.topics[0].partitions[0].error_code,
            )
            self._is_told(told)

    def _administer(self, client: SocketClient, random: Random, count: int) -> None:
        for _ in range(count):
            name = f"more-{len(self.history.topics)}"
            told = self._asked((name, True))
            self.history.topics.append(told)
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            answer = client.ask(CreateTopicsRequest(topics=[topic]), 5)
            assert answer.topics[0].error_code == 0
            self._is_told(told)
            if random.random() < 0.5:
                told = self._asked((name, False))
                self.history.topics.append(told)
                answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 4)
                assert answer.responses[0].error_code == 0
                self._is_told(told)


def produce(
    topic: str,
    index: int,
    number: int,
    producer: tuple[int, int],
    *,
    sequence: int | None = None,
    random: Random,
) -> ProduceRequest:
    """A record whose value begins with its number."""
    padding = random.randbytes(random.choice(_PADDING))
    batch = ottla.build_batch(
        [ottla.NewRecord(value=b"%d:" % number + padding, timestamp=int(time.time() * 1000))],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=number if sequence is None else sequence,
        is_transactional=sequence is not None,
    )
    data = PartitionProduceData(index=index, records=batch)
    return ProduceRequest(
        transactional_id=None if sequence is None else topic,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def _until_it_works(ask: Callable[[], Any], error_of: Callable[[Any], int]) -> Any:
    """Asks again, as clients do, while the error says that it may work later."""
    for _ in range(10_000):
        answer = ask()
        code = error_of(answer)
        if code not in _RETRIABLE:
            assert code == 0, f"{type(answer).__name__}: {code}"
            return answer
        time.sleep(0.001)
    raise AssertionError(f"it does not become better: {answer}")

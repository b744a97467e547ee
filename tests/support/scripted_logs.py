"""Logs of partitions behind a scripted cluster, and the core of a consumer that reads them.

    logs = ScriptedLogs(topics={"orders": 1})
    logs.append("orders", 0, [b"1", b"2"])
    core = logs.consumer(auto_offset_reset="earliest")
    core.assign([("orders", 0)], logs.now_ms)
    assert logs.values(core) == [b"1", b"2"]

Fetch, ListOffsets and OffsetForLeaderEpoch are answered as a leader does, sessions included; what a
test puts into `faults` is answered instead.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.core import ConsumerCore
from ottla.client.options.settings import ConsumerSettings
from ottla.protocol.messages import fetch, list_offsets, offset_for_leader_epoch
from ottla.records import NewRecord, build_batch, build_control_batch
from support.scripted_cluster import ScriptedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

WALL_MS = 1_700_000_000_000


class Log:
    """The log of one partition.

    Attributes:
        start: the first offset.
        epoch: of its leader.
        partition_epoch: of the partition; -1 for a broker that knows none.
        aborted: producer ids with first offsets and those of their markers.
        last_stable_offset: where open transactions begin; ``None`` for the end.
    """

    def __init__(self) -> None:
        self.start = 0
        self.epoch = 0
        self.partition_epoch = -1
        self.aborted: list[tuple[int, int, int]] = []
        self.last_stable_offset: int | None = None
        self.batches: list[tuple[int, int, int, int, bytes]] = []

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.batches[-1][1] + 1 if self.batches else self.start

    def append(self, data: bytes, count: int, timestamp_ms: int) -> int:
        """Appends a batch that was built for the end."""
        first = self.end
        self.batches.append((first, first + count - 1, self.epoch, timestamp_ms, data))
        return first

    def truncate(self, end: int) -> None:
        """Takes batches away from an offset on."""
        self.batches = [one for one in self.batches if one[1] < end]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to one asked for, and where it ends; -1 for none."""
        found = [one for one in self.batches if one[2] <= epoch]
        if not found or epoch > self.epoch:
            return -1, -1
        return found[-1][2], found[-1][1] + 1


class ScriptedLogs:
    """A scripted cluster with logs.

    Args:
        has_sessions: whether brokers have room for fetch sessions.
        arguments: of the cluster.
    """

    def __init__(self, *, has_sessions: bool = True, **arguments: Any) -> None:
        self.cluster = ScriptedCluster(**arguments)
        self.logs: dict[tuple[str, int], Log] = defaultdict(Log)
        # Called with (API, topic, partition): an error code, or what changes the answer.
        self.faults: list[Callable[[str, str, int], int | None]] = []
        self.has_sessions = has_sessions
        self.sessions: dict[int, dict[tuple[str, int], tuple[FetchPartition, bytes]]] = {}
        self.replicas: dict[tuple[str, int], int] = {}
        self._next_session = 1
        self.cluster.on("Fetch", self._fetch)
        self.cluster.on("ListOffsets", self._list_offsets)
        self.cluster.on("OffsetForLeaderEpoch", self._epochs)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.cluster.now_ms

    def append(
        self, topic: str, partition: int, values: Sequence[bytes | None], **options: Any
    ) -> int:
        """Appends a batch; returns its first offset."""
        log = self.logs[topic, partition]
        timestamp = options.pop("timestamp_ms", 1000)
        data = build_batch(
            [NewRecord(value=one, timestamp=timestamp) for one in values],
            base_offset=log.end,
            partition_leader_epoch=log.epoch,
            **options,
        )
        return log.append(data, len(values), timestamp)

    def mark(self, topic: str, partition: int, kind: str, producer_id: int, first: int) -> None:
        """Ends a transaction."""
        log = self.logs[topic, partition]
        data = build_control_batch(
            kind,  # type: ignore[arg-type]
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=1000,
            base_offset=log.end,
            partition_leader_epoch=log.epoch,
        )
        at = log.append(data, 1, 1000)
        if kind == "abort":
            log.aborted.append((producer_id, first, at))

    def consumer(self, group: Any = None, **options: Any) -> ConsumerCore:
        """The core of a consumer, driven by the cluster."""
        settings = ConsumerSettings(
            bootstrap_servers="boot:9092", **{"auto_offset_reset": "earliest", **options}
        )
        core = ConsumerCore(
            settings,
            self.cluster.network,
            group,
            random=random.Random(0).random,
            wall_ms=lambda: WALL_MS,
        )
        self.cluster.machine = core
        return core

    def poll(self, core: ConsumerCore, max_ms: int = 2_000, limit: int = 500) -> list[Any]:
        """What a poll of the application returns."""
        core.begin_poll(self.now_ms)
        taken = core.delivery.take(limit, self.now_ms)
        if not taken:
            end_ms = self.now_ms + max_ms
            something = core.something()
            self.cluster.after(max_ms, lambda: None)
            self.cluster.run(lambda: something.is_done or self.now_ms >= end_ms)
            core.time_out(something)
            taken = core.delivery.take(limit, self.now_ms)
        core.tick(self.now_ms)
        return taken

    def values(self, core: ConsumerCore, max_ms: int = 2_000) -> list[bytes]:
        """The values of all records that come until none do."""
        found: list[bytes] = []
        while taken := self.poll(core, max_ms):
            found += [one.value for one in taken]
        return found

    def wait(self, pending: Any) -> Any:
        """What a call comes to."""
        self.cluster.run(lambda: pending.is_done)
        if pending.error is not None:
            raise pending.error
        return pending.value

    # The leaders.

    def _fault(self, api: str, topic: str, partition: int) -> int:
        for fault in self.faults:
            code = fault(api, topic, partition)
            if code:
                return code
        return 0

    def _name(self, one: Any, version: int) -> str | None:
        if version < 13:
            name: str = one.topic
            return name
        by_id = {self.cluster.id_of(topic): topic for topic in self.cluster.topics}
        return by_id.get(one.topic_id)

    def _fetch(self, request: FetchRequest, version: int) -> fetch.FetchResponse:
        code = self._fault("Fetch", "", -1)
        if code:
            return fetch.FetchResponse(error_code=code)
        wanted: dict[tuple[str, int], tuple[FetchPartition, bytes]] = {}
        session_id = 0
        if version >= 7 and self.has_sessions and request.session_epoch >= 0:
            if request.session_epoch == 0:
                self.sessions.pop(request.session_id, None)
                session_id, self._next_session = self._next_session, self._next_session + 1
                self.sessions[session_id] = {}
            elif request.session_id not in self.sessions:
                return fetch.FetchResponse(error_code=70)
            else:
                session_id = request.session_id
            wanted = self.sessions[session_id]
        elif request.session_epoch == -1:
            self.sessions.pop(request.session_id, None)
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                wanted.pop((self._name(forgotten, version) or "", number), None)
        for topic in request.topics:
            for one in topic.partitions:
                name = self._name(topic, version)
                wanted[name or topic.topic_id.hex(), one.partition] = (one, topic.topic_id)
        responses = []
        for (name, number), (one, topic_id) in wanted.items():
            data = self._data(name, number, one, request.isolation_level)
            if version >= 13 and topic_id != self.cluster.id_of(name):
                data = fetch.PartitionData(partition_index=number, error_code=100)
            is_news = data.records or data.error_code or data.preferred_read_replica >= 0
            if session_id and request.session_epoch and not is_news:
                continue
            responses.append(
                fetch.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[data])
            )
        return fetch.FetchResponse(session_id=session_id, responses=responses)

    def _data(
        self, name: str, number: int, one: FetchPartition, isolation_level: int
    ) -> PartitionData:
        data = fetch.PartitionData(partition_index=number, high_watermark=-1)
        if name not in self.cluster.topics:
            data.error_code = 100
            return data
        log = self.logs[name, number]
        data.partition_epoch = log.partition_epoch
        code = self._fault("Fetch", name, number)
        leader, _ = self.cluster.leader_of(name, number)
        is_leader = self.cluster.node_id == leader
        replica = self.replicas.get((name, number))
        if code:
            data.error_code = code
        elif not is_leader and replica != self.cluster.node_id:
            data.error_code = 6
        elif is_leader and -1 < one.current_leader_epoch < log.epoch:
            data.error_code = 74
        elif is_leader and one.current_leader_epoch > log.epoch:
            data.error_code = 75
        elif not log.start <= one.fetch_offset <= log.end:
            data.error_code = 1
        if data.error_code:
            return data
        stable = log.end if log.last_stable_offset is None else log.last_stable_offset
        data.high_watermark, data.last_stable_offset = log.end, stable
        data.log_start_offset = log.start
        if is_leader and replica is not None:
            data.preferred_read_replica = replica
            return data
        limit = stable if isolation_level else log.end
        found = [each for each in log.batches if each[1] >= one.fetch_offset and each[0] < limit]
        data.records = b"".join(each[4] for each in found)[: one.partition_max_bytes] or None
        if isolation_level:
            data.aborted_transactions = [
                fetch.AbortedTransaction(producer_id=producer_id, first_offset=first)
                for producer_id, first, last in log.aborted
                if last >= one.fetch_offset
            ]
        return data

    def _list_offsets(self, request: Any, _version: int) -> list_offsets.ListOffsetsResponse:
        response = list_offsets.ListOffsetsResponse()
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                answer = list_offsets.ListOffsetsPartitionResponse(
                    partition_index=one.partition_index,
                    error_code=self._fault("ListOffsets", topic.name, one.partition_index),
                )
                log = self.logs[topic.name, one.partition_index]
                answer.partition_epoch = log.partition_epoch
                answer.leader_epoch = log.epoch
                if answer.error_code:
                    pass
                elif one.timestamp == -2:
                    answer.offset = log.start
                elif one.timestamp == -1:
                    stable = log.last_stable_offset if request.isolation_level else None
                    answer.offset = log.end if stable is None else stable
                else:
                    for first, _, epoch, timestamp_ms, _ in log.batches:
                        if timestamp_ms >= one.timestamp:
                            answer.offset, answer.timestamp = first, timestamp_ms
                            answer.leader_epoch = epoch
                            break
                answers.append(answer)
            response.topics.append(
                list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=answers)
            )
        return response

    def _epochs(
        self, request: Any, _version: int
    ) -> offset_for_leader_epoch.OffsetForLeaderEpochResponse:
        response = offset_for_leader_epoch.OffsetForLeaderEpochResponse()
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                log = self.logs[topic.topic, one.partition]
                code = self._fault("OffsetForLeaderEpoch", topic.topic, one.partition)
                epoch, end = (-1, -1) if code else log.epoch_end(one.leader_epoch)
                answers.append(
                    offset_for_leader_epoch.EpochEndOffset(
                        error_code=code,
                        partition=one.partition,
                        leader_epoch=epoch,
                        end_offset=end,
                        partition_epoch=log.partition_epoch,
                    )
                )
            response.topics.append(
                offset_for_leader_epoch.OffsetForLeaderTopicResult(
                    topic=topic.topic, partitions=answers
                )
            )
        return response

"""A cluster that keeps Kafka's promises in few words, and what goes wrong between it and a client.

`ModelCluster` is the brokers' memory. A client reaches it through a `ScriptedCluster` of its own,
by `attach`, whose faults are drawn from a seed: requests and answers that are lost, applied late or
refused, leaders that move. Everything happens on a virtual clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    find_coordinator,
    init_producer_id,
    produce,
    txn_offset_commit,
)
from support.model_coordinator import ModelCoordinator
from support.model_log import CULPRIT, ModelLog
from support.scripted_cluster import CUT, SILENCE, ScriptedCluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["CULPRIT", "Faults", "ModelCluster"]

NODES = 3

# What a broker answers now and then, after which the same request succeeds.
_PASSING = {
    "Produce": (6, 7, 14, 19, 56),
    "InitProducerId": (14, 15, 16, 51),
    "FindCoordinator": (14, 15),
    "AddPartitionsToTxn": (14, 15, 16, 51),
    "AddOffsetsToTxn": (14, 15, 16, 51),
    "TxnOffsetCommit": (7, 14, 15, 16),
    "EndTxn": (14, 15, 16, 51),
}
_ABORTABLE = {"AddPartitionsToTxn": (17, 120), "AddOffsetsToTxn": (120,), "TxnOffsetCommit": (120,)}


@dataclass
class Faults:
    """How often what goes wrong, each from 0 to 1.

    Attributes:
        lost: requests that never arrive.
        unanswered: requests whose answer is lost, with the connection.
        late: requests that are applied long after their connection broke; with transactions of
            version 1 only those of records.
        passing: refusals after which the same request succeeds.
        abortable: refusals of a transaction's requests.
        moves: leaders that move.
        restarts: leaders that start again, and know the last batch of each producer alone.
        most_delay_ms: of a request that is late.
    """

    lost: float = 0.0
    unanswered: float = 0.0
    late: float = 0.0
    passing: float = 0.0
    abortable: float = 0.0
    moves: float = 0.0
    restarts: float = 0.0
    most_delay_ms: int = 20_000


@dataclass
class ModelCluster:
    """What all clients share.

    Attributes:
        topics: partitions by topic.
        bumps: whether transactions are of version 2.
        max_records: a batch of more is too large.
    """

    topics: dict[str, int]
    bumps: bool = False
    max_records: int = 1_000
    logs: dict[tuple[str, int], ModelLog] = field(default_factory=dict)
    refused: int = 0

    def __post_init__(self) -> None:
        self.coordinator = ModelCoordinator(self._write_end, bumps=self.bumps)
        for topic, count in self.topics.items():
            for partition in range(count):
                self.logs[topic, partition] = ModelLog(self.max_records)

    def attach(self, random: Random, faults: Faults, seed: int = 0) -> ScriptedCluster:
        """Returns a way for one client to reach it."""
        cluster = ScriptedCluster(
            nodes=NODES,
            topics=self.topics,
            features={"transaction.version": 2 if self.bumps else 1},
            latency_ms=2,
            seed=seed,
            request_timeout_ms=5_000,
            socket_connection_setup_timeout_ms=5_000,
        )
        Brokers(self, cluster, random, faults)
        return cluster

    def _write_end(
        self, partition: tuple[str, int], producer_id: int, epoch: int, is_commit: bool
    ) -> None:
        self.logs[partition].end(producer_id, epoch, is_commit=is_commit)


class Brokers:
    """The handlers of a scripted cluster, over the model, with what goes wrong."""

    def __init__(
        self, model: ModelCluster, cluster: ScriptedCluster, random: Random, faults: Faults
    ) -> None:
        self.model = model
        self.cluster = cluster
        self.random = random
        self.faults = faults
        self.hung: set[int] = set()
        for api, handler in (
            ("Produce", self.produce),
            ("InitProducerId", self.init),
            ("FindCoordinator", self.find),
            ("AddPartitionsToTxn", self.add_partitions),
            ("AddOffsetsToTxn", self.add_offsets),
            ("TxnOffsetCommit", self.commit_offsets),
            ("EndTxn", self.end),
        ):
            cluster.on(api, self._faulty(api, handler))
        # Answers come in the order of requests: none overtakes one that does not come.
        cluster.on("ApiVersions", self._unless_hung(cluster.api_versions))
        cluster.on("Metadata", self._unless_hung(cluster.metadata))

    def _unless_hung(self, handler: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
        def handle(request: Any, version: int) -> Any:
            return SILENCE if self.cluster.node_id in self.hung else handler(request, version)

        return handle

    def _faulty(self, api: str, handler: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
        def handle(request: Any, version: int) -> Any:
            faults, random = self.faults, self.random
            node_id = self.cluster.node_id
            if node_id in self.hung:
                return SILENCE
            if api == "Produce" and random.random() < faults.moves:
                self._move_leaders()
            if api == "Produce" and random.random() < faults.restarts:
                for log in self.model.logs.values():
                    log.restart()
            if random.random() < faults.lost:
                return self._without_answer(node_id)
            # A coordinator without epochs that grow takes a late request for one of the transaction
            # that is open by then, whatever a client does (KIP-890).
            can_be_late = self.model.bumps or api == "Produce"
            if can_be_late and random.random() < faults.late:
                self.cluster.after(
                    random.randrange(faults.most_delay_ms),
                    lambda: self._apply_late(handler, request, version, node_id),
                )
                return CUT
            if random.random() < faults.passing:
                return self._refusal(api, request, version, random.choice(_PASSING[api]))
            if api in _ABORTABLE and random.random() < faults.abortable:
                self.model.refused += 1
                return self._refusal(api, request, version, random.choice(_ABORTABLE[api]))
            answer = handler(request, version)
            if random.random() < faults.unanswered:
                return self._without_answer(node_id)
            return answer

        return handle

    def _without_answer(self, node_id: int) -> object:
        """Closes the connection, or has the node hang: it answers nothing until it closes all."""
        if self.random.random() < 0.5:
            return CUT
        self.hung.add(node_id)
        self.cluster.after(self.random.randrange(1, 8_000), lambda: self._revive(node_id))
        return SILENCE

    def _revive(self, node_id: int) -> None:
        self.hung.discard(node_id)
        self.cluster.cut(node_id)

    def _apply_late(
        self, handler: Callable[[Any, int], Any], request: Any, version: int, node_id: int
    ) -> None:
        self.cluster.node_id = node_id
        handler(request, version)

    def _move_leaders(self) -> None:
        for topic, count in self.model.topics.items():
            partition = self.random.randrange(count)
            _, epoch = self.cluster.leader_of(topic, partition)
            node_id = self.random.randrange(1, NODES + 1)
            self.cluster.leaders[topic, partition] = (node_id, epoch + 1)

    # What the brokers do.

    def produce(self, request: Any, _version: int) -> Any:
        """Appends each batch, where this node leads its partition."""
        names = {self.cluster.id_of(name): name for name in self.model.topics}
        responses = []
        for topic in request.topic_data:
            name = topic.name or names[topic.topic_id]
            answers = [
                self._append(request.transactional_id, name, one) for one in topic.partition_data
            ]
            responses.append(
                produce.TopicProduceResponse(
                    name=name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        return produce.ProduceResponse(responses=responses)

    def _append(self, transactional_id: str | None, topic: str, one: Any) -> Any:
        log = self.model.logs[topic, one.index]
        leader_id, _ = self.cluster.leader_of(topic, one.index)
        if leader_id != self.cluster.node_id:
            return _answer(one.index, ErrorCode.NOT_LEADER_OR_FOLLOWER, log)
        if transactional_id is not None:
            code = self._check_writer(transactional_id, topic, one)
            if code:
                return _answer(one.index, code, log)
        verdict = log.append(bytes(one.records))
        return _answer(one.index, verdict.code, log, verdict.base_offset, verdict.culprits)

    def _check_writer(self, transactional_id: str, topic: str, one: Any) -> int:
        import ottla  # noqa: PLC0415

        (batch,) = ottla.read_batches(bytes(one.records))
        return self.model.coordinator.check_writer(
            transactional_id, batch.producer_id, batch.producer_epoch, (topic, one.index)
        )

    def find(self, request: Any, version: int) -> Any:
        """Node 1 coordinates all."""
        node = self.cluster.nodes[1]
        if version < 4:
            return find_coordinator.FindCoordinatorResponse(
                error_code=0, node_id=1, host=node.host, port=node.port
            )
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(
                    key=key,
                    node_id=1,
                    host=node.host,
                    port=node.port,
                    error_code=0,
                    error_message=None,
                )
                for key in request.coordinator_keys
            ]
        )

    def init(self, request: Any, _version: int) -> Any:
        """Gives an id."""
        coordinator = self.model.coordinator
        if request.transactional_id is None:
            found = (ErrorCode.NONE, coordinator.new_id(), 0)
        else:
            found = coordinator.init(
                request.transactional_id, request.producer_id, request.producer_epoch
            )
        code, producer_id, epoch = found
        return init_producer_id.InitProducerIdResponse(
            error_code=code, producer_id=producer_id, producer_epoch=epoch
        )

    def add_partitions(self, request: Any, _version: int) -> Any:
        """Adds partitions to a transaction."""
        topics = request.v3_and_below_topics
        code = self.model.coordinator.add(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            {(topic.name, number) for topic in topics for number in topic.partitions},
        )
        return _added(request, code)

    def add_offsets(self, request: Any, _version: int) -> Any:
        """Adds a group to a transaction."""
        code = self.model.coordinator.add_group(
            request.transactional_id, request.producer_id, request.producer_epoch, request.group_id
        )
        return add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=code)

    def commit_offsets(self, request: Any, _version: int) -> Any:
        """Keeps offsets until the end of the transaction."""
        code = self.model.coordinator.add_offsets(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.group_id,
            {
                (topic.name, one.partition_index): one.committed_offset
                for topic in request.topics
                for one in topic.partitions
            },
        )
        return _offsets_answer(request, code)

    def end(self, request: Any, _version: int) -> Any:
        """Ends a transaction."""
        code, producer_id, epoch = self.model.coordinator.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            is_commit=request.committed,
        )
        return end_txn.EndTxnResponse(
            error_code=code, producer_id=producer_id, producer_epoch=epoch
        )

    def _refusal(self, api: str, request: Any, version: int, code: int) -> Any:
        """Returns an answer with an error, where nothing was done."""
        if api == "Produce":
            names = {self.cluster.id_of(name): name for name in self.model.topics}
            return produce.ProduceResponse(
                responses=[
                    produce.TopicProduceResponse(
                        name=topic.name or names[topic.topic_id],
                        topic_id=topic.topic_id,
                        partition_responses=[
                            _answer(
                                one.index,
                                code,
                                self.model.logs[topic.name or names[topic.topic_id], one.index],
                            )
                            for one in topic.partition_data
                        ],
                    )
                    for topic in request.topic_data
                ]
            )
        if api == "AddPartitionsToTxn":
            return _added(request, code)
        if api == "TxnOffsetCommit":
            return _offsets_answer(request, code)
        if api == "FindCoordinator":
            answer = self.find(request, version)
            if version < 4:
                answer.error_code = code
            for one in answer.coordinators:
                one.error_code = code
            return answer
        kinds: dict[str, Any] = {
            "InitProducerId": init_producer_id.InitProducerIdResponse,
            "AddOffsetsToTxn": add_offsets_to_txn.AddOffsetsToTxnResponse,
            "EndTxn": end_txn.EndTxnResponse,
        }
        return kinds[api](error_code=code)


def _answer(
    index: int, code: int, log: ModelLog, base_offset: int = -1, culprits: tuple[int, ...] = ()
) -> Any:
    return produce.PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=base_offset,
        log_append_time_ms=-1,
        log_start_offset=log.log_start_offset,
        record_errors=[
            produce.BatchIndexAndErrorMessage(
                batch_index=one, batch_index_error_message=f"record {one} is a culprit"
            )
            for one in culprits
        ],
        error_message="one or more records are refused" if culprits else None,
    )


def _added(request: Any, code: int) -> Any:
    return add_partitions_to_txn.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=code
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


def _offsets_answer(request: Any, code: int) -> Any:
    return txn_offset_commit.TxnOffsetCommitResponse(
        topics=[
            txn_offset_commit.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    txn_offset_commit.TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=code
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )

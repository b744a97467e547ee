"""A coordinator that answers a producer's transaction manager as a test says."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition
from ottla.client.transactions.manager import TransactionManager
from ottla.client.transactions.requests import (
    AddPartitions,
    CommitOffsets,
    FindCoordinator,
    InitProducerId,
    Request,
)
from ottla.protocol.codec import decode, encode

NODE = 7
GROUP = GroupMetadata("g", 1, "member")
OFFSETS = {TopicPartition("orders", 0): OffsetAndMetadata(5)}

# What a producer of transaction version 1 speaks to a coordinator.
VERSIONS = {
    "FindCoordinator": 4,
    "InitProducerId": 5,
    "AddPartitionsToTxn": 3,
    "AddOffsetsToTxn": 3,
    "TxnOffsetCommit": 3,
    "EndTxn": 3,
}


class NoBatches:
    """The batches of a producer that has as many as a test says."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: list[BaseException] = []
        self.resets = 0

    def are_incomplete(self) -> bool:
        return self.count > 0

    def fail_unsent(self, error: BaseException) -> None:
        self.failed.append(error)

    def reset_sequences(self) -> None:
        self.resets += 1


class Coordinator:
    """A manager, and the answers that it gets.

    Attributes:
        manager: the one under test.
        sent: the names of the requests that it sent.
        codes: by request, error codes to answer with before 0, the first first.
    """

    def __init__(self, **options: Any) -> None:
        self.batches = NoBatches()
        self.manager = TransactionManager(
            "tx", 60_000, self.batches, backoff_ms=lambda _attempts: 100, **options
        )
        self.sent: list[str] = []
        self.codes: dict[str, list[int]] = {}
        self.now_ms = 0
        self.epoch = -1

    def ready(self) -> Coordinator:
        """Initializes transactions."""
        pending = self.manager.init()
        self.run()
        assert pending.is_done
        assert pending.error is None
        self.sent.clear()
        return self

    def open(self) -> Coordinator:
        """Begins a transaction."""
        self.ready().manager.begin()
        return self

    def run(self, steps: int = 50) -> None:
        """Answers all requests, and waits for those that are to be sent again."""
        for _ in range(steps):
            request = self.manager.next_request(self.now_ms)
            if request is not None:
                self.answer(request)
                continue
            deadline_ms = self.manager.next_deadline_ms()
            if deadline_ms is None or deadline_ms <= self.now_ms:
                return
            self.now_ms = deadline_ms
        raise AssertionError(f"no end of requests: {self.sent[-5:]}")

    def answer(self, request: Request, code: int | None = None) -> None:
        """Answers a request, with the next code of `codes` unless one is given."""
        self.sent.append(request.api)
        version = VERSIONS[request.api]
        message = request.message(self.manager, version)
        frame = b"".join(encode(type(message), version)(message))
        assert decode(type(message), version)(frame, 0)[1] == len(frame)
        codes = self.codes.get(request.api)
        if code is None:
            code = codes.pop(0) if codes else 0
        self.manager.answered(request, self.response(request, code), self.now_ms)

    def response(self, request: Request, code: int) -> Any:
        """Returns an answer with an error code in the place where its API has it."""
        module = import_module(f"ottla.protocol.messages.{_MODULES[request.api]}")
        new = getattr(module, f"{request.api}Response")
        if isinstance(request, FindCoordinator):
            one = module.Coordinator(
                key="tx", node_id=NODE, host="h", port=1, error_code=code, error_message=None
            )
            return new(coordinators=[one])
        if isinstance(request, AddPartitions):
            partitions = [
                module.AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=code
                )
                for _, number in sorted(request.partitions)
            ]
            topic = module.AddPartitionsToTxnTopicResult(
                name="orders", results_by_partition=partitions
            )
            return new(results_by_topic_v3_and_below=[topic])
        if isinstance(request, CommitOffsets):
            partition = module.TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
            topic = module.TxnOffsetCommitResponseTopic(name="orders", partitions=[partition])
            return new(topics=[topic])
        if isinstance(request, InitProducerId) and code == 0:
            self.epoch += 1
            return new(error_code=0, producer_id=1000, producer_epoch=self.epoch)
        return new(error_code=code)


_MODULES = {
    "FindCoordinator": "find_coordinator",
    "InitProducerId": "init_producer_id",
    "AddPartitionsToTxn": "add_partitions_to_txn",
    "AddOffsetsToTxn": "add_offsets_to_txn",
    "TxnOffsetCommit": "txn_offset_commit",
    "EndTxn": "end_txn",
}


def chain_of(error: BaseException | None) -> list[BaseException]:
    """Returns an error and its causes."""
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found

"""A producer and a consumer that do as a test says, for what processes records between them."""

from __future__ import annotations

from typing import Any

from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition

ORDERS = TopicPartition("orders", 0)
GROUP = GroupMetadata("g", 1, "member")


class Journal:
    """What was called, in order, and what calls raise: the first error of a name first."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.errors: dict[str, list[BaseException | None]] = {}

    def call(self, name: str) -> None:
        self.calls.append(name)
        errors = self.errors.get(name)
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error


class FakeProducer:
    """A producer whose transactions are only written down."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def init_transactions(self) -> Any:
        self.journal.call("init")

    def begin_transaction(self) -> Any:
        self.journal.call("begin")

    def send(self, _value: str) -> Any:
        self.journal.call("send")

    def send_offsets_to_transaction(self, offsets: Any, group: GroupMetadata) -> Any:
        assert offsets == {ORDERS: OffsetAndMetadata(5)}
        assert group == GROUP
        self.journal.call("offsets")

    def commit_transaction(self) -> Any:
        self.journal.call("commit")

    def abort_transaction(self) -> Any:
        self.journal.call("abort")

    def flush(self) -> Any:
        self.journal.call("flush")

    def close(self) -> Any:
        self.journal.call("close producer")


class FakeConsumer:
    """A consumer that has one batch again and again."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.batches: list[list[str]] = []

    def poll(self) -> Any:
        self.journal.call("poll")
        return ["record"]

    def positions(self) -> Any:
        return {ORDERS: OffsetAndMetadata(5)}

    def group_metadata(self) -> GroupMetadata:
        return GROUP

    def commit(self) -> Any:
        self.journal.call("commit consumer")

    def reset_to_last_committed_positions(self) -> Any:
        self.journal.call("reset")

    def close(self) -> Any:
        self.journal.call("close consumer")


class Awaited:
    """A client whose calls are to be awaited."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        async def awaited(*arguments: Any) -> Any:
            return call(*arguments)

        return awaited

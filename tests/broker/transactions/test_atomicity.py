"""Through the whole broker: of each transaction a reader of committed records gets all, or nothing.

Producers of both protocols write, end, stall, come back too late and are followed by others. What
the partition holds in the end is compared with what its producers were told.
"""

from dataclasses import dataclass, field
from typing import Any

import ottla
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.wire_client import WireClient, new_broker

MINUTE_MS = 60_000


@dataclass
class Session:
    """A producer from its start on: what it has been told, and what it has open."""

    producer_id: int
    producer_epoch: int
    sequence: int = 0
    open: list[bytes] = field(default_factory=list)


class History:
    """Producers of one transactional id on one partition.

    Attributes:
        committed: values of transactions whose producers were told that they are committed.
        written: how many values were sent.
    """

    def __init__(self, version: int) -> None:
        self.is_new = version == 2
        self.client = WireClient(new_broker())
        self.client.broker.topics.create("orders", 1, {}, self.client.now_ms)
        self.sessions: list[Session] = []
        self.committed: list[bytes] = []
        self.written = 0
        self.start()

    def start(self) -> None:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=MINUTE_MS)
        answer = self.client.ask(request, 5)
        if answer.error_code == ErrorCode.NONE:
            self.sessions.append(Session(answer.producer_id, answer.producer_epoch))
        else:
            assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS

    def write(self, session: Session) -> None:
        error = ErrorCode.NONE if self.is_new else self._add(session)
        if error == ErrorCode.NONE:
            value = b"%d" % self.written
            self.written += 1
            error = self._produce(session, value)
            if error == ErrorCode.NONE:
                session.sequence += 1
                session.open.append(value)
        assert error == ErrorCode.NONE or session is not self.sessions[-1] or self.is_late

    def _add(self, session: Session) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=session.producer_id,
            v3_and_below_producer_epoch=session.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
        )
        [topic] = self.client.ask(request, 3).results_by_topic_v3_and_below
        found: int = topic.results_by_partition[0].partition_error_code
        return found

    def _produce(self, session: Session, value: bytes) -> int:
        batch = ottla.build_batch(
            [ottla.NewRecord(None, value, timestamp=self.client.now_ms)],
            producer_id=session.producer_id,
            producer_epoch=session.producer_epoch,
            base_sequence=session.sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="orders", partition_data=[data])],
        )
        answer = self.client.ask(request, 12 if self.is_new else 9)
        found: int = answer.responses[0].partition_responses[0].error_code
        return found

    def end(self, session: Session, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id="t",
            producer_id=session.producer_id,
            producer_epoch=session.producer_epoch,
            committed=commit,
        )
        answer = self.client.ask(request, 5 if self.is_new else 3)
        if answer.error_code != ErrorCode.NONE:
            return
        assert session is self.sessions[-1], "whoever was followed ends nothing"
        if commit:
            self.committed += session.open
        session.open = []
        if self.is_new:
            session.producer_id = answer.producer_id
            session.producer_epoch = answer.producer_epoch
            session.sequence = 0

    @property
    def is_late(self) -> bool:
        """Whether the last producer has taken too long, and was fenced for it."""
        last, known = self.sessions[-1], self.client.broker.transactions.describe("t")
        assert not isinstance(known, int)
        return known.producer_epoch != last.producer_epoch

    def play(self, what: str, back: int) -> None:
        chosen = self.sessions[-1 - back] if back < len(self.sessions) else None
        if what == "start":
            self.start()
        elif chosen is None:
            pass
        elif what == "write":
            self.write(chosen)
        elif what == "wait":
            self.client.advance(MINUTE_MS // 2)
        else:
            self.end(chosen, commit=what == "commit")

    def read_committed(self) -> list[bytes]:
        """What a reader of committed records gets once nothing is open."""
        broker = self.client.broker
        partition = broker.image.partition("orders", 0)
        assert partition is not None
        handle = partition.handle
        _, last_stable_offset, high_watermark, end = broker.plane.offsets(handle)
        assert last_stable_offset == high_watermark == end, "nothing is left open"
        aborted: Any = broker.plane.leader(handle).aborted_transactions
        return [
            bytes(record.value or b"")
            for batch in ottla.read_batches(broker.plane.read(handle, 0, 1 << 30) if end else b"")
            if not batch.is_control
            and not any(
                batch.producer_id == each.producer_id
                and each.first_offset <= batch.base_offset <= each.last_offset
                for each in aborted
            )
            for record in batch.records()
        ]


ACTS = st.tuples(
    st.sampled_from(("start", "write", "write", "write", "commit", "commit", "abort", "wait")),
    st.sampled_from((0, 0, 0, 0, 1, 2)),
)


@pytest.mark.parametrize("version", [0, 2])
@settings(max_examples=60)
@given(acts=st.lists(ACTS, min_size=10, max_size=40))
def test_a_reader_of_committed_records_gets_what_its_producers_were_told(
    version: int, acts: list[tuple[str, int]]
) -> None:
    history = History(version)
    for what, back in acts:
        history.play(what, back)
    history.client.advance(2 * MINUTE_MS)
    assert history.read_committed() == history.committed

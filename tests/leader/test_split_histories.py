"""A leader that is brought back anywhere in its history decides as the one that never stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ottla
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_700_000_000_000
OUT_OF_ORDER = 45


@dataclass(frozen=True)
class Produce:
    """A batch, told by what its producer sent before: most of what producers do is nearly right."""

    producer_id: int
    epoch: int
    sequence: Literal["next", "gap", "zero", "repeat"]
    back: int
    count: int
    is_transactional: bool


@dataclass(frozen=True)
class End:
    """A marker."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool


@dataclass(frozen=True)
class DeleteRecords:
    """The log start moves up to so many offsets below the log's end."""

    back: int


Step = Produce | End | DeleteRecords
producer_ids = st.integers(0, 2)
epochs = st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1])
steps = st.one_of(
    st.builds(
        Produce,
        producer_ids,
        epochs,
        st.sampled_from(["next", "next", "next", "next", "gap", "zero", "repeat", "repeat"]),
        st.integers(0, 5),
        st.integers(1, 4),
        st.booleans(),
    ),
    st.builds(End, producer_ids, epochs, st.integers(0, 2), st.booleans()),
    st.builds(DeleteRecords, st.integers(0, 9)),
)


class Story:
    """What a client and a coordinator send; both leaders get the same bytes."""

    def __init__(self) -> None:
        self.epochs = dict.fromkeys(range(3), 0)
        self.next_sequences: dict[int, int] = {}
        self.sent: dict[int, list[tuple[int, int, int]]] = {}

    def batch(self, step: Produce) -> bytes:
        """Return the next batch, or one that was sent before."""
        epoch = max(0, self.epochs[step.producer_id] + step.epoch)
        sequence = self.next_sequences.get(step.producer_id, 0)
        count = step.count
        if step.sequence == "gap":
            sequence += 1 + step.back
        elif step.sequence == "zero":
            sequence = 0
        elif step.sequence == "repeat" and (sent := self.sent.get(step.producer_id)):
            epoch, sequence, count = sent[max(0, len(sent) - 1 - step.back)]
        self.newest = (epoch, sequence, count)
        return ottla.build_batch(
            [ottla.NewRecord(value=b"v", timestamp=NOW)] * count,
            producer_id=step.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=step.is_transactional,
        )

    def is_stored(self, step: Produce) -> None:
        epoch, sequence, count = self.newest
        self.epochs[step.producer_id] = epoch
        self.next_sequences[step.producer_id] = sequence + count
        self.sent.setdefault(step.producer_id, []).append(self.newest)

    def is_ended(self, step: End) -> None:
        epoch = max(0, self.epochs[step.producer_id] + step.epoch)
        if epoch != self.epochs[step.producer_id]:
            self.next_sequences[step.producer_id] = 0
        self.epochs[step.producer_id] = epoch


def answer(leader: ottla.Leader, step: Step, records: bytes, epoch: int) -> Any:
    if isinstance(step, DeleteRecords):
        leader.delete_records(max(0, leader.log_end_offset - step.back))
        return leader.log_start_offset
    if isinstance(step, End):
        return leader.end_transaction(
            step.producer_id,
            epoch,
            coordinator_epoch=step.coordinator_epoch,
            commit=step.commit,
            now_ms=NOW,
        )
    return leader.append(records, now_ms=NOW, api_version=9, transactional_id="t")


def told(found: Any) -> Any:
    if not isinstance(found, ottla.Verdict):
        return found
    fields = ("error", "error_message", "base_offset", "last_offset", "is_duplicate", "stored")
    return {name: getattr(found, name) for name in fields}


def newest_offsets(leader: ottla.Leader) -> dict[int, int]:
    """Return where each producer's newest batch begins, which is what a snapshot keeps of it."""
    known = leader.producers
    return {one.producer_id: one.batches[-1].base_offset for one in known if one.batches}


@given(
    history=st.lists(steps, min_size=2, max_size=40),
    places=st.tuples(st.integers(0, 39), st.integers(0, 39)).map(sorted),
    unknown_producer=st.sampled_from(["unknown", "accept"]),
    profile=st.sampled_from(["strict", "kafka"]),
)
def test_a_history_split_by_a_snapshot_goes_on_as_before(
    history: list[Step],
    places: list[int],
    unknown_producer: Literal["unknown", "accept"],
    profile: Literal["strict", "kafka"],
) -> None:
    snapshot_at, restored_at = (place % len(history) for place in places)
    snapshot_at, restored_at = sorted((snapshot_at, restored_at))
    settings: dict[str, Any] = {
        "unknown_producer": unknown_producer,
        "profile": profile,
        "transaction_verification": False,
    }
    live = ottla.Leader(**settings)
    again: ottla.Leader | None = None
    story = Story()
    after: list[bytes] = []
    snapshot, snapshot_offset, newest = b"", 0, {}
    for index, step in enumerate(history):
        # Where the log start has passed a snapshot, Kafka deletes it: records are gone behind it.
        is_below_start = index == restored_at and live.log_start_offset > snapshot_offset
        if index == snapshot_at or is_below_start:
            snapshot, snapshot_offset = live.snapshot(), live.producer_end_offset
            newest, after = newest_offsets(live), []
        if index == restored_at:
            again = ottla.Leader.restore(
                snapshot,
                after,
                snapshot_offset=snapshot_offset,
                log_start_offset=live.log_start_offset,
                log_end_offset=live.log_end_offset,
                high_watermark=live.high_watermark,
                aborted_transactions=live.aborted_transactions,
                now_ms=NOW,
                **settings,
            )
        live.advance_high_watermark(live.log_end_offset)
        records = story.batch(step) if isinstance(step, Produce) else b""
        epoch = 0
        if isinstance(step, End):
            epoch = max(0, story.epochs[step.producer_id] + step.epoch)
        found = answer(live, step, records, epoch)
        if isinstance(found, ottla.Verdict) and found.stored:
            after.append(found.stored)
            if isinstance(step, Produce):
                story.is_stored(step)
            elif isinstance(step, End):
                story.is_ended(step)
        if again is None:
            continue
        again.advance_high_watermark(again.log_end_offset)
        repeated = answer(again, step, records, epoch)
        if isinstance(step, Produce) and told(repeated) != told(found):
            # The one thing that is lost, as in Kafka: of the batches below the snapshot's offset it
            # keeps each producer's newest alone. A repeat of an older one is out of order now.
            assert found.is_duplicate
            assert found.base_offset < min(snapshot_offset, newest[step.producer_id])
            assert (repeated.error, repeated.stored) == (OUT_OF_ORDER, b"")
        else:
            assert told(repeated) == told(found)
        assert again.log_end_offset == live.log_end_offset
        assert again.last_stable_offset == live.last_stable_offset
        assert again.aborted_transactions == live.aborted_transactions
        assert again.snapshot() == live.snapshot()


def test_a_duplicate_of_a_batch_that_a_snapshot_dropped_is_out_of_order() -> None:
    story, live = Story(), ottla.Leader()
    step = Produce(0, 0, "next", 0, 2, is_transactional=False)
    sent = []
    for _ in range(3):
        sent.append(story.batch(step))
        assert live.append(sent[-1], now_ms=NOW).accepted
        story.is_stored(step)
    again = ottla.Leader.restore(live.snapshot(), snapshot_offset=6, now_ms=NOW)
    assert [live.append(batch, now_ms=NOW).base_offset for batch in sent] == [0, 2, 4]
    assert [again.append(batch, now_ms=NOW).error for batch in sent] == [45, 45, 0]
    assert again.append(sent[-1], now_ms=NOW).is_duplicate

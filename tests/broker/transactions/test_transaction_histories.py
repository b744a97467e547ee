"""Random histories of clients, time and restarts against what must hold in every one of them."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.broker.transactions.log import read_record
from ottla.broker.transactions.metadata import (
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from ottla.broker.transactions.settings import MARKER_RETRY_MS, TransactionSettings
from ottla.protocol.error_code import ErrorCode
from support.coordinating import MINUTE_MS, ORDERS, PAYMENTS, Coordination, by_id

PARTITIONS = (ORDERS, PAYMENTS)
NAMES = ("t", "u")
End = tuple[TopicPartition, int, int, bool]


@dataclass(frozen=True)
class Act:
    """One thing that happens: `producer` counts back from the last one that was handed out."""

    what: str
    name: str
    producer: int
    partition: int
    commit: bool


ACTS = st.builds(
    Act,
    st.sampled_from(
        (
            "start",
            "resume",
            "add",
            "add",
            "add",
            "end",
            "end",
            "wait",
            "time out",
            "restart",
            "lose leader",
            "find leader",
            "lose log",
            "find log",
        )
    ),
    st.sampled_from(NAMES),
    st.sampled_from((0, 0, 0, 1, 2)),
    st.sampled_from((0, 1)),
    st.booleans(),
)


def ends_of(known: TransactionMetadata) -> list[End]:
    """The markers of a transaction whose outcome is decided."""
    is_commit = known.state == TransactionState.PREPARE_COMMIT
    return [(name, known.producer_id, known.producer_epoch, is_commit) for name in known.partitions]


class History:
    """Clients that do as they are told, however late, and what they were answered."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.world = Coordination(
            TransactionSettings(transaction_version=version, partition_count=2)
        )
        self.handed_out: dict[str, list[tuple[int, int]]] = {name: [] for name in NAMES}
        self.fenced: set[tuple[int, int]] = set()
        self.committed: dict[tuple[int, int], bool] = {}
        self.repeated: Counter[End] = Counter()

    def producer(self, act: Act) -> tuple[int, int]:
        found = self.handed_out[act.name]
        return found[-1 - act.producer] if act.producer < len(found) else (-1, -1)

    def note(self, name: str, producer: tuple[int, int]) -> None:
        """A producer was handed out: all before it are fenced, for good."""
        found = self.handed_out[name]
        if not found or found[-1] != producer:
            assert producer not in found, "a producer is handed out to no successor again"
            self.fenced.update(found)
            found.append(producer)

    def play(self, act: Act) -> None:
        world, producer, partition = self.world, self.producer(act), PARTITIONS[act.partition]
        match act.what:
            case "start" | "resume":
                answer = world.init(producer if act.what == "resume" else (-1, -1), name=act.name)
                if answer.error_code == ErrorCode.NONE:
                    self.note(act.name, answer[1:])
            case "add" if producer[0] >= 0:
                error = world.add(producer, partition, name=act.name, version=self.version)
                assert error != ErrorCode.NONE or producer not in self.fenced
            case "end" if producer[0] >= 0:
                self.end(act, producer)
            case "wait":
                world.advance(MARKER_RETRY_MS)
            case "time out":
                world.advance(MINUTE_MS)
            case "restart":
                self.restart()
            case "lose leader":
                world.marker_errors[partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            case "find leader":
                world.marker_errors.pop(partition, None)
            case "lose log":
                world.log_error = ErrorCode.NOT_ENOUGH_REPLICAS
            case "find log":
                world.log_error = 0

    def end(self, act: Act, producer: tuple[int, int]) -> None:
        answer = self.world.end(producer, name=act.name, commit=act.commit, version=self.version)
        if answer.error_code != ErrorCode.NONE:
            return
        if self.version == 2:
            outcome = self.committed.setdefault(producer, act.commit)
            assert outcome == act.commit, "what was aborted is never committed, and conversely"
            self.note(act.name, answer[1:])

    def restart(self) -> None:
        before = self.known()
        self.world.start()
        after = self.known()
        for name, known in before.items():
            if known.is_prepared:
                self.repeated.update(ends_of(known))
            else:
                assert after[name] == known

    def check(self) -> None:
        """Epochs of markers never go back, and each is of an end that the log has."""
        epochs: dict[int, int] = defaultdict(lambda: -1)
        for marker in self.world.markers:
            assert marker.producer_epoch >= epochs[marker.producer_id]
            epochs[marker.producer_id] = marker.producer_epoch
        surplus = self.written() - self.decided()
        assert surplus <= self.repeated, "one marker a partition and transaction, but for restarts"

    def written(self) -> Counter[End]:
        return Counter(
            (marker.partition, marker.producer_id, marker.producer_epoch, marker.is_commit)
            for marker in self.world.markers
        )

    def decided(self) -> Counter[End]:
        """The ends that the log has decided."""
        found: Counter[End] = Counter()
        for records in self.world.log.values():
            for key, value in records:
                _, known = read_record(key, value)
                if known is not None and known.is_prepared:
                    found.update(ends_of(known))
        return found

    def known(self) -> dict[str, TransactionMetadata]:
        return by_id(self.world.coordinator.transactions(), self.version)

    def settle(self) -> None:
        """Everything is up again: what was decided is completed, and no timer is left over."""
        self.world.marker_errors.clear()
        self.world.log_error = 0
        self.world.advance(2 * MINUTE_MS)
        for known in self.world.coordinator.transactions():
            assert known.is_idle
            assert known.partitions == frozenset()
        assert not self.decided() - self.written(), "what was decided has its markers"
        assert len(self.world.waiting) <= 1


@pytest.mark.parametrize("version", [0, 2])
@settings(max_examples=150)
@given(acts=st.lists(ACTS, max_size=60))
def test_whatever_happens_transactions_end_once_and_epochs_never_go_back(
    version: int, acts: list[Act]
) -> None:
    history = History(version)
    epochs: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    for act in acts:
        history.play(act)
        history.check()
        for known in history.world.coordinator.transactions():
            place = known.transactional_id, known.producer_id
            assert known.producer_epoch >= epochs[place]
            epochs[place] = known.producer_epoch
    history.settle()
    history.check()
    before = history.known()
    history.world.start()
    assert history.known() == before

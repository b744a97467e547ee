"""Every request to a coordinator is answered, once and in time by the broker's clock.

Whatever happens meanwhile: logs that fail, are deleted and come back, markers that partitions do
not take, members and producers that are silent.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.broker.broker import error_codes
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from support.coordinator_calls import Said, send, versions
from support.failing_plane import FailingPlane, failing
from support.wire_client import Pending, WireClient, new_broker

REBALANCE_MS = 10_000
"""Of the members, who are the only ones to wait."""
MARKER_RETRY_MS = 100

GROUP_CALLS = ("join_group", "sync_group", "heartbeat", "leave_group", "offset_commit")
TRANSACTION_CALLS = (
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "txn_offset_commit",
    "produce",
    "end_txn",
)
HAPPENINGS = (
    "log fails",
    "log is full",
    "markers fail",
    "heals",
    "groups' log is deleted",
    "transactions' log is deleted",
    "looked for",
)

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("join_group", "sync_group")), st.integers(0, 2)),
        st.tuples(st.sampled_from(GROUP_CALLS), st.integers(0, 2)),
        st.tuples(st.sampled_from(TRANSACTION_CALLS), st.integers(3, 4)),
        st.tuples(st.sampled_from(HAPPENINGS), st.just(0)),
        st.tuples(st.just("time"), st.sampled_from((1, 100, 4_000, 30_000))),
    ),
    max_size=60,
)


class Peer:
    """A member or a producer, which sends its next request when the last is answered."""

    def __init__(self, client: WireClient, said: Said) -> None:
        self.client = client
        self.said = said
        self.pending: Pending | None = None
        self.sent_ms = 0

    def ask(self, name: str) -> None:
        if self.pending is None:
            # In version 3 a member joins at once, and need not be given an id before.
            version = 3 if name == "join_group" else min(max(versions(name)), 9)
            self.sent_ms = self.client.now_ms
            said = self.said
            if name == "init_producer_id":
                said = said._replace(producer_id=-1, producer_epoch=-1)
            self.pending = send(self.client, name, version, said)
            self.hear()

    def hear(self) -> None:
        if self.pending is None:
            return
        if not self.pending.is_answered:
            assert self.client.now_ms - self.sent_ms < REBALANCE_MS
            return
        answer = self.pending.answer()
        self.pending = None
        member_id = getattr(answer, "member_id", "")
        if member_id:
            generation = getattr(answer, "generation_id", -1)
            self.said = self.said._replace(member_id=member_id, generation=generation)
        if getattr(answer, "producer_id", -1) >= 0:
            producer = answer.producer_id, answer.producer_epoch
            self.said = self.said._replace(producer_id=producer[0], producer_epoch=producer[1])
        elif ErrorCode.UNKNOWN_MEMBER_ID in error_codes(answer):
            self.said = self.said._replace(member_id="", generation=-1)


class World:
    """Three members of a group, two producers, and a broker whose logs may fail."""

    def __init__(self) -> None:
        broker = new_broker()
        self.plane: FailingPlane = failing(broker)
        self.client = WireClient(broker, looks_for_coordinators=False)
        topic = broker.topics.create("orders", 1, {"retention.ms": "-1"}, self.client.now_ms)
        # A producer that has not started has an id that nobody gave it.
        said = Said(topic.topic_id, producer_id=999, producer_epoch=0)
        self.peers = [
            Peer(WireClient(broker, looks_for_coordinators=False), each)
            for each in (said, said, said, said, said._replace(transactional_id="u"))
        ]
        self.look_for()

    def look_for(self) -> None:
        for key_type, keys in ((0, ["g"]), (1, ["t", "u"])):
            self.client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys), 4)

    def live(self, history: list[tuple[str, int]]) -> None:
        for what, number in history:
            if what == "time":
                self.pass_time(number)
                continue
            if what in HAPPENINGS:
                self.happens(what)
            else:
                self.peers[number].ask(what)
            self.tick(self.client.now_ms)

    def happens(self, what: str) -> None:
        plane = self.plane
        if what == "log fails":
            plane.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        elif what == "log is full":
            plane.append_error = ErrorCode.KAFKA_STORAGE_ERROR
        elif what == "markers fail":
            plane.marker_error = ErrorCode.NOT_ENOUGH_REPLICAS
        elif what == "heals":
            plane.append_error = plane.marker_error = 0
        elif what == "groups' log is deleted":
            self.client.broker.topics.delete(["__consumer_offsets"])
        elif what == "transactions' log is deleted":
            self.client.broker.topics.delete(["__transaction_state"])
        elif what == "looked for":
            self.look_for()

    def pass_time(self, duration_ms: int) -> None:
        """Lets time pass for everybody, deadline by deadline."""
        broker, end_ms = self.client.broker, self.client.now_ms + duration_ms
        while (due_ms := broker.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.tick(max(self.client.now_ms, due_ms))
        self.tick(end_ms)

    def tick(self, now_ms: int) -> None:
        for client in (self.client, *(peer.client for peer in self.peers)):
            client.now_ms = now_ms
        self.client.broker.tick(now_ms)
        for peer in self.peers:
            peer.hear()


@settings(max_examples=100, deadline=None)
@given(steps)
def test_every_request_is_answered_in_time(history: list[tuple[str, int]]) -> None:
    world = World()
    world.live(history)
    world.pass_time(REBALANCE_MS)
    assert [peer.pending for peer in world.peers] == [None] * 5


@settings(max_examples=100, deadline=None)
@given(steps)
def test_once_nothing_fails_a_producer_starts_at_its_second_attempt(
    history: list[tuple[str, int]],
) -> None:
    """The first may find a transaction that is open, which is aborted for it."""
    world = World()
    world.live(history)
    world.happens("heals")
    world.pass_time(REBALANCE_MS + MARKER_RETRY_MS)
    world.look_for()
    for name in ("t", "u"):
        said = Said(b"", transactional_id=name)
        errors = []
        for _ in range(2):
            errors.append(send(world.client, "init_producer_id", 4, said).answer().error_code)
            world.pass_time(MARKER_RETRY_MS)
        assert errors in ([0, 0], [ErrorCode.CONCURRENT_TRANSACTIONS, 0])

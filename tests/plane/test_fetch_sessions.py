"""Fetch sessions (KIP-227): a client names what changes, and is told what changes."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla._engine import DataPlane
from support.plane_frames import CODE, NOW_MS, Asked, Plane, batch, values

SESSION_VERSIONS = range(7, 19)
T, U = ("t", 0), ("t", 1)
EVICTION_MS = 120_000


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.open()
    plane.open(partition=1)
    plane.append(batch(b"a"))
    return plane


def told(answer: Any) -> dict[tuple[str, int], list[bytes | None]]:
    """Return the partitions of an answer with the values they have."""
    return {
        (topic.topic, found.partition_index): values(found.records)
        for topic in answer.responses
        for found in topic.partitions
    }


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_session_answers_what_is_new_and_nothing_else(plane: Plane, version: int) -> None:
    full = plane.fetch({T: 0, U: 0}, session=(0, 0), version=version)
    assert full.session_id != 0
    assert list(told(full).values()) == [[b"a"], []]
    first = plane.fetch({T: 1}, session=(full.session_id, 1), version=version)
    assert (first.session_id, told(first)) == (full.session_id, {})
    plane.append(batch(b"b"), partition=1)
    second = plane.fetch({}, session=(full.session_id, 2), version=version)
    assert list(told(second).values()) == [[b"b"]]


def test_a_partition_is_forgotten_and_added(plane: Plane) -> None:
    session = plane.fetch({T: 0}, session=(0, 0)).session_id
    added = plane.fetch({U: 0, T: 1}, session=(session, 1))
    assert told(added) == {U: []}
    plane.append(batch(b"b"))
    plane.append(batch(b"c"), partition=1)
    found = plane.fetch({}, session=(session, 2), forgotten=[T])
    assert told(found) == {U: [b"c"]}


def test_an_epoch_out_of_order_and_a_session_of_nobody_are_refused(plane: Plane) -> None:
    session = plane.fetch({T: 0}, session=(0, 0)).session_id
    early = plane.fetch({}, session=(session, 2))
    assert (early.error_code, early.responses) == (CODE.INVALID_FETCH_SESSION_EPOCH, [])
    unknown = plane.fetch({}, session=(session + 1, 1))
    assert (unknown.error_code, unknown.session_id) == (CODE.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert plane.fetch({}, session=(session, 1)).error_code == 0
    repeated = plane.fetch({}, session=(session, 1))
    assert repeated.error_code == CODE.INVALID_FETCH_SESSION_EPOCH


def test_a_waiting_request_may_be_handed_over_again(plane: Plane) -> None:
    session = plane.fetch({T: 0}, session=(0, 0)).session_id
    for _ in range(3):
        waiting = plane.fetched({T: 1}, session=(session, 1), max_wait_ms=500)
        assert waiting.handles == (plane.handles[T],)
    assert plane.fetch({T: 1}, session=(session, 1)).error_code == 0
    assert plane.fetch({}, session=(session, 2)).error_code == 0


def test_the_last_epoch_closes_a_session_and_the_first_replaces_it(plane: Plane) -> None:
    first = plane.fetch({T: 0}, session=(0, 0)).session_id
    closing = plane.fetch({T: 0}, session=(first, -1))
    assert (closing.session_id, told(closing)) == (0, {T: [b"a"]})
    gone = plane.fetch({}, session=(first, 1)).error_code
    assert gone == CODE.FETCH_SESSION_ID_NOT_FOUND
    second = plane.fetch({T: 0}, session=(0, 0)).session_id
    third = plane.fetch({T: 0}, session=(second, 0)).session_id
    assert len({first, second, third}) == 3
    assert plane.fetch({}, session=(second, 1)).error_code == gone


def test_a_session_of_names_is_none_of_ids(plane: Plane) -> None:
    named = plane.fetch({T: 0}, session=(0, 0), version=12).session_id
    wrong = plane.fetch({}, session=(named, 1), version=13)
    assert wrong.error_code == CODE.FETCH_SESSION_TOPIC_ID_ERROR
    assert plane.fetch({}, session=(named, 1), version=12).error_code == 0


def test_an_error_is_told_until_it_is_over(plane: Plane) -> None:
    session = plane.fetch({T: 1}, session=(0, 0)).session_id
    for epoch in (1, 2):
        found = plane.fetch({}, session=(session, epoch), refused={T: 29})
        assert found.responses[0].partitions[0].error_code == 29
    over = plane.fetch({}, session=(session, 3))
    assert over.responses[0].partitions[0].high_watermark == 1
    assert told(plane.fetch({}, session=(session, 4))) == {}


def test_a_new_log_start_is_news(plane: Plane) -> None:
    session = plane.fetch({T: 1}, session=(0, 0)).session_id
    plane.engine.delete_records(plane.handles[T], 1)
    found = plane.fetch({}, session=(session, 1))
    assert found.responses[0].partitions[0].log_start_offset == 1


def test_an_unknown_topic_of_a_session_is_found_once_it_is_there(plane: Plane) -> None:
    new_id = UUID(int=77)
    session = plane.fetch({("n", 0): 0}, session=(0, 0), version=13, topic_id=new_id)
    code = session.responses[0].partitions[0].error_code
    assert code == CODE.UNKNOWN_TOPIC_ID
    plane.open("n", topic_id=new_id)
    found = plane.fetch({}, session=(session.session_id, 1), version=13)
    assert found.responses[0].partitions[0].error_code == 0


def test_partitions_that_gave_records_go_behind_those_that_did_not() -> None:
    """No partition starves where there is room for one only."""
    plane = Plane()
    partitions = [("t", number) for number in range(5)]
    for _, number in partitions:
        plane.open(partition=number)
        for _ in range(2):
            plane.append(batch(), partition=number)
    asked = dict.fromkeys(partitions, Asked(0))
    answer = plane.fetch(asked, session=(0, 0), max_bytes=1)
    session, offsets, order = answer.session_id, dict.fromkeys(partitions, 0), []
    for epoch in range(1, 11):
        gave = [key for key, found in told(answer).items() if found]
        order += gave
        for key in gave:
            offsets[key] += 1
        asked = {key: Asked(offsets[key]) for key in gave}
        answer = plane.fetch(asked, session=(session, epoch), max_bytes=1)
    assert order == partitions * 2


def test_a_thousand_sessions_are_kept_and_an_idle_one_gives_way(plane: Plane) -> None:
    ids = [plane.fetch({T: 0}, session=(0, 0)).session_id for _ in range(1000)]
    assert len({0, *ids}) == 1001
    assert plane.fetch({T: 0}, session=(0, 0)).session_id == 0
    later = NOW_MS + EVICTION_MS + 1
    assert plane.fetch({}, session=(ids[0], 1), now_ms=later).error_code == 0
    assert plane.fetch({T: 0}, session=(0, 0), now_ms=later).session_id != 0
    assert plane.fetch({}, session=(ids[0], 2), now_ms=later).error_code == 0
    codes = [plane.fetch({}, session=(kept, 1), now_ms=later).error_code for kept in ids[1:]]
    assert sorted(codes) == [0] * 998 + [CODE.FETCH_SESSION_ID_NOT_FOUND]


def test_a_follower_takes_the_place_of_a_consumer(plane: Plane) -> None:
    for _ in range(1000):
        plane.fetch({T: 0}, session=(0, 0))
    assert plane.fetch({T: 0}, session=(0, 0), replica_id=2).session_id != 0


def test_another_start_gives_other_sessions() -> None:
    seen = set()
    for seed in range(20):
        plane = Plane(DataPlane(session_seed=seed))
        plane.open()
        seen.add(plane.fetch({T: 0}, session=(0, 0)).session_id)
    assert len(seen) == 20


@dataclass
class Client:
    """A client with a session: what it holds of each partition, by what it was told."""

    plane: Plane
    offsets: dict[tuple[str, int], int]
    session: tuple[int, int] = (0, 0)
    named: dict[tuple[str, int], int] = field(default_factory=dict)
    known: dict[tuple[str, int], tuple[Any, ...]] = field(default_factory=dict)
    read: dict[tuple[str, int], list[bytes | None]] = field(default_factory=dict)

    def fetch(self) -> None:
        """Fetch with as few partitions named as the session allows."""
        named = {key: at for key, at in self.offsets.items() if self.named.get(key) != at}
        forgotten = [key for key in self.named if key not in self.offsets]
        answer = self.plane.fetch(named, session=self.session, forgotten=forgotten)
        assert answer.error_code == 0
        self.session = (answer.session_id, self.session[1] + 1)
        self.named = dict(self.offsets)
        self.known = {key: known for key, known in self.known.items() if key in self.offsets}
        for topic in answer.responses:
            for found in topic.partitions:
                key = (topic.topic, found.partition_index)
                fields = (found.error_code, found.high_watermark, found.log_start_offset)
                self.known[key] = fields
                new = values(found.records)
                self.read.setdefault(key, []).extend(new)
                self.offsets[key] += len(new)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "delete", "forget", "add", "fetch"]),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(STEPS)
def test_a_client_with_a_session_knows_what_one_without_is_told(
    steps: list[tuple[str, int]],
) -> None:
    plane = Plane()
    for number in range(4):
        plane.open(partition=number)
    client = Client(plane, {T: 0})
    written: dict[int, list[bytes]] = {number: [] for number in range(4)}
    # The client begins with a session, which holds something from then on.
    client.fetch()
    for step, number in steps:
        key = ("t", number)
        if step == "append":
            value = b"%d" % len(written[number])
            written[number].append(value)
            plane.append(batch(value), partition=number)
        elif step == "delete":
            limit = client.offsets.get(key, 0)
            plane.engine.delete_records(plane.handles[key], limit)
        elif step == "forget" and len(client.offsets) > 1:
            client.offsets.pop(key, None)
        elif step == "add" and key not in client.offsets:
            client.offsets[key] = len(client.read.get(key, []))
        elif step == "fetch":
            client.fetch()
            whole = plane.fetch(client.offsets)
            told_whole = {
                (topic.topic, found.partition_index): (
                    found.error_code,
                    found.high_watermark,
                    found.log_start_offset,
                )
                for topic in whole.responses
                for found in topic.partitions
            }
            assert client.known == told_whole
            for (_, read_number), read in client.read.items():
                assert read == written[read_number][: len(read)]

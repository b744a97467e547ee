"""The error that a client is told, by API, version and cause: the tables are Kafka's rules."""

import pytest
from ottla.protocol.error_code import ErrorCode
from support.coordinator_calls import Said, call, send, versions
from support.failing_plane import FailingPlane, failing
from support.wire_client import WireClient, new_broker

NONE = 0
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE

LOG_FAILS = {
    # An error of the log, and what whoever has something written is told: the new coordinator's
    # error for groups and for transactions alike.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_RECORD: ErrorCode.INVALID_RECORD,
}

WRITES = (
    "sync_group",
    "offset_commit",
    "offset_delete",
    "delete_groups",
    "consumer_group_heartbeat",
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "txn_offset_commit",
)

FENCED = {
    # An epoch that another producer of the name has left behind: PRODUCER_FENCED from the version
    # that knows it (KIP-588), INVALID_PRODUCER_EPOCH before, and always where a log decides.
    "init_producer_id": {3: 47, 4: 90, 5: 90},
    "add_partitions_to_txn": {0: 47, 1: 47, 2: 90, 3: 90, 4: 90, 5: 90},
    "add_offsets_to_txn": {0: 47, 1: 47, 2: 90, 3: 90, 4: 90},
    "end_txn": {0: 47, 1: 47, 2: 90, 3: 90, 4: 90, 5: 90},
    "txn_offset_commit": dict.fromkeys(range(7), 47),
    "produce": dict.fromkeys(range(3, 14), 47),
}

UNMAPPED = {
    # A producer id that is not the name's.
    "init_producer_id": {3: 47, 4: 90, 5: 90},
    "add_partitions_to_txn": dict.fromkeys(range(6), 49),
    "add_offsets_to_txn": dict.fromkeys(range(5), 49),
    "end_txn": dict.fromkeys(range(6), 49),
    "txn_offset_commit": dict.fromkeys(range(7), 49),
    "produce": dict.fromkeys(range(3, 14), 49),
}

NOT_ADDED = {
    # What was not added to the transaction: TRANSACTION_ABORTABLE from the version that knows it,
    # INVALID_TXN_STATE before; later versions add it (KIP-890).
    "produce": dict.fromkeys(range(3, 11), 48) | {11: 120, 12: 0, 13: 0},
    "txn_offset_commit": dict.fromkeys(range(4), 48) | {4: 120, 5: 0, 6: 0},
}

ENDING = {
    # The markers of the transaction before are not all written: CONCURRENT_TRANSACTIONS, but for
    # producers that would not try again.
    "init_producer_id": dict.fromkeys(range(6), 51),
    "add_partitions_to_txn": dict.fromkeys(range(6), 51),
    "add_offsets_to_txn": dict.fromkeys(range(5), 51),
    "end_txn": dict.fromkeys(range(5), 51),
    "txn_offset_commit": dict.fromkeys(range(7), 51),
    "produce": dict.fromkeys(range(3, 12), 19) | {12: 51, 13: 51},
}

NOBODY_COORDINATES = {
    # The log of transactions is gone, that of groups is there: a producer sends its batch again,
    # and a commit of offsets waits for the coordinator that is to verify it.
    "produce": dict.fromkeys(range(3, 14), 19),
    "txn_offset_commit": dict.fromkeys(range(7), 15),
}

MEMBERSHIP = [
    # A member that nobody knows, and one of another generation.
    ("heartbeat", 25, 22),
    ("sync_group", 25, 22),
    ("offset_commit", 25, 22),
    ("txn_offset_commit", 25, 22),
]


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 1, {}, client.now_ms)
    return client


@pytest.fixture
def plane(client: WireClient) -> FailingPlane:
    return failing(client.broker)


def rows(table: dict[str, dict[int, int]]) -> list[tuple[str, int, int]]:
    return [
        (name, version, error)
        for name, errors in table.items()
        for version, error in errors.items()
    ]


def whole(table: dict[str, dict[int, int]], name: str) -> bool:
    """Whether a table has every version of an API, but for those that can name no producer."""
    first = 3 if name == "init_producer_id" and table is not ENDING else versions(name).start
    return set(table[name]) == set(range(first, versions(name).stop))


@pytest.mark.parametrize("table", [FENCED, UNMAPPED, NOT_ADDED, NOBODY_COORDINATES])
def test_a_table_has_every_version_that_is_served(table: dict[str, dict[int, int]]) -> None:
    assert [name for name in table if not whole(table, name)] == []


def begin(client: WireClient) -> Said:
    """A producer that has just begun; what the one before left open is aborted first."""
    me = Said(client.broker.image.topics["orders"].topic_id)
    answer = send(client, "init_producer_id", 2, me).answer()
    if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        answer = send(client, "init_producer_id", 2, me).answer()
    assert answer.error_code == NONE
    return me._replace(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)


def begin_transaction(client: WireClient) -> Said:
    """A producer whose transaction has a partition of records and one of offsets."""
    me = begin(client)
    assert call(client, "add_partitions_to_txn", 3, me) == NONE
    assert call(client, "add_offsets_to_txn", 3, me) == NONE
    return me


def join(client: WireClient) -> Said:
    """The leader of a generation that waits for its assignments."""
    me = Said(client.broker.image.topics["orders"].topic_id)
    joined = send(client, "join_group", 3, me).answer()
    return me._replace(member_id=joined.member_id, generation=joined.generation_id)


def prepared(client: WireClient, name: str) -> Said:
    """Whoever sends a request that has something written."""
    me = Said(client.broker.image.topics["orders"].topic_id)
    if name == "sync_group":
        return join(client)
    if name in {"offset_delete", "delete_groups"}:
        assert call(client, "offset_commit", 8, me) == NONE
    if name in {"end_txn", "txn_offset_commit"}:
        return begin_transaction(client)
    if name in {"add_partitions_to_txn", "add_offsets_to_txn"}:
        return begin(client)
    return me


@pytest.mark.parametrize(("failure", "told"), LOG_FAILS.items())
@pytest.mark.parametrize("name", WRITES)
def test_the_log_of_a_coordinator_takes_nothing(
    client: WireClient, plane: FailingPlane, name: str, failure: int, told: int
) -> None:
    for version in versions(name):
        plane.append_error = 0
        client.broker.groups.ensure_log(client.now_ms)
        client.broker.transactions.ensure_log(client.now_ms)
        me = prepared(client, name)
        plane.append_error = failure
        assert call(client, name, version, me) == told, version
        plane.append_error = 0
        client.advance(60_000)


@pytest.mark.parametrize(("name", "version", "error"), rows(FENCED))
def test_a_producer_is_fenced(client: WireClient, name: str, version: int, error: int) -> None:
    old = begin_transaction(client)
    assert call(client, "produce", 11, old) == NONE
    assert call(client, "end_txn", 4, old) == NONE
    new = begin(client)
    assert new.producer_id == old.producer_id
    if name != "init_producer_id":
        # The logs of records and of offsets have seen the epoch of the new one.
        assert call(client, "produce", 12, new) == NONE
        assert call(client, "txn_offset_commit", 5, new) == NONE
    assert call(client, name, version, old._replace(sequence=1)) == error


@pytest.mark.parametrize(("name", "version", "error"), rows(UNMAPPED))
def test_a_producer_id_is_not_that_of_the_name(
    client: WireClient, name: str, version: int, error: int
) -> None:
    me = begin(client)
    stranger = me._replace(producer_id=me.producer_id + 500)
    assert call(client, name, version, stranger) == error


@pytest.mark.parametrize(("name", "version", "error"), rows(NOT_ADDED))
def test_a_partition_is_not_in_the_transaction(
    client: WireClient, name: str, version: int, error: int
) -> None:
    me = begin(client)
    assert call(client, name, version, me) == error


@pytest.mark.parametrize(("name", "version", "error"), rows(ENDING))
def test_the_transaction_before_is_still_ending(
    client: WireClient, plane: FailingPlane, name: str, version: int, error: int
) -> None:
    me = begin_transaction(client)
    plane.marker_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert call(client, "end_txn", 4, me) == NONE
    assert call(client, name, version, me) == error
    plane.marker_error = 0
    client.advance(1_000)
    found = send(client, "describe_transactions", 0, me).answer().transaction_states[0]
    assert found.transaction_state == "CompleteCommit"


@pytest.mark.parametrize(("name", "version", "error"), rows(NOBODY_COORDINATES))
def test_nobody_coordinates_the_transaction(
    client: WireClient, name: str, version: int, error: int
) -> None:
    me = begin_transaction(client)
    client.broker.topics.delete(["__transaction_state"])
    client.broker.groups.ensure_log(client.now_ms)
    assert call(client, name, version, me) == error


@pytest.mark.parametrize(("name", "unknown", "outdated"), MEMBERSHIP)
def test_a_member_is_not_of_the_generation(
    client: WireClient, name: str, unknown: int, outdated: int
) -> None:
    me = join(client)
    # Before KIP-447 a commit in a transaction does not name the member.
    first = 3 if name == "txn_offset_commit" else versions(name).start
    for version in range(first, versions(name).stop):
        if name == "txn_offset_commit":
            ongoing = begin_transaction(client)
            me = ongoing._replace(member_id=me.member_id, generation=me.generation)
        stranger = me._replace(member_id="nobody")
        assert call(client, name, version, stranger) == unknown, version
        late = me._replace(generation=me.generation + 1)
        assert call(client, name, version, late) == outdated, version


def test_an_offset_of_no_topic_is_told_so_whatever_is_with_the_member(client: WireClient) -> None:
    me = join(client)
    client.broker.topics.delete(["orders"])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert call(client, "offset_commit", 9, me._replace(member_id="nobody")) == unknown

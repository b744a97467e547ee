"""Authentication, access rules, credentials and quotas by requests."""

import base64
import struct

import pytest
from ottla.broker.authorizer import Operation, PatternType, Permission, ResourceType
from ottla.broker.broker import Broker
from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.connection import CloseConnectionError
from ottla.broker.sasl.credentials import SCRAM_SHA_256, SCRAM_SHA_512, salted_password
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.wire_client import NOW_MS, Peer, WireClient, new_broker

SALT = bytes(range(16))
ENFORCED = {
    "authorizer.class.name": "StandardAuthorizer",
    "super.users": "User:root;User:admin",
    "allow.everyone.if.no.acl.found": "false",
}


def guarded(config: dict[str, str] | None = None) -> Broker:
    """A broker with rules, and two users."""
    broker = new_broker(ENFORCED if config is None else config)
    broker.topics.create("orders", 1, {}, NOW_MS)
    broker.credentials.add_user("admin", "a", random_bytes=SALT)
    broker.credentials.add_user("alice", "b", random_bytes=SALT)
    return broker


def stranger(broker: Broker) -> WireClient:
    return WireClient(broker, peer=Peer("127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT"))


def login(broker: Broker, user: str, password: str) -> WireClient:
    client = stranger(broker)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.NONE
    token = f"\0{user}\0{password}".encode()
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert answer.error_code == ErrorCode.NONE
    return client


def send(client: WireClient, frame: bytes) -> bytes:
    """Sends a frame as it is; returns the one that answers it."""
    answers: list[list[bytes] | None] = []
    client.broker.handle(client.connection, frame, client.now_ms, answers.append)
    [parts] = answers
    assert parts is not None
    return b"".join(parts)


def allow(
    admin: WireClient,
    operation: int,
    resource_type: int = ResourceType.TOPIC,
    name: str = "orders",
    *,
    permission: int = Permission.ALLOW,
) -> None:
    creation = AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )
    answer = admin.ask(CreateAclsRequest(creations=[creation]), 3)
    assert [result.error_code for result in answer.results] == [ErrorCode.NONE]


def test_nothing_but_versions_can_be_asked_before_authentication() -> None:
    client = stranger(guarded())
    versions = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert client.ask(versions, 3).error_code == ErrorCode.NONE
    with pytest.raises(CloseConnectionError):
        client.ask(ListTransactionsRequest(), 0)


def test_whoever_has_authenticated_is_known_by_name() -> None:
    client = login(guarded(), "alice", "b")
    assert client.connection.principal == "User:alice"
    assert client.ask(ListTransactionsRequest(), 0).error_code == ErrorCode.NONE


def test_whoever_is_refused_is_told_why_and_then_closed() -> None:
    client = stranger(guarded())
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 1)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    with pytest.raises(CloseConnectionError):
        client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0b"), 1)


def test_tokens_after_an_old_handshake_are_bare_frames() -> None:
    client = stranger(guarded())
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    assert send(client, b"\0alice\0b") == b""
    assert client.connection.principal == "User:alice"
    assert client.ask(ListTransactionsRequest(), 0).error_code == ErrorCode.NONE


def test_a_frame_without_a_key_is_no_request_before_authentication() -> None:
    client = stranger(guarded())
    with pytest.raises(CloseConnectionError):
        send(client, b"\0")


def test_sasl_is_out_of_place_on_a_listener_without_it() -> None:
    client = WireClient(new_broker())
    error = ErrorCode.ILLEGAL_SASL_STATE
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == error
    assert client.ask(SaslAuthenticateRequest(auth_bytes=b""), 1).error_code == error


def test_an_expired_session_authenticates_again_or_ends() -> None:
    client = login(guarded({"connections.max.reauth.ms": "1000"}), "alice", "b")
    client.advance(999)
    client.ask(ListTransactionsRequest(), 0)
    client.advance(1)
    with pytest.raises(CloseConnectionError):
        client.ask(ListTransactionsRequest(), 0)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0b"), 1)
    assert answer.session_lifetime_ms == 1000
    client.ask(ListTransactionsRequest(), 0)


def test_nonces_of_scram_come_from_the_random_numbers_of_the_broker() -> None:
    client = stranger(guarded())
    client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abc"), 1)
    nonce, salt, iterations = answer.auth_bytes.decode().split(",")
    assert nonce.startswith("r=abc")
    assert len(base64.b64decode(nonce[5:])) == 24
    assert (salt, iterations) == (f"s={base64.b64encode(SALT).decode()}", "i=4096")


def test_rules_are_created_described_and_deleted() -> None:
    admin = login(guarded(), "admin", "a")
    allow(admin, Operation.READ)
    allow(admin, Operation.WRITE)
    allow(admin, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")

    def described(resource_type: int) -> list[tuple[str, list[int]]]:
        request = DescribeAclsRequest(
            resource_type_filter=resource_type,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        return [
            (resource.resource_name, [acl.operation for acl in resource.acls])
            for resource in admin.ask(request, 3).resources
        ]

    assert described(ResourceType.TOPIC) == [("orders", [Operation.READ, Operation.WRITE])]
    assert described(ResourceType.ANY)[1] == ("t", [Operation.WRITE])
    everything, unknown = (
        DeleteAclsFilter(
            resource_type_filter=ResourceType.TOPIC,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=operation,
            permission_type=1,
        )
        for operation in (Operation.ANY, 77)
    )
    deleted, refused = admin.ask(DeleteAclsRequest(filters=[everything, unknown]), 1).filter_results
    assert [acl.operation for acl in deleted.matching_acls] == [Operation.READ, Operation.WRITE]
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert described(ResourceType.TOPIC) == []


def test_what_cannot_be_a_rule_is_told_beside_those_that_can() -> None:
    admin = login(guarded(), "admin", "a")
    creations = [
        AclCreation(
            resource_type=2,
            resource_name="orders",
            principal=principal,
            host="*",
            operation=3,
            permission_type=3,
        )
        for principal in ("alice", "User:alice")
    ]
    first, second = admin.ask(CreateAclsRequest(creations=creations), 1).results
    assert (first.error_code, second.error_code) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
    assert first.error_message == "a principal is a type and a name, as in User:alice"


def test_without_an_authorizer_there_are_no_rules_to_speak_of() -> None:
    client = WireClient(new_broker())
    error = ErrorCode.SECURITY_DISABLED
    assert client.ask(DescribeAclsRequest(), 3).error_code == error
    created = client.ask(CreateAclsRequest(creations=[AclCreation()]), 3)
    assert [result.error_code for result in created.results] == [error]
    deleted = client.ask(DeleteAclsRequest(filters=[DeleteAclsFilter()]), 3)
    assert [result.error_code for result in deleted.filter_results] == [error]


def test_whoever_may_not_change_the_cluster_changes_nothing() -> None:
    client = login(guarded(), "alice", "b")
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert client.ask(DescribeAclsRequest(), 3).error_code == error
    created = client.ask(CreateAclsRequest(creations=[AclCreation()]), 3)
    assert [result.error_code for result in created.results] == [error]
    assert client.ask(DescribeClientQuotasRequest(), 1).error_code == error
    assert client.ask(DescribeUserScramCredentialsRequest(users=[]), 0).error_code == error
    deletion = ScramCredentialDeletion(name="admin", mechanism=SCRAM_SHA_256)
    altered = client.ask(AlterUserScramCredentialsRequest(deletions=[deletion]), 0)
    assert [result.error_code for result in altered.results] == [error]
    entry = EntryData(entity=[EntityData(entity_type="user", entity_name="alice")])
    quotas = client.ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert [result.error_code for result in quotas.entries] == [error]
    marker = WritableTxnMarker(
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])]
    )
    marked = client.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert marked.markers[0].topics[0].partitions[0].error_code == error
    adding = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction()])
    assert client.ask(adding, 4).error_code == error


def test_a_transactional_producer_needs_its_name_and_its_topics() -> None:
    broker = guarded()
    admin, client = login(broker, "admin", "a"), login(broker, "alice", "b")
    init = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert client.ask(init, 4).error_code == error
    assert client.ask(EndTxnRequest(transactional_id="t"), 3).error_code == error
    allow(admin, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")
    producer = client.ask(init, 4)
    assert producer.error_code == ErrorCode.NONE
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
    )

    def added() -> int:
        [topic] = client.ask(add, 3).results_by_topic_v3_and_below
        code: int = topic.results_by_partition[0].partition_error_code
        return code

    assert added() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(admin, Operation.WRITE)
    assert added() == ErrorCode.NONE


def test_an_idempotent_producer_needs_any_topic_that_it_may_write_to() -> None:
    broker = guarded()
    admin, client = login(broker, "admin", "a"), login(broker, "alice", "b")
    init = InitProducerIdRequest(transactional_id=None)
    assert client.ask(init, 4).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(admin, Operation.WRITE)
    assert client.ask(init, 4).error_code == ErrorCode.NONE


def test_only_what_may_be_described_is_described() -> None:
    broker = guarded()
    admin, client = login(broker, "admin", "a"), login(broker, "alice", "b")
    admin.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), 4)
    describe = DescribeTransactionsRequest(transactional_ids=["t"])
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert client.ask(describe, 0).transaction_states[0].error_code == error
    assert client.ask(ListTransactionsRequest(), 0).transaction_states == []
    allow(admin, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "t")
    assert client.ask(describe, 0).transaction_states[0].error_code == ErrorCode.NONE
    assert len(client.ask(ListTransactionsRequest(), 0).transaction_states) == 1
    producers = DescribeProducersRequest(
        topics=[TopicRequest(name="orders", partition_indexes=[0])]
    )
    [found] = client.ask(producers, 0).topics[0].partitions
    assert found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def upsertion(
    user: str, password: str, *, mechanism: int = SCRAM_SHA_256, iterations: int = 4096
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=SALT,
        salted_password=salted_password(SCRAM_SHA_256, password, SALT, 4096),
    )


def test_scram_credentials_are_set_described_and_deleted() -> None:
    client = WireClient(new_broker())
    changes = [upsertion("dora", "x"), upsertion("dora", "x", mechanism=SCRAM_SHA_512)]
    answer = client.ask(AlterUserScramCredentialsRequest(upsertions=changes), 0)
    assert [(result.user, result.error_code) for result in answer.results] == [("dora", 0)]

    def described(*users: str) -> list[tuple[str, int, int]]:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
        return [
            (result.user, result.error_code, len(result.credential_infos))
            for result in client.ask(request, 0).results
        ]

    assert described() == [("dora", ErrorCode.NONE, 2)]
    assert described("dora", "nobody") == [
        ("dora", ErrorCode.NONE, 2),
        ("nobody", ErrorCode.RESOURCE_NOT_FOUND, 0),
    ]
    assert described("dora", "dora") == [("dora", ErrorCode.DUPLICATE_RESOURCE, 0)]
    deletion = ScramCredentialDeletion(name="dora", mechanism=SCRAM_SHA_512)
    client.ask(AlterUserScramCredentialsRequest(deletions=[deletion]), 0)
    assert described("dora") == [("dora", ErrorCode.NONE, 1)]


def test_of_a_user_all_changes_are_made_or_none() -> None:
    client = WireClient(new_broker())
    changes = [
        upsertion("dora", "x"),
        upsertion("emil", "x"),
        upsertion("emil", "x", mechanism=SCRAM_SHA_512, iterations=100),
        upsertion("fritz", "x"),
        upsertion("fritz", "y"),
    ]
    deletion = ScramCredentialDeletion(name="gustav", mechanism=SCRAM_SHA_256)
    request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=changes)
    answer = client.ask(request, 0)
    assert {result.user: result.error_code for result in answer.results} == {
        "dora": ErrorCode.NONE,
        "emil": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "fritz": ErrorCode.DUPLICATE_RESOURCE,
        "gustav": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert client.broker.credentials.scram_users() == ["dora"]


def test_one_request_adds_no_more_users_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.sasl.credentials.MAX_CREDENTIALS", 2)
    client = WireClient(new_broker())
    users = ("dora", "emil", "fritz")
    changes = [
        upsertion(user, "x", mechanism=mechanism)
        for user in users
        for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)
    ]
    answer = client.ask(AlterUserScramCredentialsRequest(upsertions=changes), 0)
    assert [result.error_code for result in answer.results] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
    ]
    assert client.broker.credentials.scram_users() == ["dora", "emil"]
    # Who is there already may change.
    changed = AlterUserScramCredentialsRequest(upsertions=[upsertion("emil", "y")])
    assert client.ask(changed, 0).results[0].error_code == ErrorCode.NONE


def test_client_quotas_are_set_and_described() -> None:
    client = WireClient(new_broker())
    entry = EntryData(
        entity=[EntityData(entity_type="user", entity_name=None)],
        ops=[OpData(key="producer_byte_rate", value=5.0), OpData(key="beer", remove=True)],
    )
    [refused] = client.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    entry.ops.pop()
    [done] = client.ask(AlterClientQuotasRequest(entries=[entry]), 0).entries
    assert (done.error_code, done.entity[0].entity_name) == (ErrorCode.NONE, None)
    component = ComponentData(entity_type="user", match_type=1, match=None)
    answer = client.ask(DescribeClientQuotasRequest(components=[component]), 1)
    [found] = answer.entries
    assert [(value.key, value.value) for value in found.values] == [("producer_byte_rate", 5.0)]
    component.match_type = 9
    answer = client.ask(DescribeClientQuotasRequest(components=[component]), 1)
    assert (answer.error_code, answer.entries) == (ErrorCode.INVALID_REQUEST, None)


def test_a_large_frame_from_a_stranger_is_not_read() -> None:
    client = stranger(guarded())
    with pytest.raises(CloseConnectionError):
        send(client, struct.pack(">hhi", 18, 0, 1) + bytes(600_000))


@pytest.mark.parametrize(
    "name", ["sasl.jaas.config", "listener.name.sasl_plaintext.plain.sasl.jaas.config"]
)
def test_users_of_plain_are_set_as_kafka_sets_them(name: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    broker = new_broker({name: f'{module} required user_dora="open sesame";'})
    assert login(broker, "dora", "open sesame").connection.principal == "User:dora"


def test_users_that_cannot_be_read_are_a_fault_of_the_settings() -> None:
    with pytest.raises(InvalidConfigError, match="ends with a semicolon"):
        new_broker({"sasl.jaas.config": "PlainLoginModule required user_dora=x"})


def test_passwords_are_not_told_to_those_who_ask_for_settings() -> None:
    client = WireClient(new_broker({"sasl.jaas.config": "M required user_dora=x;"}))
    resource = DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=["sasl.jaas.config"]
    )
    answer = client.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    [config] = answer.results[0].configs
    assert (config.is_sensitive, config.value) == (True, None)
    assert "dora" not in repr(answer)

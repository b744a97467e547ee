"""A fault that is limited to what a request names strikes in every API that names it."""

from importlib import import_module
from typing import Any

import pytest
from ottla.broker.api import APIS, Api
from ottla.broker.broker import error_codes
from ottla.broker.connection import CloseConnectionError
from ottla.broker.faults import Fault, Names
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.wire import Struct, schema
from support.messages import one_item_in_each_list
from support.wire_client import WireClient, new_broker

TOPIC, GROUP, TRANSACTION = "orders", "readers", "payments"
METADATA_LOG = "__cluster_metadata"
ERROR = ErrorCode.KAFKA_STORAGE_ERROR
"""No API answers with it in a broker without files."""

# What a field is called that names something, whichever API it is of.
_GROUP_FIELDS = {"group_id", "group_ids", "groups", "groups_names"}
_TRANSACTION_FIELDS = {
    "transactional_id",
    "transactional_ids",
    "v3_and_below_transactional_id",
}
_TOPIC_FIELDS = {"name", "topic", "topic_name", "topic_names", "topics", "resource_name"}

CASES = [
    pytest.param(api, selector, id=f"{api.name}-{selector}")
    for api in APIS.values()
    for selector in sorted(api.selectors)
]


class Home:
    """A broker with a topic, a group that has committed, and a transactional id."""

    def __init__(self) -> None:
        self.client = WireClient(new_broker())
        self.broker = self.client.broker
        self.broker.topics.create(TOPIC, 1, {}, self.client.now_ms)
        self.topic_id = self.broker.image.topics[TOPIC].topic_id
        committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])]
        self.client.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        request = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000)
        self.producer = self.client.ask(request, 4)

    def request(self, api: Api, version: int, selector: str) -> Any:
        """A request that names all of it."""
        module = import_module(f"ottla.protocol.messages.{api.name}")
        request = one_item_in_each_list(getattr(module, f"{api.title}Request"), version)
        self._name(request, version)
        if api.name == "produce":
            request.acks = 1
        if api.name == "describe_quorum":
            request.topics[0].topic_name = METADATA_LOG
        if api.name == "txn_offset_commit":
            self.client.ask(
                AddOffsetsToTxnRequest(
                    transactional_id=TRANSACTION,
                    producer_id=self.producer.producer_id,
                    producer_epoch=self.producer.producer_epoch,
                    group_id=GROUP,
                ),
                3,
            )
        if api.name == "find_coordinator":
            key = GROUP if selector == "group" else TRANSACTION
            if version:
                request.key_type = int(selector == "transactional_id")
            if version < 4:
                request.key = key
            else:
                request.coordinator_keys = [key]
        return request

    def _name(self, message: Struct, version: int) -> None:
        fields = {each.name for each in schema(type(message)).fields if version in each.versions}
        for name in fields:
            value = getattr(message, name)
            items = value if isinstance(value, list) else [value]
            if items and isinstance(items[0], Struct):
                for item in items:
                    self._name(item, version)
                continue
            known = self._known(name, fields)
            if known is not None:
                setattr(message, name, [known] if isinstance(value, list) else known)

    def _known(self, name: str, fields: set[str]) -> Any:
        if name in _GROUP_FIELDS:
            return GROUP
        if name in _TRANSACTION_FIELDS:
            return TRANSACTION
        if name == "topic_id":
            # Where there is a name as well, one of them is enough, and some allow no more.
            return self.topic_id if not fields & {"name", "topic"} else None
        if name in _TOPIC_FIELDS:
            return TOPIC
        if name.endswith("producer_id"):
            return self.producer.producer_id
        if name.endswith("producer_epoch"):
            return self.producer.producer_epoch
        return 2 if name == "resource_type" else None


@pytest.mark.parametrize(("api", "selector"), CASES)
def test_every_api_answers_a_fault_with_each_limit_in_every_version_that_names_it(
    api: Api, selector: str
) -> None:
    struck = 0
    for version in range(api.min_version, api.max_version + 1):
        if api.name == "find_coordinator" and selector == "transactional_id" and not version:
            continue
        named = Names(TOPIC, 0, GROUP, TRANSACTION)
        if api.name == "describe_quorum":
            named = named._replace(topic=METADATA_LOG)
        chosen: dict[str, Any] = {selector: getattr(named, selector)}
        another: dict[str, Any] = {selector: 7 if selector == "partition" else "other"}
        limit, other = Names(**chosen), Names(**another)
        for names, hits in ((other, 0), (limit, 1)):
            home = Home()
            fault = home.broker.faults.add(Fault(api, error=ERROR, names=names))
            answer = home.client.ask(home.request(api, version, selector), version)
            assert (ERROR in error_codes(answer), fault.hits) == (bool(hits), hits), version
            struck += hits
    assert struck


@pytest.mark.parametrize(("api", "selector"), CASES)
def test_an_observer_with_each_limit_counts_in_every_version_that_names_it(
    api: Api, selector: str
) -> None:
    for version in range(api.min_version, api.max_version + 1):
        if api.name == "find_coordinator" and selector == "transactional_id" and not version:
            continue
        topic = METADATA_LOG if api.name == "describe_quorum" else TOPIC
        named = Names(topic, 0, GROUP, TRANSACTION)
        chosen: dict[str, Any] = {selector: getattr(named, selector)}
        another: dict[str, Any] = {selector: 7 if selector == "partition" else "other"}
        home = Home()
        request = home.request(api, version, selector)
        seen = home.broker.faults.add(Fault(api, observe=True, names=Names(**chosen)))
        unseen = home.broker.faults.add(Fault(api, observe=True, names=Names(**another)))
        home.client.send(request, version)
        assert (seen.hits, unseen.hits) == (1, 0), version


def test_a_condition_decides_on_the_error_of_a_topic_and_is_asked_once_a_request() -> None:
    home = Home()
    asked: list[Any] = []

    def names_topics(request: Any) -> bool:
        asked.append(request)
        return bool(request.topics)

    home.broker.faults.add(Fault(None, error=ERROR, names=Names(topic=TOPIC), when=names_topics))
    home.broker.topics.create("payments", 1, {}, home.client.now_ms)
    api = next(each for each in APIS.values() if each.name == "metadata")
    named = home.request(api, 9, "topic")
    everything = MetadataRequest(topics=None)
    assert ERROR not in error_codes(home.client.ask(everything, 9))
    assert ERROR in error_codes(home.client.ask(named, 9))
    assert len(asked) == 2


@pytest.mark.parametrize("version", [12, 17])
def test_a_fetch_in_a_session_is_of_the_topics_that_the_session_has(version: int) -> None:
    home = Home()
    topic = FetchTopic(topic=TOPIC, topic_id=home.topic_id, partitions=[FetchPartition()])
    begin = FetchRequest(session_epoch=0, topics=[topic], max_bytes=1)
    session_id = home.client.ask(begin, version).session_id
    names = Names(TOPIC, 0)
    fault = home.broker.faults.add(Fault(None, disconnect=True, names=names, times=1))
    seen = home.broker.faults.add(Fault(None, observe=True, names=names))
    unseen = home.broker.faults.add(Fault(None, observe=True, names=Names(TOPIC, 1)))
    again = FetchRequest(session_id=session_id, session_epoch=1)
    with pytest.raises(CloseConnectionError):
        home.client.ask(again, version)
    assert (fault.hits, unseen.hits) == (1, 0)
    assert home.client.ask(again, version).error_code == 0
    assert seen.hits == 2


def test_a_fault_of_a_partition_counts_no_request_that_is_refused_before_it() -> None:
    home = Home()
    fault = home.broker.faults.add(Fault(None, error=ERROR, names=Names(topic=TOPIC)))
    api = next(each for each in APIS.values() if each.name == "offset_delete")
    request = home.request(api, 0, "topic")
    request.group_id = "nobody"
    assert home.client.ask(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert fault.hits == 0


def test_a_fault_of_what_a_list_does_not_name_hides_nothing_of_it() -> None:
    home = Home()
    fault = home.broker.faults.add(
        Fault(None, error=ERROR, names=Names(transactional_id=TRANSACTION))
    )
    answer = home.client.ask(ListTransactionsRequest(), 0)
    assert [each.transactional_id for each in answer.transaction_states] == [TRANSACTION]
    assert fault.hits == 0

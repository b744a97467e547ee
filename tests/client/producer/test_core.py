"""A producer without I/O, on scripted brokers whose leaders are the engine's."""

from __future__ import annotations

from typing import Any

import ottla
import pytest
from ottla.client.errors import (
    ClusterAuthorizationError,
    IllegalStateError,
    KafkaTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from ottla.client.network.metadata import Leader
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from support.leading import LeadingCluster, Sending
from support.scripted_cluster import CUT, SILENCE

VALUES = [b"%d" % i for i in range(10)]


def test_records_arrive_in_order_and_their_promises_have_the_offsets() -> None:
    sending = Sending(LeadingCluster(topics={"prices": 1}))
    sending.send(*VALUES)
    sending.run()
    assert sending.cluster.logs["prices", 0] == VALUES
    assert sending.offsets() == {value: i for i, value in enumerate(VALUES)}


class CutShort:
    """What is appended to, where Ctrl-C comes before or behind its next call."""

    def __init__(self, inner: Any, *, is_behind: bool) -> None:
        self._inner = inner
        self._is_behind = is_behind
        self._is_cut = False

    def append(self, *what: Any) -> Any:
        if self._is_cut:
            return self._inner.append(*what)
        self._is_cut = True
        if self._is_behind:
            self._inner.append(*what)
        raise KeyboardInterrupt

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize("part", ["records", "promises", "times"])
@pytest.mark.parametrize("is_behind", [False, True])
def test_ctrl_c_in_the_midst_of_a_send_leaves_each_record_its_own_promise(
    part: str, is_behind: bool
) -> None:
    sending = Sending(LeadingCluster(topics={"prices": 1}), linger_ms=500)
    sending.send(b"0")
    sending.run(lambda: not sending.waiting)
    (batch,) = (queue.growing for queue in sending.core.accumulator.active)
    assert batch is not None
    owner = batch if part == "records" else batch.tail
    whole = getattr(owner, part)
    setattr(owner, part, CutShort(whole, is_behind=is_behind))
    with pytest.raises(KeyboardInterrupt):
        sending.send(b"1")
    setattr(owner, part, whole)
    sending.send(b"2")
    sending.run()
    written = sending.cluster.logs["prices", 0]
    assert written in ([b"0", b"2"], [b"0", b"1", b"2"])
    assert sending.offsets() == {value: i for i, value in enumerate(written)}


def test_records_linger_for_others_unless_they_are_flushed() -> None:
    sending = Sending(LeadingCluster(topics={"prices": 1}), linger_ms=500)
    sending.send(b"0")
    sending.run()
    begin_ms = sending.cluster.now_ms
    sending.send(b"1", b"2")
    sending.run()
    assert sending.cluster.now_ms - begin_ms >= 500
    begin_ms = sending.cluster.now_ms
    sending.send(b"3")
    flushed = sending.core.flush()
    sending.run(lambda: flushed.is_done)
    assert sending.cluster.now_ms - begin_ms < 100
    assert len(sending.cluster.produced) == 3


def test_a_batch_that_is_full_does_not_linger() -> None:
    sending = Sending(LeadingCluster(topics={"prices": 1}), linger_ms=60_000, batch_size=200)
    begin_ms = sending.cluster.now_ms
    sending.send(*(b"%d" % i + bytes(50) for i in range(9)))
    sending.run(lambda: len(sending.fates) == 8)
    assert sending.cluster.now_ms - begin_ms < 1_000


def test_batches_of_many_partitions_of_a_leader_travel_in_one_request() -> None:
    cluster = LeadingCluster(nodes=2, topics={"prices": 6})
    sending = Sending(cluster)
    sending.send(b"first")
    sending.run()
    for partition in range(6):
        sending.send(b"%d" % partition, partition=partition)
    sending.run()
    sizes = [
        sum(len(topic.partition_data) for topic in request.topic_data)
        for request in cluster.asked("Produce")[1:]
    ]
    assert sizes == [3, 3]


def test_a_request_is_no_larger_than_is_allowed() -> None:
    cluster = LeadingCluster(topics={"prices": 6})
    sending = Sending(cluster, max_request_size=1_000, batch_size=600)
    for partition in range(6):
        sending.send(b"%d" % partition + bytes(400), partition=partition)
    sending.run()
    assert len(sending.offsets()) == 1
    for request in cluster.asked("Produce"):
        whole = sum(len(p.records) for t in request.topic_data for p in t.partition_data)
        assert whole <= 1_000


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_requests_are_under_way_than_are_allowed(most: int) -> None:
    cluster = LeadingCluster(
        topics={"prices": 1}, max_in_flight_requests_per_connection=most, latency_ms=50
    )
    sending = Sending(cluster, batch_size=100, max_in_flight_requests_per_connection=most)
    sending.send(*(b"%02d" % i + bytes(40) for i in range(40)))
    under_way: list[float] = []

    def is_done() -> bool:
        under_way.append(sending.core.snapshot(cluster.now_ms)["requests-in-flight"])
        return sending.is_done()

    sending.run(is_done)
    assert max(under_way) == most
    assert [value[:2] for value in cluster.logs["prices", 0]] == [b"%02d" % i for i in range(40)]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acknowledgements_are_asked_for_as_configured(acks: int) -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, acks=acks)
    if acks == 0:
        cluster.on("Produce", lambda *asked: (cluster.produce(*asked), SILENCE)[1])
    sending.send(*VALUES)
    sending.run()
    cluster.run(max_ms=1_000)
    assert [request.acks for request in cluster.asked("Produce")] == [acks]
    assert cluster.logs["prices", 0] == VALUES
    assert set(sending.offsets().values()) == ({-1} if acks == 0 else set(range(10)))


def test_a_leader_that_moved_is_found_and_nothing_is_sent_twice() -> None:
    cluster = LeadingCluster(nodes=2, topics={"prices": 1})
    sending = Sending(cluster)
    sending.send(b"0")
    sending.run()
    cluster.leaders["prices", 0] = (2, 1)
    sending.send(b"1")
    sending.run()
    assert cluster.logs["prices", 0] == [b"0", b"1"]
    asked = [node for node, api, _, _ in cluster.requests if api == "Produce"]
    assert asked[:2] == [1, 1]
    assert asked[-1] == 2


def test_an_answer_that_names_the_new_leader_saves_looking_it_up() -> None:
    cluster = LeadingCluster(nodes=2, topics={"prices": 1})
    sending = Sending(cluster)
    sending.send(b"0")
    sending.run()

    def moved() -> ProduceResponse:
        cluster.leaders["prices", 0] = (2, 9)
        part = PartitionProduceResponse(
            index=0,
            error_code=6,
            base_offset=-1,
            current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
        )
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="prices", topic_id=cluster.id_of("prices"), partition_responses=[part]
                )
            ],
            node_endpoints=[NodeEndpoint(node_id=2, host="node-2", port=9092)],
        )

    cluster.replies.append(moved)
    sending.send(b"1")
    sending.run()
    assert cluster.network.metadata.leader("prices", 0) == Leader(2, 9)
    assert cluster.logs["prices", 0] == [b"0", b"1"]


@pytest.mark.parametrize("fate", [CUT, SILENCE])
@pytest.mark.parametrize("is_written", [False, True])
def test_a_request_without_an_answer_is_repeated_and_its_records_are_there_once(
    fate: object, is_written: bool
) -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    sending.send(b"0")
    sending.run()

    def lose() -> object:
        if is_written:
            name, partition, data = cluster.produced[-1]
            cluster.append(name, partition, data, 9)
        return fate

    cluster.replies.append(lose)
    sending.send(b"1", b"2")
    sending.run()
    assert cluster.logs["prices", 0] == [b"0", b"1", b"2"]
    assert sending.offsets() == {b"0": 0, b"1": 1, b"2": 2}


def test_a_batch_that_may_be_sent_again_before_its_leader_may_be_reached_goes_when_it_may() -> None:
    cluster = LeadingCluster(
        topics={"prices": 1}, reconnect_backoff_ms=2_000, reconnect_backoff_max_ms=2_000
    )
    sending = Sending(cluster, retry_backoff_ms=5, retry_backoff_max_ms=5)
    cluster.replies.append(lambda: CUT)
    sending.send(b"0")
    sending.run(max_ms=5_000)
    assert sending.offsets() == {b"0": 0}
    assert len(cluster.produced) == 2


def test_records_for_a_leader_that_asks_for_a_pause_are_sent_when_it_is_over() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    produce = cluster.produce

    def throttled(request: Any, version: int) -> Any:
        response = produce(request, version)
        response.throttle_time_ms = 3_000
        return response

    cluster.on("Produce", throttled)
    sending.send(b"0")
    sending.run()
    begin_ms = cluster.now_ms
    sending.send(b"1")
    sending.run(max_ms=5_000)
    assert 2_900 < cluster.now_ms - begin_ms < 3_100
    assert sending.offsets() == {b"0": 0, b"1": 1}


def test_a_record_that_nobody_takes_fails_in_its_time() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, delivery_timeout_ms=31_000, linger_ms=5)
    cluster.replies.extend([19] * 1_000)
    begin_ms = cluster.now_ms
    sending.send(b"0")
    sending.run()
    assert isinstance(sending.fates[b"0"], KafkaTimeoutError)
    assert 31_000 <= cluster.now_ms - begin_ms < 33_000


def test_a_topic_that_is_not_known_is_waited_for() -> None:
    cluster = LeadingCluster(topics={})
    sending = Sending(cluster)
    cluster.errors["prices"] = 3
    sending.send(b"0", b"1")
    assert len(sending.waiting) == 2
    cluster.run(max_ms=5_000)
    assert len(sending.waiting) == 2
    del cluster.errors["prices"]
    cluster.add_topic("prices")
    sending.run()
    assert cluster.logs["prices", 0] == [b"0", b"1"]


def test_who_waits_no_longer_for_a_topic_is_told_what_brokers_say_of_it() -> None:
    cluster = LeadingCluster(topics={})
    sending = Sending(cluster)
    cluster.errors["prices"] = 3
    sending.send(b"0")
    cluster.run(max_ms=60_000)
    error = sending.core.time_out_send(sending.waiting[b"0"], 60_000)
    assert isinstance(error, KafkaTimeoutError)
    assert str(error) == (
        "topic prices is not known after max_block_ms (60000): brokers say "
        "UNKNOWN_TOPIC_OR_PARTITION; does the topic exist?"
    )
    assert sending.core.accumulator.waiting_count == 0


def test_a_partition_that_does_not_exist_yet_is_waited_for() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    sending.send(b"0")
    sending.run()
    sending.send(b"1", partition=1)
    cluster.run(max_ms=3_000)
    assert b"1" in sending.waiting
    cluster.topics["prices"] = 2
    sending.run()
    assert cluster.logs["prices", 1] == [b"1"]


def test_a_topic_that_the_user_may_not_see_is_an_error_at_once() -> None:
    cluster = LeadingCluster(topics={})
    sending = Sending(cluster)
    cluster.errors["prices"] = 29
    sending.send(b"0")
    sending.run()
    assert isinstance(sending.fates[b"0"], TopicAuthorizationError)
    with pytest.raises(TopicAuthorizationError, match="topic 'prices'"):
        sending.send(b"1")


def test_memory_is_bounded_and_who_waits_for_it_goes_on_in_turn() -> None:
    cluster = LeadingCluster(topics={"prices": 1}, latency_ms=50)
    sending = Sending(cluster, buffer_memory=1_000, batch_size=500)
    values = [b"%02d" % i + bytes(300) for i in range(12)]
    sending.send(b"first")
    sending.run()
    sending.send(*values)
    assert len(sending.waiting) == 10
    assert sending.core.snapshot(cluster.now_ms)["buffer-available-bytes"] == 0
    low: list[float] = []

    def is_done() -> bool:
        low.append(sending.core.accumulator.free_bytes)
        return sending.is_done()

    sending.run(is_done)
    assert min(low) >= 0
    assert cluster.logs["prices", 0] == [b"first", *values]
    metrics = sending.core.snapshot(cluster.now_ms)
    assert metrics["buffer-available-bytes"] == 1_000
    assert metrics["bufferpool-wait-time-ns-total"] > 0


def test_a_call_that_waits_no_longer_for_memory_does_not_hold_those_behind_it() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, buffer_memory=500, batch_size=500)
    sending.send(b"first")
    sending.run()
    sending.send(b"0" + bytes(300), b"1" + bytes(300), b"2" + bytes(300))
    given_up = sending.waiting.pop(b"1" + bytes(300))
    error = sending.core.time_out_send(given_up, 60_000)
    assert isinstance(error, KafkaTimeoutError)
    assert "buffer_memory (500) is full" in str(error)
    sending.run()
    assert [value[:1] for value in cluster.logs["prices", 0]] == [b"f", b"0", b"2"]
    assert sending.core.snapshot(cluster.now_ms)["buffer-exhausted-total"] == 1


@pytest.mark.parametrize("option", ["max_request_size", "buffer_memory"])
def test_a_record_that_never_finds_room_is_refused_at_once(option: str) -> None:
    sending = Sending(LeadingCluster(topics={"prices": 1}), **{option: 1_000})
    sending.send(b"0")
    sending.run()
    with pytest.raises(RecordTooLargeError, match=rf"more than {option} \(1000\)"):
        sending.send(bytes(1_000))
    sending.send(b"1")
    sending.run()
    assert sending.cluster.logs["prices", 0] == [b"0", b"1"]


def test_without_an_id_nothing_is_sent_and_the_error_is_kept() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    cluster.on("InitProducerId", lambda *_: InitProducerIdResponse(error_code=31))
    sending.send(b"0")
    sending.run()
    assert isinstance(sending.fates[b"0"], ClusterAuthorizationError)
    with pytest.raises(ClusterAuthorizationError) as first:
        sending.send(b"1")
    with pytest.raises(ClusterAuthorizationError) as second:
        sending.send(b"2")
    assert first.value is not second.value
    assert not cluster.produced


def test_an_id_is_asked_for_until_a_broker_gives_one() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    refusals = [14, 51]

    def init(request: object, version: int) -> InitProducerIdResponse:
        if refusals:
            return InitProducerIdResponse(error_code=refusals.pop(0))
        return cluster.init_producer_id(request, version)

    cluster.on("InitProducerId", init)
    sending.send(b"0")
    sending.run()
    assert cluster.logs["prices", 0] == [b"0"]


def test_behind_the_last_epoch_comes_another_id() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster)
    cluster.on(
        "InitProducerId",
        lambda *_: InitProducerIdResponse(
            error_code=0,
            producer_id=5 + len(cluster.asked("InitProducerId")),
            producer_epoch=32767 if len(cluster.asked("InitProducerId")) == 1 else 0,
        ),
    )
    sending.send(b"0")
    sending.run()
    cluster.replies.append(47)
    sending.send(b"1")
    sending.run()
    headers = [next(iter(ottla.read_batches(data))) for _, _, data in cluster.produced]
    assert [(one.producer_id, one.producer_epoch) for one in headers] == [
        (6, 32767),
        (6, 32767),
        (7, 0),
    ]
    assert cluster.logs["prices", 0] == [b"0", b"1"]


def test_without_idempotence_no_id_is_asked_for() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, enable_idempotence=False)
    sending.send(b"0")
    sending.run()
    assert not cluster.asked("InitProducerId")
    (_, _, data), *_ = cluster.produced
    assert next(iter(ottla.read_batches(data))).producer_id == -1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_configured_and_grow_as_they_shrink(codec: str) -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, compression_type=codec, batch_size=2_000)
    for i in range(400):
        sending.send(b"%03d" % i + bytes(100))
        if i % 20 == 0:
            sending.run()
    sending.run()
    assert len(sending.offsets()) == 400
    assert {
        next(iter(ottla.read_batches(data))).compression for _, _, data in cluster.produced
    } == {codec}
    limit = sending.core.accumulator.topics["prices"].limit
    assert (limit > 2_000) == (codec != "none")


def test_zstd_is_refused_where_brokers_are_too_old_for_it() -> None:
    cluster = LeadingCluster(topics={"prices": 1}, versions={"Produce": range(7)})
    sending = Sending(cluster, compression_type="zstd", enable_idempotence=False)
    sending.send(b"0")
    sending.run()
    assert isinstance(sending.fates[b"0"], UnsupportedVersionError)


@pytest.mark.parametrize("last", [3, 5, 8, 9, 12, 13])
def test_each_version_of_produce_is_spoken(last: int) -> None:
    cluster = LeadingCluster(topics={"prices": 1}, versions={"Produce": range(last + 1)})
    sending = Sending(cluster)
    sending.send(b"0", b"1")
    sending.run()
    assert cluster.logs["prices", 0] == [b"0", b"1"]
    assert [version for _, api, version, _ in cluster.requests if api == "Produce"] == [last]


def test_closing_sends_what_there_is_and_takes_nothing_more() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, linger_ms=60_000, delivery_timeout_ms=120_000)
    sending.send(b"0")
    sending.run(lambda: not sending.waiting)
    closing = sending.core.close()
    with pytest.raises(ProducerClosedError):
        sending.send(b"1")
    sending.run(lambda: closing.is_done)
    assert cluster.logs["prices", 0] == [b"0"]


def test_closing_at_once_fails_what_is_not_acknowledged() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, buffer_memory=500, batch_size=500)
    sending.send(b"first")
    sending.run()
    sending.send(b"0" + bytes(300), b"1" + bytes(300))
    sending.core.close_now(cluster.now_ms)
    assert "closed before the record was acknowledged" in str(sending.fates[b"0" + bytes(300)])
    assert isinstance(sending.fates[b"1" + bytes(300)], ProducerClosedError)
    assert sending.is_done()


def test_calls_of_transactions_need_a_transactional_id() -> None:
    sending = Sending(LeadingCluster())
    with pytest.raises(IllegalStateError, match="no transactional_id"):
        sending.core.init_transactions()


def test_metrics_count_what_happened_by_kafkas_names() -> None:
    cluster = LeadingCluster(topics={"prices": 1})
    sending = Sending(cluster, compression_type="lz4")
    sending.send(b"0", b"!1", b"2")
    sending.run()
    cluster.replies.append(19)
    sending.send(b"3")
    sending.run()
    metrics = sending.core.snapshot(cluster.now_ms)
    assert metrics["record-send-total"] == 3
    assert metrics["record-drop-total"] == 1
    assert metrics["record-retry-total"] == 1
    assert metrics["record-error-total"] == 0
    assert metrics["batch-culprit-retry-total"] == 1
    assert metrics["record-drop-rate"] == pytest.approx(1 / 30)
    assert metrics["batch-size-max"] > 61
    assert 2 <= metrics["request-latency-avg"] <= metrics["request-latency-max"]
    assert metrics["records-per-request-max"] == 3
    assert 0 < metrics["compression-rate-avg"] < 2

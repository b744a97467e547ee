"""What becomes of a record: raw by `send`, and with a type by `produce` (KIP-467, KIP-691)."""

import asyncio
from collections.abc import Iterator

import pytest
from ottla.client import (
    AsyncProducer,
    FailureType,
    InvalidRecordError,
    NewTopic,
    ProduceFailedError,
    Producer,
)
from ottla.net.client.admin import Admin
from ottla.testing import Broker


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            compacted = NewTopic("names", 1, configs={"cleanup.policy": "compact"})
            admin.create_topics([compacted]).check()
        yield broker.bootstrap_servers


def test_a_refused_record_fails_alone_and_the_others_of_its_batch_arrive(servers: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=50) as producer:
        futures = [producer.send("names", b"v", key=key) for key in (b"a", None, b"c")]
        producer.flush()
        assert [futures[index].result().offset for index in (0, 2)] == [0, 1]
        with pytest.raises(InvalidRecordError):
            futures[1].result()


def test_produce_says_in_which_way_a_record_failed_and_send_has_the_error_itself(
    servers: str,
) -> None:
    async def main() -> None:
        async with AsyncProducer(bootstrap_servers=servers) as producer:
            assert (await producer.produce("names", b"v", key=b"k")).offset == 0
            with pytest.raises(ProduceFailedError) as failed:
                await producer.produce("names", b"v")
            assert failed.value.failure_type is FailureType.MESSAGE_REJECTED
            assert type(failed.value.root) is InvalidRecordError
            with pytest.raises(InvalidRecordError):
                await (await producer.send("names", b"v"))

    asyncio.run(main())

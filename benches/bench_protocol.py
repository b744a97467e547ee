"""Messages of the protocol: read, written and imported, beside kafka-python.

Produce and Fetch are read by the engine in a broker; here they stand for messages of many structs.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import request_of, response_of
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.wire import Message, schema

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="protocol")]

Codec = Callable[[], object]


def produce_request(partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=i, records=bytes(170)) for i in range(partitions)]
    topic = TopicProduceData(name="orders", partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response(partitions: int) -> ProduceResponse:
    answers = [
        PartitionProduceResponse(index=i, base_offset=5, log_start_offset=0)
        for i in range(partitions)
    ]
    topic = TopicProduceResponse(name="orders", partition_responses=answers)
    return ProduceResponse(responses=[topic])


def metadata_response(partitions: int) -> MetadataResponse:
    described = [
        MetadataResponsePartition(
            partition_index=i, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
        )
        for i in range(partitions)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        controller_id=1,
        topics=[MetadataResponseTopic(name="orders", partitions=described)],
    )


def join_group_request(protocols: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="group",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="consumer-1-5f0cfd5c-2a5b-4f57-8d52-5d2b4b0b4f0a",
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name=f"range-{i}", metadata=bytes(40))
            for i in range(protocols)
        ],
    )


MESSAGES: dict[str, tuple[Callable[[int], Message], int]] = {
    "Produce 9": (produce_request, 9),
    "its answer": (produce_response, 9),
    "Metadata 9's answer": (metadata_response, 9),
    "JoinGroup 5": (join_group_request, 5),
}


def peer_of(message: Message) -> Any:
    """kafka-python's class of a message."""
    messages = pytest.importorskip("kafka.protocol.api_message")
    for package in ("consumer", "metadata", "producer"):
        pytest.importorskip(f"kafka.protocol.{package}")
    peers = {peer.__name__: peer for peer in messages.ApiMessage.__subclasses__()}
    return peers[schema(type(message)).name]


def reader(message: Message, version: int, peer: str) -> Codec:
    frame = b"".join(encode(type(message), version)(message))
    if peer == "ottla":
        ours = decode(type(message), version)
        return lambda: ours(frame, 0)
    theirs = peer_of(message)
    return lambda: theirs.decode(frame, version=version, header=False)


def writer(message: Message, version: int, peer: str) -> Codec:
    if peer == "ottla":
        ours = encode(type(message), version)
        return lambda: ours(message)
    theirs = peer_of(message)
    frame = b"".join(encode(type(message), version)(message))
    its = theirs.decode(frame, version=version, header=False)
    flexible = theirs.flexible_version_q(version)
    layout = theirs._struct
    return lambda: layout.encode(its, version=version, compact=flexible, tagged=flexible)


@pytest.mark.parametrize("peer", ["ottla", "kafka-python"])
@pytest.mark.parametrize("structs", [1, 100])
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("job", [reader, writer], ids=["read", "written"])
def test_a_message_is_read_and_written(
    benchmark: Any, job: Callable[..., Codec], name: str, structs: int, peer: str
) -> None:
    made, version = MESSAGES[name]
    assert benchmark(job(made(structs), version, peer))


# What a broker compiles while a client of each kind does its first work.
FIRST = {
    ApiKey.API_VERSIONS: 4,
    ApiKey.METADATA: 12,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.LIST_OFFSETS: 7,
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.FIND_COORDINATOR: 4,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}


def test_twelve_apis_are_compiled(benchmark: Any) -> None:
    pairs = [(request_of(key), response_of(key), version) for key, version in FIRST.items()]

    def compiled() -> int:
        from ottla.protocol.decoder import decoder
        from ottla.protocol.encoder import encoder

        for request, response, version in pairs:
            decoder(request, version, private=True)
            encoder(response, version, private=True)
        return len(pairs)

    assert benchmark(compiled) == len(FIRST)


# Without the package's own face, which is no part of the protocol.
IMPORT = """
import sys, time, types
package = types.ModuleType("ottla")
package.__path__ = [sys.argv[1]]
sys.modules["ottla"] = package
begin = time.process_time()
import ottla.protocol.codec, ottla.protocol.header, ottla.protocol.framing
for name in sys.argv[2:]:
    __import__(f"ottla.protocol.messages.{name}")
print(time.process_time() - begin)
"""


@pytest.mark.parametrize("apis", [0, 12])
def test_the_codec_and_some_apis_are_imported(
    benchmark: Any, apis: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As installed: what Python has compiled of modules is kept.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    package = sys.modules["ottla"].__path__[0]
    names = [key.name.lower() for key in FIRST][:apis]
    command = [sys.executable, "-S", "-c", IMPORT, package, *names]
    cpu_s = []

    def imported() -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        cpu_s.append(float(done.stdout))

    imported()
    benchmark(imported)
    benchmark.extra_info["cpu_ms"] = 1000 * min(cpu_s)

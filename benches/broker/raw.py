"""A client that sends ready-made frames and does not look into the answers: what a broker takes."""

import selectors
import socket
import statistics
import time
from collections.abc import Sequence
from struct import Struct

import ottla
from ottla.protocol.codec import encode
from ottla.protocol.header import request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.wire import Message, schema

_SIZE = Struct(">i")
_PRODUCE_VERSION, _FETCH_VERSION = 9, 12
_TIMEOUT_S = 30
VALUE = b"x" * 100


def frame_of(message: Message, version: int) -> bytes:
    """Return a request with its header and its size."""
    key = schema(type(message)).api_key
    assert key is not None
    body = b"".join(encode(type(message), version)(message))
    request = request_header(key, version, 1, "bench") + body
    return _SIZE.pack(len(request)) + request


def produce_frame(topic: str, partitions: Sequence[int]) -> bytes:
    """Return a request that adds one record of 100 bytes to each partition."""
    batch = ottla.build_batch([ottla.NewRecord(value=VALUE)])
    data = [PartitionProduceData(index=index, records=batch) for index in partitions]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
    return frame_of(request, _PRODUCE_VERSION)


def fetch_frame(topic: str, partitions: Sequence[int]) -> bytes:
    """Return a request for what these partitions hold, at once."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in partitions
    ]
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50 << 20,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    return frame_of(request, _FETCH_VERSION)


class RawClient:
    """One connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "RawClient":  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, frame: bytes) -> bytes:
        """Return the answer to a request, without its size."""
        self._socket.sendall(frame)
        (size,) = _SIZE.unpack(self._read(_SIZE.size))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        answer = bytearray()
        while len(answer) < size:
            part = self._socket.recv(size - len(answer))
            if not part:
                raise ConnectionError("the broker has closed the connection")
            answer += part
        return bytes(answer)

    def api_versions(self) -> bytes:
        """Ask which APIs there are."""
        return self.ask(frame_of(ApiVersionsRequest(), 0))

    def metadata(self, topic: str) -> bytes:
        """Ask where a topic is."""
        return self.ask(frame_of(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 5))

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        self.ask(frame_of(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 4))

    def median_s(self, frame: bytes, count: int) -> float:
        """Return the median time of a request, over so many."""
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            self.ask(frame)
            times.append(time.perf_counter() - begin)
        return statistics.median(times)


def requests_per_s(address: tuple[str, int], frame: bytes, connections: int, count: int) -> float:
    """Return how many requests are answered a second, one in flight on each connection."""
    clients = [socket.create_connection(address, timeout=_TIMEOUT_S) for _ in range(connections)]
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(client, selectors.EVENT_READ)
        begin = time.perf_counter()
        for client in clients:
            client.sendall(frame)
        answered = 0
        while answered < count:
            for key, _ in selector.select(_TIMEOUT_S):
                # One record's answer comes in one piece.
                if not key.fileobj.recv(1 << 16):  # type: ignore[union-attr]
                    raise ConnectionError("the broker has closed a connection")
                answered += 1
                key.fileobj.sendall(frame)  # type: ignore[union-attr]
        took_s = time.perf_counter() - begin
    for client in clients:
        client.close()
    return answered / took_s

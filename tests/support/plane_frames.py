"""Produce and Fetch as kafka-python writes and reads them, and a plane spoken to this way."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import ottla
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from ottla._engine import DataPlane, Fetched, Produced, Verification, error_codes

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
TOPIC_ID = UUID(int=0x0123_4567_89AB_CDEF)
NOW_MS = 1_700_000_000_000
ANY_BYTES = 1 << 30

# Numbers by the names of the protocol.
CODE = SimpleNamespace(**{code.name: code.code for code in error_codes()})

# A request begins behind a header; eight bytes stand for it.
HEADER = b"\xaa" * 8


def batch(*values: bytes, timestamp_ms: int = NOW_MS, **fields: Any) -> bytes:
    """Return a batch of records with these values."""
    records = [ottla.NewRecord(value=value, timestamp=timestamp_ms) for value in values or (b"v",)]
    return ottla.build_batch(records, **fields)


def produce_frame(
    version: int,
    sets: Mapping[tuple[str, int], bytes | None],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    topic_id: UUID = TOPIC_ID,
) -> bytes:
    """Return a Produce request of record sets by topic and partition."""
    topics: dict[str, list[Any]] = {}
    for (topic, partition), records in sets.items():
        data = ProduceRequest.TopicProduceData.PartitionProduceData(
            index=partition, records=records
        )
        topics.setdefault(topic, []).append(data)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=partitions)
            for name, partitions in topics.items()
        ],
    )
    return HEADER + bytes(request.encode(version=version))


@dataclass
class Asked:
    """What a Fetch asks of a partition."""

    offset: int = 0
    max_bytes: int = ANY_BYTES
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


def fetch_frame(
    version: int,
    asked: Mapping[tuple[str, int], Asked | int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = ANY_BYTES,
    isolation_level: int = 0,
    replica_id: int = -1,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[tuple[str, int]] = (),
    topic_id: UUID = TOPIC_ID,
) -> bytes:
    """Return a Fetch request of offsets by topic and partition."""
    topics = []
    for (topic, partition), found in asked.items():
        one = Asked(found) if isinstance(found, int) else found
        data = FetchRequest.FetchTopic.FetchPartition(
            partition=partition,
            current_leader_epoch=one.current_leader_epoch,
            fetch_offset=one.offset,
            last_fetched_epoch=one.last_fetched_epoch,
            log_start_offset=-1,
            partition_max_bytes=one.max_bytes,
        )
        topics.append(FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[data]))
    request = FetchRequest(
        replica_id=replica_id,
        replica_state=FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=-1),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=[partition])
            for topic, partition in forgotten
        ],
        rack_id="",
    )
    return HEADER + bytes(request.encode(version=version))


@dataclass
class Plane:
    """A plane whose requests and answers are kafka-python's."""

    engine: DataPlane = field(default_factory=DataPlane)
    handles: dict[tuple[str, int], int] = field(default_factory=dict)

    def open(
        self, topic: str = "t", partition: int = 0, *, topic_id: UUID = TOPIC_ID, **options: Any
    ) -> int:
        """Open a partition, and return its handle."""
        handle = self.engine.open(topic, topic_id.bytes, partition, now_ms=NOW_MS, **options)
        self.handles[topic, partition] = handle
        return handle

    def produced(
        self,
        sets: Mapping[tuple[str, int], bytes | None],
        *,
        version: int = 9,
        now_ms: int = NOW_MS,
        refused: Mapping[tuple[str, int], int] | None = None,
        verified: Verification | None = None,
        allow_internal: bool = False,
        **request: Any,
    ) -> Produced:
        """Hand over a Produce."""
        return self.engine.produce(
            produce_frame(version, sets, **request),
            len(HEADER),
            version,
            now_ms=now_ms,
            refused=refused,
            verified=verified,
            allow_internal=allow_internal,
        )

    def produce(
        self, sets: Mapping[tuple[str, int], bytes | None], *, version: int = 9, **call: Any
    ) -> Any:
        """Hand over a Produce, and return its answer."""
        return produce_answer(version, self.produced(sets, version=version, **call))

    def append(
        self, records: bytes | None, topic: str = "t", partition: int = 0, **call: Any
    ) -> Any:
        """Produce one record set, and return the answer of its partition."""
        answer = self.produce({(topic, partition): records}, **call)
        return answer.responses[0].partition_responses[0]

    def fetched(
        self,
        asked: Mapping[tuple[str, int], Asked | int],
        *,
        version: int = 12,
        now_ms: int = NOW_MS,
        must_answer: bool = False,
        refused: Mapping[tuple[str, int], int] | None = None,
        **request: Any,
    ) -> Fetched:
        """Hand over a Fetch."""
        frame = fetch_frame(version, asked, **request)
        return self.engine.fetch(
            frame, len(HEADER), version, now_ms=now_ms, must_answer=must_answer, refused=refused
        )

    def fetch(
        self, asked: Mapping[tuple[str, int], Asked | int], *, version: int = 12, **call: Any
    ) -> Any:
        """Hand over a Fetch, and return its answer."""
        return fetch_answer(version, self.fetched(asked, version=version, must_answer=True, **call))

    def read(
        self, offset: Asked | int = 0, topic: str = "t", partition: int = 0, **call: Any
    ) -> Any:
        """Fetch one partition, and return its answer."""
        answer = self.fetch({(topic, partition): offset}, **call)
        return answer.responses[0].partitions[0]


def produce_answer(version: int, produced: Produced) -> Any:
    """Return the answer of a Produce, which kafka-python reads to its end."""
    assert produced.answer is not None
    return decoded(ProduceResponse, version, b"".join(produced.answer))


def fetch_answer(version: int, fetched: Fetched) -> Any:
    """Return the answer of a Fetch, which kafka-python reads to its end."""
    assert fetched.answer is not None
    return decoded(FetchResponse, version, b"".join(fetched.answer))


def decoded(message: Any, version: int, body: bytes) -> Any:
    """Return a message, of which no byte is left over."""
    stream = BytesIO(body)
    found = message.decode(stream, version=version)
    assert stream.read() == b""
    return found


def values(records: bytes | None) -> list[bytes | None]:
    """Return the values of the records of batches."""
    return [record.value for one in ottla.read_batches(records or b"") for record in one.records()]

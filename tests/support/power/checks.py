"""What a broker must have that starts on a disk which a power cut has left."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import ottla
from ottla.broker.broker import Broker
from ottla.errors import OttlaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from support.kept_broker import kept_broker
from support.power.workload import GROUP, History, Told, produce
from support.wire_client import WireClient

# Compaction leaves gaps, in which nothing can be seen to be missing.
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.enable": "false",
}
_TIMEOUT_MS = 120_000


def problems(path: Path, history: History, cut: int) -> Iterator[str]:
    """Yields what is not as it should be in a directory that a cut at this place has left."""
    lines: list[str] = []
    try:
        now_ms = int(time.time() * 1000)
        with kept_broker(path, SETTINGS, lines=lines, now_ms=now_ms) as broker:
            client = WireClient(broker)
            client.now_ms = now_ms
            # Transactions that nobody ends are aborted.
            client.advance(_TIMEOUT_MS)
            topics = {
                topic.name: topic for topic in client.ask(MetadataRequest(topics=None), 9).topics
            }
            yield from _topics(topics, history, cut)
            yield from _offsets(client, broker, topics, history, cut)
            yield from _producer_ids(client, history, cut)
            counts = {}
            for name in history.produced:
                if name[0] in topics:
                    values = [*_numbers(path / f"{name[0]}-{name[1]}")]
                    counts[name] = len(values)
            yield from _goes_on(client, counts)
    except OttlaError as error:
        yield f"no broker starts: {error}"
        return
    for name, known in history.produced.items():
        yield from _records(path / f"{name[0]}-{name[1]}", known, counts.get(name, 0), cut)
    for topic, known in history.transactions.items():
        yield from _transactions(path, topic, known, cut)
    for finding in ottla.audit(path).findings:
        # A partition of no topic was put aside as it was, half made; nobody reads it again.
        if "-stray" not in str(finding["file"]):
            yield f"the audit finds {dict(finding)}"


def _topics(topics: dict[str, Any], history: History, cut: int) -> Iterator[str]:
    should: dict[str, bool | None] = {}
    for told in history.topics:
        name, is_there = told.what
        if told.is_told(cut):
            should[name] = is_there
        elif told.is_asked(cut):
            should[name] = None
        else:
            should.setdefault(name, False)
    for name, is_there in should.items():
        if is_there is not None and is_there != (name in topics):
            yield f"{name} was {'created' if is_there else 'deleted'}, and that is lost"


def _offsets(
    client: WireClient, broker: Broker, topics: dict[str, Any], history: History, cut: int
) -> Iterator[str]:
    for name, known in history.offsets.items():
        offset = _committed(client, GROUP, *name) if name[0] in topics else -1
        may_be = _possible(known, cut)
        if offset not in {told.what for told in may_be}:
            yield f"{name}: committed is {offset}, and not {may_be[0]} or later"
        partition = broker.image.partition(*name)
        end = 0 if partition is None else broker.plane.offsets(partition.handle)[3]
        if offset > end:
            yield f"{name}: committed is {offset}, and the log ends at {end}"


def _possible(known: list[Told], cut: int) -> list[Told]:
    """What may be there: the last that was told, and all that was asked behind it."""
    last = max((number for number, told in enumerate(known) if told.is_told(cut)), default=-1)
    nothing = [Told(-1, 0, 0)] if last < 0 else []
    return nothing + [told for told in known[max(0, last) :] if told.is_asked(cut)]


def _committed(client: WireClient, group: str, topic: str, index: int) -> int:
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[index])]
    )
    offset: int = client.ask(request, 5).topics[0].partitions[0].committed_offset
    return offset


def _producer_ids(client: WireClient, history: History, cut: int) -> Iterator[str]:
    answer = client.ask(InitProducerIdRequest(transaction_timeout_ms=60_000), 4)
    if answer.producer_id in {t.what for t in history.producer_ids if t.is_told(cut)}:
        yield f"the producer id {answer.producer_id} is given twice"


def _goes_on(client: WireClient, counts: dict[tuple[str, int], int]) -> Iterator[str]:
    """A new producer can write, in whichever partition."""
    for topic, index in counts:
        answer = client.ask(InitProducerIdRequest(transaction_timeout_ms=60_000), 4)
        producer = answer.producer_id, answer.producer_epoch
        request = produce(topic, index, 0, producer, random=Random(0))
        code = client.ask(request, 9).responses[0].partition_responses[0].error_code
        if code:
            yield f"{topic}-{index} takes no records: {code}"


def _records(path: Path, known: list[Told], count: int, cut: int) -> Iterator[str]:
    numbers = [*_numbers(path)][:count]
    told = sum(each.is_told(cut) for each in known)
    if numbers != [*range(len(numbers))]:
        yield f"{path.name}: the order is lost, or records in the middle: {numbers}"
    if path.name.startswith("synced-") and len(numbers) < told:
        yield f"{path.name} has {len(numbers)} records of {told} that were acknowledged"


def _transactions(path: Path, topic: str, known: list[Told], cut: int) -> Iterator[str]:
    first, second = ([*_numbers(path / f"{topic}-{index}")] for index in (0, 1))
    if first != [number for number in second for _ in (0, 1)]:
        yield f"{topic}: a transaction is there in part: {first} and {second}"
    for number, told in enumerate(known):
        if not told.what and number in second:
            yield f"{topic}: transaction {number} was aborted, and is there"
    committed = [number for number, told in enumerate(known) if told.what and told.is_told(cut)]
    if not topic.endswith("-synced"):
        committed = committed[: len(second)]
    lost = set(committed) - set(second)
    if lost:
        yield f"{topic}: of the transactions that were committed are lost {sorted(lost)}"


def _numbers(path: Path) -> Iterator[int]:
    if not path.is_dir():
        return
    for record in ottla.read_partition(path, isolation="read_committed"):
        assert record.value is not None
        yield int(record.value.partition(b":")[0])

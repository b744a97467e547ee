"""Other clients read what is built here, and what they build is read here."""

from dataclasses import replace
from typing import Any

import kafka.record
import ottla
import pytest
from aiokafka.record import default_records as aiokafka_batches
from aiokafka.record import memory_records as aiokafka_records
from hypothesis import given, settings
from kafka.record import default_records as kafka_batches
from ottla import NewRecord
from support.strategies import DrawnRecord, batches_of_records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def rows(drawn: list[DrawnRecord]) -> list[Row]:
    return [(i, r.timestamp, r.key, r.value, r.headers) for i, r in enumerate(drawn)]


def ours(data: bytes) -> list[Row]:
    return [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in ottla.read(data)]


# kafka-python reads snappy with a library that is not among the development tools.
CASES = [("aiokafka", codec) for codec in CODECS]
CASES += [("kafka-python", codec) for codec in CODECS if codec != "snappy"]


def client(name: str) -> tuple[Any, Any]:
    """Reader and builder of batches of magic 2."""
    if name == "aiokafka":
        return aiokafka_records.MemoryRecords, aiokafka_batches.DefaultRecordBatchBuilder
    return kafka.record.MemoryRecords, kafka_batches.DefaultRecordBatchBuilder


@pytest.mark.parametrize(("name", "codec"), CASES)
@settings(max_examples=25)
@given(drawn=batches_of_records())
def test_a_client_reads_what_is_built_here(name: str, drawn: list[DrawnRecord], codec: Any) -> None:
    built = [NewRecord(r.key, r.value, r.timestamp, r.headers) for r in drawn]
    reader, _ = client(name)
    batch = reader(ottla.build_batch(built, compression=codec)).next_batch()
    assert batch.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert read == rows(drawn)


@pytest.mark.parametrize(("name", "codec"), CASES)
@settings(max_examples=25)
@given(drawn=batches_of_records())
def test_what_a_client_builds_is_read_here(name: str, drawn: list[DrawnRecord], codec: str) -> None:
    # aiokafka takes a first timestamp of -1 as not set yet and moves it to the second.
    drawn = [replace(r, timestamp=max(r.timestamp, 0)) for r in drawn]
    _, builder = client(name)
    building = builder(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, timestamp, key, value, headers in rows(drawn):
        building.append(offset, timestamp, key, value, list(headers))
    data = bytes(building.build())
    assert ours(data) == rows(drawn)
    assert ottla.check_batches(data) == len(drawn)

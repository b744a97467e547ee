"""What is timed: each job as each peer does it, as a function that runs it once.

`JOBS[job][peer](data)` prepares the data for the peer and returns the function. It answers how many
records it saw, so that a test can hold all peers to the same count. A peer whose package is not
installed raises `ImportError` when it is prepared. Packages are imported where they are used: a
worker in another environment has ours and NumPy alone.

Jobs: `check` CRC, decoding and offsets of a log; `check-view` and `check-bytearray` the same of
other objects than `bytes`; `call` one small batch a call; `numbers` a log as
NumPy columns; `views` a log as an Arrow table with keys and values; `rows` a file as Arrow record
batches with keys and values copied; `split` captured record sets judged, and their records as Arrow
record batches; `build` columns to batches, a call a batch; `inflate` the bodies of compressed
batches. The leader's verdict, a call a batch of an idempotent producer:
`append` with the parts to write, `append-joined` with these in one piece, `accept` the decision
alone, `append-inflate` on compressed batches. `decide` is the verdict on one batch without a
producer, a call each time: what Kafka's own `LogValidator` decides in Java, with the CRC before it.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from weakref import finalize

import numpy as np

from benches.data import Data, columns_of, produced, records_of

Candidate = Callable[[], int]
Prepare = Callable[[Data], Candidate]

OURS = "ottla"
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python+crc32c"
KAFKA_PYTHON_ALONE = "kafka-python"
KIO = "kio"
MEMCPY = "memcpy"
READ = "bare read"
INFLATE = "bare decompressor"
CHECK = "check_batches"
JAVA = "kafka-clients"
WHOLE_ROWS = "ottla, all columns"
VALIDATE = "ottla.validate"
READY = "ready-made columns, nothing read"
READY_SOURCE = "ready-made columns by a data source, nothing read"
ALONE = "ottla, columns made and dropped, without Spark"
STORED = "Leader.append, a copy of the bytes to store"

CALLS = 1000
# Jobs of one small call: a run is CALLS of them.
CALLED = frozenset({"call", "decide"})
_HEADER_SIZE = 61
_NOW_MS = 1_800_000_000_000
_MAX_MESSAGE_BYTES = 1 << 30


class WrongAnswerError(Exception):
    """A candidate did not see what the data hold: its time means nothing."""


def _expect(found: object, expected: object) -> None:
    if found != expected:
        raise WrongAnswerError(f"found {found}, expected {expected}")


def ours_check(data: Data) -> Candidate:
    """Check every rule of every batch."""
    from ottla import check_batches

    log = data.log
    return lambda: check_batches(log)


def ours_check_view(data: Data) -> Candidate:
    """Check every rule of every batch behind a view of a part of other bytes."""
    from ottla import check_batches

    view = memoryview(bytes(7) + data.log)[7:]
    return lambda: check_batches(view)


def ours_check_bytearray(data: Data) -> Candidate:
    """Check every rule of every batch in memory that may change."""
    from ottla import check_batches

    log = bytearray(data.log)
    return lambda: check_batches(log)


def ours_check_crc(data: Data) -> Candidate:
    """Check the CRCs alone."""
    from ottla import check_batches

    log = data.log
    return lambda: check_batches(log, level="crc")


def _calls(call: Callable[[bytes], object], batch: bytes) -> Candidate:
    def loop() -> int:
        for _ in range(CALLS):
            call(batch)
        return CALLS

    return loop


def ours_call(data: Data) -> Candidate:
    """Check one batch a call."""
    from ottla import check_batches

    return _calls(check_batches, data.batches[0])


def ours_append(data: Data) -> Candidate:
    """Decide on every batch as its leader, and take what is to be written: header and records.

    The two parts are what ``os.writev`` takes; the records are those received, where they are.
    """
    from ottla import Leader, TopicConfig

    batches = produced(data).batches
    size = len(data.log)
    config = TopicConfig(max_message_bytes=_MAX_MESSAGE_BYTES)

    def append() -> int:
        append = Leader(config).append
        stored = 0
        for batch in batches:
            verdict = append(batch, now_ms=_NOW_MS)
            header, records = verdict.stored_parts
            stored += len(header) + len(records)
        _expect(stored, size)
        return int(verdict.last_offset) + 1

    return append


def ours_append_joined(data: Data) -> Candidate:
    """Decide on every batch as its leader, and take the bytes to store in one piece: a copy."""
    from ottla import Leader, TopicConfig

    batches = produced(data).batches
    size = len(data.log)
    config = TopicConfig(max_message_bytes=_MAX_MESSAGE_BYTES)

    def append() -> int:
        append = Leader(config).append
        stored = 0
        for batch in batches:
            verdict = append(batch, now_ms=_NOW_MS)
            stored += len(verdict.stored)
        _expect(stored, size)
        return int(verdict.last_offset) + 1

    return append


def ours_accept(data: Data) -> Candidate:
    """Decide on every batch as its leader; the bytes to store stay where they are."""
    from ottla import Leader, TopicConfig

    batches = produced(data).batches
    config = TopicConfig(max_message_bytes=_MAX_MESSAGE_BYTES)

    def accept() -> int:
        append = Leader(config).append
        for batch in batches:
            verdict = append(batch, now_ms=_NOW_MS)
        return int(verdict.last_offset) + 1

    return accept


def ours_decide(data: Data) -> Candidate:
    """Decide on one batch a call as its leader; the bytes to store stay where they are."""
    from ottla import Leader, TopicConfig

    batch = data.batches[0]
    config = TopicConfig()

    def decide() -> int:
        append = Leader(config).append
        for _ in range(CALLS):
            verdict = append(batch, now_ms=_NOW_MS)
        _expect(verdict.last_offset, CALLS * data.records - 1)
        return data.records

    return decide


def ours_decide_and_store(data: Data) -> Candidate:
    """Decide on one batch a call as its leader, and take a copy of the bytes to store."""
    from ottla import Leader, TopicConfig

    batch = data.batches[0]
    config = TopicConfig()

    def decide() -> int:
        append = Leader(config).append
        for _ in range(CALLS):
            stored = append(batch, now_ms=_NOW_MS).stored
        _expect(int.from_bytes(stored[:8], "big"), (CALLS - 1) * data.records)
        return data.records

    return decide


def ours_validate(data: Data) -> Candidate:
    """Decide on one batch a call without a leader's state."""
    from ottla import TopicConfig, validate

    batch = data.batches[0]
    config = TopicConfig()

    def decide() -> int:
        for _ in range(CALLS):
            verdict = validate(batch, config, now_ms=_NOW_MS)
        _expect(verdict.last_offset, data.records - 1)
        return data.records

    return decide


def produced_check(data: Data) -> Candidate:
    """Check every rule of what a producer sends, a call a batch."""
    from ottla import check_batches

    batches = produced(data).batches

    # The same loop as that of the leader: a generator would cost a third of a small check.
    def check() -> int:
        records = 0
        for batch in batches:
            records += check_batches(batch)
        return records

    return check


def produced_aiokafka(data: Data) -> Candidate:
    """Check the CRC of what a producer sends, and decode it."""
    return aiokafka_check(produced(data))


def ours_numbers(data: Data) -> Candidate:
    """Read six columns of numbers."""
    from ottla import read_columns

    log = data.log
    return lambda: len(read_columns(log).numbers()[0])


def ours_views(data: Data) -> Candidate:
    """Read offsets, timestamps, keys and values as views into the log."""
    import pyarrow as pa
    from ottla import read_columns

    log = data.log
    return lambda: int(pa.table(read_columns(log, views=True)).num_rows)


def ours_build(data: Data) -> Candidate:
    """Build each batch from its columns."""
    from ottla import build_batch_from_columns

    columns = [columns_of(records) for records in records_of(data.shape, data.size)]
    compression = data.shape.compression

    def build() -> int:
        count = 0
        for batch in columns:
            build_batch_from_columns(
                batch.timestamps, batch.keys, batch.values, compression=compression
            )
            count += len(batch.timestamps)
        return count

    return build


def ours_inflate(data: Data) -> Candidate:
    """Decompress every batch into the arena of the reader, without a look at it."""
    from ottla._engine import bare_inflate

    log = data.log
    bare_inflate(log)

    def inflate() -> int:
        bare_inflate(log)
        return data.records

    return inflate


def memcpy(data: Data) -> Candidate:
    """Copy the log into memory that is already there."""
    log = data.log
    target = memoryview(bytearray(len(log)))

    def copy() -> int:
        target[:] = log
        return data.records

    return copy


def read_once(data: Data) -> Candidate:
    """Load one byte of every cache line."""
    from ottla._engine import bare_read

    log = data.log

    def read() -> int:
        bare_read(log)
        return data.records

    return read


def _aiokafka_records(log: bytes) -> Any:  # An iterator over its batches, CRC checked.
    from aiokafka.record._crecords import MemoryRecords

    batches = MemoryRecords(log)
    while batches.has_next():
        batch = batches.next_batch()
        if not batch.validate_crc():
            raise WrongAnswerError("CRC")
        yield batch


def aiokafka_check(data: Data) -> Candidate:
    """Check CRC, decode, and compare every offset with its place."""
    from aiokafka.record import _crecords

    log = data.log

    def check() -> int:
        batches = _crecords.MemoryRecords(log)
        count = 0
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise WrongAnswerError("CRC")
            offset = batch.base_offset
            for record in batch:
                if record.offset != offset:
                    raise WrongAnswerError("offset")
                offset += 1
            count += offset - batch.base_offset
        return count

    return check


def aiokafka_call(data: Data) -> Candidate:
    """Check and decode one batch a call."""
    from aiokafka.record import _crecords

    def call(log: bytes) -> None:
        batch = _crecords.MemoryRecords(log).next_batch()
        batch.validate_crc()
        for _ in batch:
            pass

    return _calls(call, data.batches[0])


def aiokafka_numbers(data: Data) -> Candidate:
    """Read offsets, timestamps and sizes into a NumPy array."""
    log = data.log

    def numbers() -> int:
        rows: list[tuple[int, int, int, int]] = []
        for batch in _aiokafka_records(log):
            rows.extend((r.offset, r.timestamp, len(r.key), len(r.value)) for r in batch)
        return len(np.array(rows, np.int64))

    return numbers


def aiokafka_views(data: Data) -> Candidate:
    """Read offsets, timestamps, keys and values into an Arrow table."""
    log = data.log
    return lambda: _aiokafka_table(log)


def _aiokafka_table(log: bytes) -> int:
    import pyarrow as pa

    offsets, timestamps, keys, values = [], [], [], []
    for batch in _aiokafka_records(log):
        for record in batch:
            offsets.append(record.offset)
            timestamps.append(record.timestamp)
            keys.append(record.key)
            values.append(record.value)
    columns = [
        pa.array(offsets, pa.int64()),
        pa.array(timestamps, pa.int64()),
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
    ]
    return int(pa.table(columns, ["offset", "timestamp", "key", "value"]).num_rows)


@lru_cache(maxsize=2)
def _file_of(data: Data) -> Path:
    """Return the log as a file, which is removed in the end."""
    descriptor, name = mkstemp(suffix=".log")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data.log)
    finalize(data, os.remove, name)
    return Path(name)


def aiokafka_rows(data: Data) -> Candidate:
    """Read a file into an Arrow table of offsets, timestamps, keys and values."""
    path = _file_of(data)
    return lambda: _aiokafka_table(path.read_bytes())


def _rows(columns: list[str] | None, data: Data) -> Candidate:
    import pyarrow as pa
    from ottla.logs.segment import segment_table

    path = bytes(_file_of(data))

    def batches() -> int:
        read = segment_table(path, "records", prefix=("a.log", "a", 0), columns=columns)
        return sum(pa.record_batch(batch).num_rows for batch in read)

    return batches


def ours_rows(data: Data) -> Candidate:
    """Read a file as Arrow record batches of offsets, timestamps, keys and values."""
    return _rows(["offset", "timestamp", "key", "value"], data)


def ours_whole_rows(data: Data) -> Candidate:
    """Read a file as Arrow record batches of all columns of the table `records`."""
    return _rows(None, data)


def _captured(data: Data) -> tuple[bytes, ...]:
    """Return the batches as producers send them, one a request."""
    return tuple(bytes(8) + batch[8:] for batch in data.batches)


def ours_split(data: Data) -> Candidate:
    """Judge a column of captured record sets, and make columns of their records."""
    from ottla.records import split_column

    sets = _captured(data)
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    column = np.frombuffer(b"".join(sets), np.uint8)

    def split() -> int:
        pieces = split_column(
            ends,
            column,
            None,
            "valid",
            now_ms=_NOW_MS,
            api_version=11,
            base_offset=0,
            leader_epoch=0,
            origin="client",
            transactional_id=None,
            profile="strict",
        )
        return sum(map(len, pieces))

    return split


def aiokafka_split(data: Data) -> Candidate:
    """Check the CRC of captured record sets, and read them into Arrow tables."""
    sets = _captured(data)
    return lambda: sum(map(_aiokafka_table, sets))


def _builder(builder: Callable[[], Any], data: Data) -> Candidate:
    batches = [
        [(index, *record[:3], list(record[3])) for index, record in enumerate(records)]
        for records in records_of(data.shape, data.size)
    ]

    def build() -> int:
        for records in batches:
            target = builder()
            for record in records:
                target.append(*record)
            target.build()
        return data.records

    return build


def aiokafka_build(data: Data) -> Candidate:
    """Build each batch record by record."""
    from aiokafka.record._crecords import DefaultRecordBatchBuilder

    return _builder(lambda: DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 25), data)


def _kafka_python_batches(log: bytes) -> Any:
    from kafka.record import MemoryRecords

    batches = MemoryRecords(log)
    while batches.has_next():
        yield batches.next_batch()


def kafka_python_check(data: Data) -> Candidate:
    """Check CRC with the `crc32c` package, decode, and compare every offset with its place."""
    import crc32c  # noqa: F401  (what it finds by itself)

    log = data.log

    def check() -> int:
        count = 0
        for batch in _kafka_python_batches(log):
            if not batch.validate_crc():
                raise WrongAnswerError("CRC")
            offset = batch.base_offset
            for record in batch:
                if record.offset != offset:
                    raise WrongAnswerError("offset")
                offset += 1
            count += offset - batch.base_offset
        return count

    return check


def kafka_python_alone_check(data: Data) -> Candidate:
    """Check as kafka-python does without the `crc32c` package: its table in Python."""
    from kafka.record import _crc32c

    log = data.log

    def check() -> int:
        count = position = 0
        for batch in _kafka_python_batches(log):
            end = position + batch.size_in_bytes
            if _crc32c.crc(memoryview(log)[position + 21 : end]) != batch.crc:
                raise WrongAnswerError("CRC")
            position = end
            count += sum(1 for _ in batch)
        return count

    return check


def kafka_python_build(data: Data) -> Candidate:
    """Build each batch record by record."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    return _builder(
        lambda: DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 25,
        ),
        data,
    )


def kio_check(data: Data) -> Candidate:
    """Read every batch, which checks its CRC; kio knows no compression."""
    from kio.records.readers import read_batch

    if data.shape.compression != "none":
        raise ImportError("kio reads no compressed batches")
    log = data.log

    def check() -> int:
        count = position = 0
        while position < len(log):
            batch, size = read_batch(log, position)
            count += len(batch.records)
            position += size
        return count

    return check


def _bodies(data: Data) -> list[bytes]:
    return [batch[_HEADER_SIZE:] for batch in data.batches]


def _inflate(decompress: Callable[[bytes], object], data: Data) -> Candidate:
    bodies = _bodies(data)

    def inflate() -> int:
        for body in bodies:
            decompress(body)
        return data.records

    return inflate


def isal_inflate(data: Data) -> Candidate:
    """Intel's ISA-L, as Python reaches it."""
    from isal import isal_zlib

    return _inflate(lambda body: isal_zlib.decompress(body, 31, 1 << 18), data)


def libdeflate_inflate(data: Data) -> Candidate:
    """Eric Biggers' libdeflate, as Python reaches it."""
    import zlib

    import deflate

    sizes = {body: len(zlib.decompress(body, 31)) for body in _bodies(data)}
    return _inflate(lambda body: deflate.gzip_decompress(body, sizes[body]), data)


def lz4_inflate(data: Data) -> Candidate:
    """The frame API of liblz4."""
    import lz4.frame

    return _inflate(lz4.frame.decompress, data)


def zstandard_inflate(data: Data) -> Candidate:
    """Call libzstd with a context that is kept."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    return _inflate(decompressor.decompress, data)


JOBS: dict[str, dict[str, Prepare]] = {
    "check": {
        AIOKAFKA: aiokafka_check,
        OURS: ours_check,
        READ: read_once,
        MEMCPY: memcpy,
        KAFKA_PYTHON: kafka_python_check,
        KAFKA_PYTHON_ALONE: kafka_python_alone_check,
        KIO: kio_check,
    },
    "check-view": {CHECK: ours_check, OURS: ours_check_view},
    "check-bytearray": {CHECK: ours_check, OURS: ours_check_bytearray},
    "check-crc": {AIOKAFKA: aiokafka_check, OURS: ours_check_crc},
    "call": {AIOKAFKA: aiokafka_call, OURS: ours_call},
    "numbers": {AIOKAFKA: aiokafka_numbers, OURS: ours_numbers},
    "views": {AIOKAFKA: aiokafka_views, OURS: ours_views},
    "rows": {AIOKAFKA: aiokafka_rows, OURS: ours_rows, WHOLE_ROWS: ours_whole_rows},
    "split": {AIOKAFKA: aiokafka_split, OURS: ours_split},
    "build": {AIOKAFKA: aiokafka_build, OURS: ours_build, KAFKA_PYTHON: kafka_python_build},
    "inflate": {INFLATE: ours_inflate, OURS: ours_check, AIOKAFKA: aiokafka_check},
    "append": {AIOKAFKA: produced_aiokafka, OURS: ours_append},
    "append-joined": {AIOKAFKA: produced_aiokafka, OURS: ours_append_joined},
    "accept": {CHECK: produced_check, OURS: ours_accept},
    "decide": {OURS: ours_decide, VALIDATE: ours_validate, STORED: ours_decide_and_store},
    "append-inflate": {INFLATE: ours_inflate, OURS: ours_accept, AIOKAFKA: produced_aiokafka},
}
# Other libraries' decompressors, shown beside our bare one.
LIBRARIES: dict[str, dict[str, Prepare]] = {
    "gzip": {"isal": isal_inflate, "deflate": libdeflate_inflate},
    "snappy": {},
    "lz4": {"lz4.frame": lz4_inflate},
    "zstd": {"zstandard": zstandard_inflate},
}

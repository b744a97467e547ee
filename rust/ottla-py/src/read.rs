//! Reading batch by batch and record by record.

use crate::bytes::bytes_of;
use crate::check::with_checker;
use crate::errors::to_python;
use ottla_audit::rows::columns::{RECORD_COLUMNS, RecordPart};
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_format::batches::Batches;
use ottla_format::check::{ControlRecord, Level};
use ottla_format::limits::Limits;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::sync::{Mutex, PoisonError};

/// Walks the record batches of a buffer, as Kafka's consumer walks a fetch response.
///
/// Gives one :class:`RecordBatch` a batch, of any magic, lazily. A last batch that the buffer cuts is
/// not given. Nothing but headers is looked at: ``batch.verify()`` holds the checksum against the
/// bytes, ``batch.records()`` parses.
///
/// Args:
///     data: any bytes-like object; ``bytes`` is not copied.
///
/// Raises:
///     CorruptRecordBatchError: while iterating, where the framing is damaged.
///
/// >>> import ottla
/// >>> [batch.record_count for batch in ottla.read_batches(ottla.build_batch([ottla.NewRecord()]))]
/// [1]
#[pyfunction]
pub(crate) fn read_batches(data: &Bound<'_, PyAny>) -> PyResult<BatchIterator> {
    let data = bytes_of(data)?.unbind();
    Ok(BatchIterator { data, state: Mutex::new((0, false)) })
}

/// Iterator over :class:`RecordBatch`.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct BatchIterator {
    data: Py<PyBytes>,
    /// Position of the next batch, and whether the walk has ended.
    state: Mutex<(usize, bool)>,
}

#[pymethods]
impl BatchIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1 {
            return Ok(None);
        }
        let mut batches = Batches::new(self.data.as_bytes(py), state.0);
        let item = batches.next();
        let ended = item.is_none() || batches.position() == state.0;
        *state = (batches.position(), ended);
        match item {
            None => Ok(None),
            Some(Ok(info)) => Ok(Some(RecordBatch { data: self.data.clone_ref(py), info })),
            Some(Err(error)) => Err(to_python(py, &error)),
        }
    }
}

/// One record batch: the fields of its header, under Kafka's names.
///
/// For magic 0 and 1 a batch is one record or one compressed wrapper; what these formats lack reads
/// as −1, ``False`` or ``None``.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct RecordBatch {
    data: Py<PyBytes>,
    info: BatchInfo,
}

impl RecordBatch {
    fn whole<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        let start = self.info.position as usize;
        let end = start.saturating_add(self.info.size as usize);
        self.data.as_bytes(py).get(start..end).unwrap_or_default()
    }

    fn error(&self, py: Python<'_>, error: ottla_format::error::Error) -> PyErr {
        to_python(py, &error.within(self.info.position as usize))
    }

    fn iterate(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        iterate(py, &self.info, self.data.bind(py), 0)
    }
}

/// Iterates over the records of a batch that lies whole in `data`, which begins at `origin` of what
/// positions count from.
pub(crate) fn iterate(
    py: Python<'_>,
    info: &BatchInfo,
    data: &Bound<'_, PyBytes>,
    origin: u64,
) -> PyResult<RecordIterator> {
    let position = info.position.saturating_sub(origin) as usize;
    let end = position.saturating_add(info.size as usize);
    let whole = data.as_bytes().get(position..end).unwrap_or_default();
    let limits = Limits::default();
    let found = batch::payload(info, whole).and_then(|payload| match payload {
        Payload::Plain { start } => {
            let records = whole.get(start..).unwrap_or_default();
            let cursor = RecordCursor::start(info, records, limits)?;
            Ok((cursor, Source::Borrowed(data.clone().unbind(), position + start..end)))
        }
        Payload::Compressed { codec, bytes, start } => with_checker(Level::Full, |checker| {
            let inflated = checker
                .codecs()
                .decompress(codec, info.magic, bytes)
                .map_err(|kind| ottla_format::error::Error::new(kind, start))?;
            let cursor = RecordCursor::start(info, inflated, limits)?;
            Ok((cursor, Source::Owned(inflated.to_vec())))
        }),
    });
    let (cursor, source) =
        found.map_err(|error| to_python(py, &error.within(info.position as usize)))?;
    let (is_control, position) = (info.is_control(), info.position);
    Ok(RecordIterator { source, cursor: Mutex::new(cursor), is_control, position })
}

#[pymethods]
impl RecordBatch {
    /// Where the batch begins, in bytes of the data.
    #[getter]
    fn position(&self) -> u64 {
        self.info.position
    }

    /// Bytes, offset and size fields included.
    #[getter]
    fn size(&self) -> u64 {
        self.info.size
    }

    /// Format version: 0, 1 or 2.
    #[getter]
    fn magic(&self) -> i8 {
        self.info.magic
    }

    /// Offset of the first record. Of a compressed wrapper of magic 0 and 1 it takes inflating.
    #[getter]
    fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
        if self.info.magic >= 2 || self.info.codec() == 0 {
            return Ok(self.info.base_offset);
        }
        let records = self.iterate(py)?;
        let mut cursor = records.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        match cursor.next(records.source.bytes(py)) {
            Ok(Some(record)) => Ok(record.offset),
            Ok(None) => Ok(self.info.base_offset),
            Err(error) => Err(self.error(py, error)),
        }
    }

    /// Offset of the last record the batch was written with.
    #[getter]
    fn last_offset(&self) -> i64 {
        self.info.last_offset
    }

    /// Epoch of the leader that appended the batch, −1 if unknown.
    #[getter]
    fn partition_leader_epoch(&self) -> i32 {
        self.info.partition_leader_epoch
    }

    /// The stored checksum: CRC-32C from byte 21 on, below magic 2 CRC-32 from the magic byte on.
    #[getter]
    fn crc(&self) -> u32 {
        self.info.crc
    }

    /// All attribute bits.
    #[getter]
    fn attributes(&self) -> u16 {
        self.info.attributes
    }

    /// ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``; ``unknown`` for a number without codec.
    #[getter]
    fn compression<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.info.compression().map(ottla_format::attributes::Compression::name) {
            Ok("none") => pyo3::intern!(py, "none"),
            Ok("gzip") => pyo3::intern!(py, "gzip"),
            Ok("snappy") => pyo3::intern!(py, "snappy"),
            Ok("lz4") => pyo3::intern!(py, "lz4"),
            Ok("zstd") => pyo3::intern!(py, "zstd"),
            _ => pyo3::intern!(py, "unknown"),
        }
    }

    /// ``create_time``, ``log_append_time`` or, for magic 0, ``no_timestamp_type``.
    #[getter]
    fn timestamp_type(&self) -> &'static str {
        self.info.timestamp_type().name()
    }

    /// Part of a transaction (KIP-98).
    #[getter]
    fn is_transactional(&self) -> bool {
        self.info.is_transactional()
    }

    /// Holds control records (KIP-98).
    #[getter]
    fn is_control(&self) -> bool {
        self.info.is_control()
    }

    /// When the cleaner may drop tombstones and markers, in ms since 1970, or ``None`` (KIP-534).
    #[getter]
    fn delete_horizon_ms(&self) -> Option<i64> {
        self.info.delete_horizon_ms()
    }

    /// Timestamp from which the records' deltas count, in ms since 1970.
    #[getter]
    fn base_timestamp(&self) -> i64 {
        self.info.base_timestamp
    }

    /// Largest timestamp, in ms since 1970; with LogAppendTime that of every record.
    #[getter]
    fn max_timestamp(&self) -> i64 {
        self.info.max_timestamp
    }

    /// −1 without an idempotent producer.
    #[getter]
    fn producer_id(&self) -> i64 {
        self.info.producer_id
    }

    /// −1 without an idempotent producer.
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.info.producer_epoch
    }

    /// Sequence number of the first record, −1 without.
    #[getter]
    fn base_sequence(&self) -> i32 {
        self.info.base_sequence
    }

    /// Sequence number of the last record, −1 without.
    #[getter]
    fn last_sequence(&self) -> i32 {
        self.info.last_sequence()
    }

    /// Records as the header counts them; ``None`` for magic 0 and 1, which do not count.
    #[getter]
    fn record_count(&self) -> Option<i32> {
        self.info.record_count
    }

    /// Holds the stored checksum against the bytes.
    ///
    /// Raises:
    ///     CorruptRecordBatchError: they differ, or the batch is too short for its header.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        batch::verify(self.whole(py)).map_err(|error| self.error(py, error))
    }

    /// The records, parsed one by one as Kafka's consumer parses them; inflates the payload first.
    ///
    /// Raises:
    ///     InvalidRecordError: now or while iterating, for what the consumer refuses.
    ///     CorruptRecordBatchError: a record of magic 0 or 1 with a wrong checksum.
    ///     UnsupportedCompressionError: a codec that does not exist, or refuses its payload.
    fn records(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iterate(py)
    }

    fn __repr__(&self) -> String {
        let info = &self.info;
        format!(
            "RecordBatch(position={}, size={}, magic={}, offsets={}..{})",
            info.position, info.size, info.magic, info.base_offset, info.last_offset
        )
    }
}

enum Source {
    Borrowed(Py<PyBytes>, std::ops::Range<usize>),
    Owned(Vec<u8>),
}

impl Source {
    fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match self {
            Self::Borrowed(data, range) => data.as_bytes(py).get(range.clone()).unwrap_or_default(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// Iterator over :class:`Record`.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct RecordIterator {
    source: Source,
    cursor: Mutex<RecordCursor>,
    is_control: bool,
    position: u64,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __length_hint__(&self) -> usize {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).remaining().min(1 << 20)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.next_record(py)
    }
}

impl RecordIterator {
    /// The next record, as the iterator gives it.
    pub(crate) fn next_record(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let index = cursor.index();
        let record = match cursor.next(self.source.bytes(py)) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) => return Err(to_python(py, &error.within(self.position as usize))),
        };
        let control = self
            .is_control
            .then(|| ControlRecord::read(index, record.key, record.value).ok())
            .flatten();
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part).unbind());
        let raw_headers = if record.headers.is_empty() {
            None
        } else {
            let pairs = record.headers.iter().map(|(key, value)| {
                let value = value.map(|value| PyBytes::new(py, value));
                (PyBytes::new(py, key), value).into_pyobject(py)
            });
            let pairs: Vec<Bound<'_, PyTuple>> = pairs.collect::<PyResult<_>>()?;
            Some(PyList::new(py, pairs)?.unbind())
        };
        Ok(Some(Record {
            offset: record.offset,
            timestamp: record.timestamp,
            key: bytes(record.key),
            value: bytes(record.value),
            raw_headers,
            sequence: record.sequence,
            control,
        }))
    }
}

/// One record, as a consumer sees it.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct Record {
    offset: i64,
    timestamp: i64,
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
    raw_headers: Option<Py<PyList>>,
    sequence: i32,
    control: Option<ControlRecord>,
}

impl Record {
    /// Offset in the log.
    pub(crate) fn at(&self) -> i64 {
        self.offset
    }

    /// Returns the record as a row of the table of records.
    pub(crate) fn row<'py>(
        &self,
        py: Python<'py>,
        batch_position: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let object = |part| -> PyResult<Bound<'py, PyAny>> {
            Ok(match part {
                RecordPart::BatchPosition => batch_position.into_pyobject(py)?.into_any(),
                RecordPart::Offset => self.offset.into_pyobject(py)?.into_any(),
                RecordPart::Timestamp => self.timestamp.into_pyobject(py)?.into_any(),
                RecordPart::Key => self.key(py).into_pyobject(py)?.into_any(),
                RecordPart::Value => self.value(py).into_pyobject(py)?.into_any(),
                RecordPart::Headers => self.headers(py)?.into_pyobject(py)?.into_any(),
                RecordPart::Sequence => self.sequence.into_pyobject(py)?.into_any(),
                RecordPart::Control => self.control().into_pyobject(py)?.into_any(),
            })
        };
        let values = RECORD_COLUMNS.iter().map(|column| object(column.value));
        PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Record {
    /// Offset in the log.
    #[getter]
    fn offset(&self) -> i64 {
        self.offset
    }

    /// In ms since 1970; with LogAppendTime the batch's, with magic 0 −1.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Key bytes, or ``None`` for null.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.key.as_ref().map(|key| key.bind(py).clone())
    }

    /// Value bytes, or ``None`` for null.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.value.as_ref().map(|value| value.bind(py).clone())
    }

    /// Pairs of key and value; a key that is not UTF-8 has replacement characters.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let headers = PyList::empty(py);
        for pair in self.raw_headers(py).iter() {
            let (key, value): (Bound<'py, PyBytes>, Bound<'py, PyAny>) = pair.extract()?;
            headers.append((String::from_utf8_lossy(key.as_bytes()), value))?;
        }
        Ok(headers)
    }

    /// Pairs of key bytes and value.
    #[getter]
    fn raw_headers<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        // A fresh list: what a caller does to it must not change the record.
        self.raw_headers.as_ref().map_or_else(
            || PyList::empty(py),
            |headers| {
                let headers = headers.bind(py);
                headers.get_slice(0, headers.len())
            },
        )
    }

    /// Sequence number of an idempotent producer, −1 without.
    #[getter]
    fn sequence(&self) -> i32 {
        self.sequence
    }

    /// Of a control record its type, such as ``COMMIT`` or ``ABORT``; else ``None``.
    #[getter]
    fn control(&self) -> Option<&'static str> {
        self.control.map(|control| control.name())
    }

    /// Of an end-transaction marker the coordinator's epoch; else ``None``.
    #[getter]
    fn coordinator_epoch(&self) -> Option<i32> {
        match self.control {
            Some(
                ControlRecord::Abort { coordinator_epoch }
                | ControlRecord::Commit { coordinator_epoch },
            ) => Some(coordinator_epoch),
            _ => None,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let part = |part: &Option<Py<PyBytes>>| -> PyResult<String> {
            part.as_ref().map_or(Ok("None".into()), |part| Ok(part.bind(py).repr()?.to_string()))
        };
        let (key, value) = (part(&self.key)?, part(&self.value)?);
        let (offset, timestamp) = (self.offset, self.timestamp);
        Ok(format!("Record(offset={offset}, timestamp={timestamp}, key={key}, value={value})"))
    }
}

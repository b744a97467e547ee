//! Reading batch by batch.

use crate::bytes::SharedBytes;
use crate::errors::to_python;
use crate::integers::int;
use crate::records::{RecordIterator, iterate, whole_batch};
use crate::shown::fields_html;
use ottla_format::batch::{self, BatchInfo};
use ottla_format::batches::Batches;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Reads the record batches of a buffer, as Kafka's consumer reads a fetch response.
///
/// Returns an iterator with one :class:`RecordBatch` per batch, of any magic, read lazily. A last batch
/// that the buffer truncates is left out. Only headers are looked at: ``batch.verify()`` compares the
/// checksum with the bytes, ``batch.records()`` parses.
///
/// Args:
///     data: any bytes-like object; ``bytes``, and views of it, are not copied.
///
/// Raises:
///     CorruptRecordBatchError: while iterating, if the framing is damaged.
///
/// >>> import ottla
/// >>> [batch.record_count for batch in ottla.read_batches(ottla.build_batch([ottla.NewRecord()]))]
/// [1]
#[pyfunction]
pub fn read_batches(data: &Bound<'_, PyAny>) -> PyResult<BatchIterator> {
    let data = SharedBytes::of(data)?;
    Ok(BatchIterator { data, state: Mutex::new((0, false)) })
}

/// Iterator over :class:`RecordBatch`.
#[pyclass(frozen, module = "ottla")]
pub struct BatchIterator {
    data: SharedBytes,
    /// Position of the next batch, and whether the iteration has ended.
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
        drop(state);
        match item {
            None => Ok(None),
            Some(Ok(info)) => {
                Ok(Some(RecordBatch { data: self.data.clone_ref(py), origin: 0, info }))
            }
            Some(Err(error)) => Err(to_python(py, &error)),
        }
    }
}

/// One record batch: the fields of its header, under Kafka's names.
///
/// For magic 0 and 1 a batch is one record or one compressed wrapper; fields that these formats lack
/// are −1, ``False`` or ``None``. Two are equal if their bytes are, wherever they stand.
///
/// Args:
///     data: the bytes of one batch, any bytes-like object.
///     position: where it stands in the data that it comes from.
///
/// Raises:
///     CorruptRecordBatchError: the framing is damaged.
///     ValueError: these are not the bytes of one batch.
///
/// >>> import ottla
/// >>> data = ottla.build_batch([ottla.NewRecord(b"k", b"v")])
/// >>> (batch,) = ottla.read_batches(data)
/// >>> bytes(batch) == data, ottla.RecordBatch(data) == batch
/// (True, True)
#[pyclass(frozen, module = "ottla")]
pub struct RecordBatch {
    data: SharedBytes,
    /// Where the data begins in that which positions count in.
    origin: u64,
    info: BatchInfo,
}

impl RecordBatch {
    fn error(&self, py: Python<'_>, error: ottla_format::error::Error) -> PyErr {
        to_python(py, &error.within(self.info.position as usize))
    }

    fn iterate(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        iterate(py, &self.info, &self.data, self.origin)
    }

    fn whole<'a>(&'a self, py: Python<'a>) -> Result<&'a [u8], ottla_format::error::Error> {
        whole_batch(&self.info, self.data.as_bytes(py), self.origin)
    }
}

#[pymethods]
impl RecordBatch {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&str, &str) = ("base_offset", "last_offset");

    #[new]
    #[pyo3(signature = (data, position=0))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = int)] position: u64,
    ) -> PyResult<Self> {
        let data = SharedBytes::of(data)?;
        let bytes = data.as_bytes(py);
        let first = Batches::new(bytes, 0).next().transpose();
        let first = first.map_err(|error| to_python(py, &error))?;
        match first {
            Some(info) if info.size == bytes.len() as u64 => {
                let info = BatchInfo { position, ..info };
                Ok(Self { data: data.clone_ref(py), origin: position, info })
            }
            first => {
                let size =
                    first.map_or_else(String::new, |info| format!(", of {} bytes", info.size));
                let found = bytes.len();
                Err(PyValueError::new_err(format!(
                    "data has {found} bytes, expected those of one batch{size}; read_batches reads \
                     any number"
                )))
            }
        }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let whole = self.whole(py).map_err(|error| self.error(py, error))?;
        let is_all = whole.len() == self.data.as_bytes(py).len();
        Ok(if is_all { self.data.to_bytes(py) } else { PyBytes::new(py, whole) })
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let equal = self.whole(py) == other.get().whole(py);
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.info.last_offset, self.info.size, self.info.crc).hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, u64)> {
        Ok((self.__bytes__(py)?, self.info.position))
    }

    /// Where the batch begins, in bytes of the data.
    #[getter]
    fn position(&self) -> u64 {
        self.info.position
    }

    /// Bytes of the batch, offset and size fields included.
    #[getter]
    fn size(&self) -> u64 {
        self.info.size
    }

    /// Format version: 0, 1 or 2.
    #[getter]
    fn magic(&self) -> i8 {
        self.info.magic
    }

    /// Offset of the first record. For a compressed wrapper of magic 0 or 1, it has to be inflated.
    #[getter]
    fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
        if self.info.magic >= 2 || self.info.codec() == 0 {
            return Ok(self.info.base_offset);
        }
        let records = self.iterate(py)?;
        Ok(records.next_offset(py)?.unwrap_or(self.info.base_offset))
    }

    /// Offset of the last record that the batch was written with.
    #[getter]
    fn last_offset(&self) -> i64 {
        self.info.last_offset
    }

    /// Epoch of the leader that appended the batch, −1 if unknown.
    #[getter]
    fn partition_leader_epoch(&self) -> i32 {
        self.info.partition_leader_epoch
    }

    /// The stored checksum: CRC-32C from byte 21, below magic 2 CRC-32 from the magic byte.
    #[getter]
    fn crc(&self) -> u32 {
        self.info.crc
    }

    /// All attribute bits.
    #[getter]
    fn attributes(&self) -> u16 {
        self.info.attributes
    }

    /// ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``; ``unknown`` for a number that no codec has.
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

    /// Whether the batch is part of a transaction (KIP-98).
    #[getter]
    fn is_transactional(&self) -> bool {
        self.info.is_transactional()
    }

    /// Whether the batch holds control records (KIP-98).
    #[getter]
    fn is_control(&self) -> bool {
        self.info.is_control()
    }

    /// When the cleaner may remove tombstones and markers, in ms since 1970, or ``None`` (KIP-534).
    #[getter]
    fn delete_horizon_ms(&self) -> Option<i64> {
        self.info.delete_horizon_ms()
    }

    /// The timestamp that the records' deltas count from, in ms since 1970.
    #[getter]
    fn base_timestamp(&self) -> i64 {
        self.info.base_timestamp
    }

    /// The largest timestamp, in ms since 1970; with LogAppendTime that of every record.
    #[getter]
    fn max_timestamp(&self) -> i64 {
        self.info.max_timestamp
    }

    /// Producer id, −1 without an idempotent producer.
    #[getter]
    fn producer_id(&self) -> i64 {
        self.info.producer_id
    }

    /// Producer epoch, −1 without an idempotent producer.
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.info.producer_epoch
    }

    /// Sequence number of the first record, −1 if it has none.
    #[getter]
    fn base_sequence(&self) -> i32 {
        self.info.base_sequence
    }

    /// Sequence number of the last record, −1 if it has none.
    #[getter]
    fn last_sequence(&self) -> i32 {
        self.info.last_sequence()
    }

    /// The record count of the header; ``None`` for magic 0 and 1, which have none.
    #[getter]
    fn record_count(&self) -> Option<i32> {
        self.info.record_count
    }

    /// Compares the stored checksum with the bytes.
    ///
    /// Raises:
    ///     CorruptRecordBatchError: they do not match, or the batch is too short for its header.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.whole(py).and_then(batch::verify).map_err(|error| self.error(py, error))
    }

    /// Returns an iterator over the records, parsed one by one as Kafka's consumer parses them. Inflates
    /// the payload first.
    ///
    /// Raises:
    ///     InvalidRecordError: now or while iterating, for what the consumer refuses.
    ///     CorruptRecordBatchError: a record of magic 0 or 1 with a wrong checksum.
    ///     UnsupportedCompressionError: a codec that does not exist, or that refuses its payload.
    fn records(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iterate(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let info = &self.info;
        let mut text = format!(
            "RecordBatch(position={}, size={}, magic={}, offsets={}..{}",
            info.position, info.size, info.magic, info.base_offset, info.last_offset
        );
        let compression = self.compression(py);
        // Writing to a string never fails.
        if info.codec() != 0 {
            let _ = write!(text, ", compression='{compression}'");
        }
        if info.producer_id >= 0 {
            let _ = write!(text, ", producer_id={}", info.producer_id);
        }
        for (name, holds) in
            [("is_transactional", info.is_transactional()), ("is_control", info.is_control())]
        {
            if holds {
                let _ = write!(text, ", {name}=True");
            }
        }
        text.push(')');
        text
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        fields_html(this.as_any())
    }
}

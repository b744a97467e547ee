//! A producer's batch, grown record by record or by rows of columns.

use crate::build::{
    OwnedHeader, OwnedRecord, borrowed, borrowed_headers, codec, owned_header, refused,
};
use crate::bytes::DETACH_BYTES;
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::integers::{int, of_argument};
use crate::kernels::require_numpy;
use crate::numpy_columns::{Array, contiguous};
use crate::row_column::{RowColumn, part_of};
use ottla_format::attributes::Compression;
use ottla_format::builder::{self, BatchFields, BuildError, NewRecord, RowColumns, RowTimestamps};
use ottla_format::check::Level;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyInt, PyList};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The records of one batch of magic 2, as a producer collects and sends them: their bytes go in once,
/// and come out as often as the batch is sent.
///
/// Args:
///     max_bytes: bytes of the whole batch, uncompressed, that no record but the first may exceed.
///
/// >>> from ottla.records import BatchBuilder, read
/// >>> builder = BatchBuilder(16384)
/// >>> builder.append(1_500_000_000_000, None, b"hello")
/// 73
/// >>> [record.value for record in read(builder.finish(compression="lz4"))]
/// [b'hello']
#[pyclass(frozen, module = "ottla.records")]
pub struct BatchBuilder {
    state: Mutex<builder::BatchBuilder>,
}

impl BatchBuilder {
    fn of(state: builder::BatchBuilder) -> Self {
        Self { state: Mutex::new(state) }
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, builder::BatchBuilder> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BatchBuilder {
    #[new]
    fn new(#[pyo3(from_py_with = int)] max_bytes: u64) -> Self {
        Self::of(builder::BatchBuilder::new(max_bytes))
    }

    /// Appends a record. Returns the bytes of the whole batch with it, uncompressed; -1 where there is
    /// no room for it, and the batch is as before. The first record always has room.
    ///
    /// Args:
    ///     timestamp_ms: ms since 1970; -1 for none.
    ///     key, value: bytes-like objects, or ``None`` for null.
    ///     headers: pairs of key and value; a key is ``str`` or bytes.
    ///
    /// Raises:
    ///     TypeError: something is no bytes.
    ///     ValueError: a negative timestamp other than -1, or a record of 2 GiB.
    #[pyo3(signature = (timestamp_ms, key, value, headers=None, /))]
    fn append(
        &self,
        py: Python<'_>,
        timestamp_ms: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let timestamp = timestamp_of(timestamp_ms)?;
        let key = part_of(key, "key")?;
        let value = part_of(value, "value")?;
        let headers = headers.map_or_else(|| Ok(Vec::new()), headers_of)?;
        let record = NewRecord {
            timestamp,
            key: key.as_ref().map(PyBytesMethods::as_bytes),
            value: value.as_ref().map(PyBytesMethods::as_bytes),
            headers: borrowed_headers(&headers),
            offset_delta: None,
        };
        let mut state = self.state(py);
        match attached(py, || state.push(&record))? {
            Ok(true) => Ok(state.size() as i64),
            Ok(false) => Ok(-1),
            Err(error) => Err(refused(error)),
        }
    }

    /// Appends rows, from `start` on, as long as there is room. Returns how many it took: 0 where there
    /// is no room for one.
    ///
    /// Args:
    ///     timestamps: an int64 array with one a row, or one int for all; ms since 1970, -1 for none.
    ///     keys, values: lists of bytes-like objects and ``None``; or columns, ``(offsets, data)`` or
    ///         ``(offsets, data, validity)`` of NumPy; or ``None`` for nulls.
    ///     rows: an int64 array of the rows to append, in order; ``None`` for all.
    ///     start: the place in ``rows``, or the row, to begin at.
    ///     headers: a list with the headers of each row, or ``None``.
    ///
    /// Raises:
    ///     TypeError: something is no bytes, or an array has the wrong type.
    ///     ValueError: a row does not exist, or is what :meth:`append` refuses. No row has been appended.
    #[pyo3(signature = (timestamps, keys, values, rows=None, start=0, headers=None))]
    #[expect(clippy::too_many_arguments, reason = "one per column")]
    #[expect(clippy::needless_pass_by_value, reason = "the borrow of an array ends with the call")]
    fn append_many(
        &self,
        py: Python<'_>,
        timestamps: Timestamps<'_>,
        keys: Option<RowColumn<'_>>,
        values: Option<RowColumn<'_>>,
        rows: Option<Array<'_, i64>>,
        #[pyo3(from_py_with = int)] start: usize,
        headers: Option<Bound<'_, PyList>>,
    ) -> PyResult<usize> {
        let source = RowSource { timestamps, keys, values, headers };
        let count = source.count()?;
        let rows = rows.as_deref().map(contiguous).transpose()?;
        let row_at = |place: usize| match rows {
            None => place,
            // A negative row is none that a column has.
            Some(rows) => {
                rows.get(place).map_or(usize::MAX, |&row| row.try_into().unwrap_or(usize::MAX))
            }
        };
        let places = start..rows.map_or(count, <[i64]>::len);
        let taken = if let Some(columns) = source.columns()? {
            let rows = places.map(row_at).map(|row| (row, columns.record(row)));
            let mut state = self.state(py);
            attached(py, || state.push_rows(rows))?
        } else {
            let held = self.hold(py, &source, places.map(row_at))?;
            let rows = held.iter().map(|(row, record)| (*row, Ok(borrowed(record))));
            let mut state = self.state(py);
            attached(py, || state.push_rows(rows))?
        };
        taken.map_err(refused)
    }

    /// How many records it has.
    #[getter]
    fn count(&self, py: Python<'_>) -> usize {
        self.state(py).count()
    }

    /// Bytes of the whole batch, uncompressed.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> usize {
        self.state(py).size()
    }

    /// Returns a batch of the other records; indexes that it does not have are no error.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes it for this call")]
    fn without(&self, py: Python<'_>, indexes: Vec<usize>) -> Self {
        Self::of(self.state(py).without(&indexes))
    }

    /// Returns two batches: of the first `at` records, and of the others.
    ///
    /// Raises:
    ///     ValueError: one of them would have none.
    fn split(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] at: usize,
    ) -> PyResult<(Self, Self)> {
        let state = self.state(py);
        let count = state.count();
        if at == 0 || at >= count {
            let message = format!("at is {at}, expected 1 or more, and less than {count} records");
            return Err(PyValueError::new_err(message));
        }
        let (first, second) = state.split(at);
        Ok((Self::of(first), Self::of(second)))
    }

    /// Returns the batch, with base offset 0. The records are compressed the first time only.
    ///
    /// Args:
    ///     compression: codec of the payload.
    ///     compression_level: level in the codec's own scale; ``None`` for Kafka's default.
    ///     producer_id, producer_epoch, base_sequence: of an idempotent producer; all or none (KIP-98).
    ///     is_transactional: whether the batch is part of a transaction; requires a producer id.
    ///
    /// Raises:
    ///     ValueError: there are no records, or the producer's fields do not fit together.
    #[pyo3(signature = (
        *, compression="none", compression_level=None, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, is_transactional=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "one per field, by name")]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        compression: &str,
        #[pyo3(from_py_with = int)] compression_level: Option<i32>,
        #[pyo3(from_py_with = int)] producer_id: i64,
        #[pyo3(from_py_with = int)] producer_epoch: i16,
        #[pyo3(from_py_with = int)] base_sequence: i32,
        is_transactional: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let fields = BatchFields {
            producer_id,
            producer_epoch,
            base_sequence,
            is_transactional,
            compression: codec(compression)?,
            compression_level,
            ..BatchFields::default()
        };
        // Until it is written, so that no other thread has it compressed anew, or longer, in between.
        let mut state = self.state(py);
        let held = &mut *state;
        let waits = fields.compression != Compression::None && held.size() > DETACH_BYTES;
        let prepare = || -> Result<usize, BuildError> {
            with_checker(Level::Full, |checker| held.prepare(&fields, checker.codecs()))
        };
        let size = if waits { detached(py, prepare)? } else { attached(py, prepare)? };
        let size = size.map_err(refused)?;
        PyBytes::new_with(py, size, |batch| state.write(&fields, batch).map_err(refused))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = self.state(py);
        format!("BatchBuilder(count={}, size_bytes={})", state.count(), state.size())
    }
}

impl BatchBuilder {
    /// The rows that there may be room for. They are held before the batch is locked: a bytes-like
    /// object may run any code when it is read.
    fn hold<'py>(
        &self,
        py: Python<'py>,
        source: &RowSource<'py>,
        rows: impl Iterator<Item = usize>,
    ) -> PyResult<Vec<(usize, OwnedRecord<'py>)>> {
        let (mut size, max_bytes) = {
            let state = self.state(py);
            (state.size() as u64, state.max_bytes())
        };
        let mut held = Vec::new();
        for row in rows {
            let record = source.record(row)?;
            size = size.saturating_add(least_bytes(&record));
            held.push((row, record));
            if size > max_bytes {
                break;
            }
        }
        Ok(held)
    }
}

/// Bytes that the record has at least: those of key and value, and one for each of its numbers.
fn least_bytes(record: &OwnedRecord<'_>) -> u64 {
    const NUMBERS: u64 = 7;
    let parts = [&record.key, &record.value].into_iter().flatten();
    let bytes: u64 = parts.map(|part| part.as_bytes().len() as u64).sum();
    bytes.saturating_add(NUMBERS)
}

/// Rows to append.
struct RowSource<'py> {
    timestamps: Timestamps<'py>,
    keys: Option<RowColumn<'py>>,
    values: Option<RowColumn<'py>>,
    headers: Option<Bound<'py, PyList>>,
}

impl<'py> RowSource<'py> {
    /// How many rows there are.
    fn count(&self) -> PyResult<usize> {
        let counts = [
            ("timestamps", self.timestamps.count()?),
            ("keys", self.keys.as_ref().map(RowColumn::count).transpose()?),
            ("values", self.values.as_ref().map(RowColumn::count).transpose()?),
            ("headers", self.headers.as_ref().map(PyListMethods::len)),
        ];
        let mut counts = counts.into_iter().filter_map(|(name, count)| Some((name, count?)));
        let Some((first, count)) = counts.next() else {
            let message = "one timestamp for all, and neither keys, values nor headers: \
                           how many rows there are is not known";
            return Err(PyValueError::new_err(message));
        };
        match counts.find(|&(_, other)| other != count) {
            None => Ok(count),
            Some((name, other)) => {
                let message = format!("{name} has {other} rows, expected {count} as {first}");
                Err(PyValueError::new_err(message))
            }
        }
    }

    /// All of it as columns; `None` where something is a list.
    fn columns(&self) -> PyResult<Option<RowColumns<'_>>> {
        let is_list =
            |column: &Option<RowColumn<'py>>| matches!(column, Some(RowColumn::Objects(_)));
        if is_list(&self.keys) || is_list(&self.values) || self.headers.is_some() {
            return Ok(None);
        }
        let timestamps = match &self.timestamps {
            Timestamps::One(timestamp) => RowTimestamps::One(*timestamp),
            Timestamps::Each(timestamps) => RowTimestamps::Each(contiguous(timestamps)?),
        };
        let (keys, values) = (self.keys.as_ref(), self.values.as_ref());
        Ok(Some(RowColumns {
            timestamps,
            keys: keys.map(RowColumn::bytes).transpose()?.flatten(),
            values: values.map(RowColumn::bytes).transpose()?.flatten(),
        }))
    }

    /// One row.
    fn record(&self, row: usize) -> PyResult<OwnedRecord<'py>> {
        let part = |column: &Option<RowColumn<'py>>, name| match column {
            None => Ok(None),
            Some(column) => column.value(row, name),
        };
        let timestamp = match &self.timestamps {
            Timestamps::One(timestamp) => *timestamp,
            Timestamps::Each(timestamps) => {
                let timestamps = contiguous(timestamps)?;
                let rows = timestamps.len();
                *timestamps.get(row).ok_or_else(|| refused(BuildError::Row { row, rows }))?
            }
        };
        let headers = match &self.headers {
            None => Vec::new(),
            Some(list) => {
                let rows = list.len();
                let headers =
                    list.get_item(row).map_err(|_| refused(BuildError::Row { row, rows }))?;
                headers_of(&headers)?
            }
        };
        Ok(OwnedRecord {
            timestamp,
            key: part(&self.keys, "keys")?,
            value: part(&self.values, "values")?,
            headers,
            offset_delta: None,
        })
    }
}

/// Timestamps of rows.
enum Timestamps<'py> {
    One(i64),
    Each(Array<'py, i64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Timestamps<'py> {
    type Error = PyErr;

    fn extract(timestamps: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // Whether an object is an array is known to NumPy alone, which one number does not need.
        if timestamps.is_instance_of::<PyInt>() {
            return timestamp_of(&timestamps).map(Self::One);
        }
        require_numpy(timestamps.py(), "Pass records")?;
        if let Ok(timestamps) = timestamps.extract() {
            return Ok(Self::Each(timestamps));
        }
        timestamp_of(&timestamps).map(Self::One).map_err(|_| {
            PyTypeError::new_err("timestamps are an int64 array, or one int for all rows")
        })
    }
}

impl Timestamps<'_> {
    fn count(&self) -> PyResult<Option<usize>> {
        match self {
            Self::One(_) => Ok(None),
            Self::Each(timestamps) => Ok(Some(contiguous(timestamps)?.len())),
        }
    }
}

/// The timestamp of a record.
fn timestamp_of(timestamp: &Bound<'_, PyAny>) -> PyResult<i64> {
    int(timestamp).map_err(|error: PyErr| {
        if !error.is_instance_of::<PyTypeError>(timestamp.py()) {
            return of_argument(timestamp.py(), "timestamp_ms", error);
        }
        let found = timestamp.get_type().to_string();
        PyTypeError::new_err(format!("timestamp_ms is {found}, expected an int"))
    })
}

/// Headers of a record: pairs of key and value.
fn headers_of<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Vec<OwnedHeader<'py>>> {
    if headers.is_none() {
        return Ok(Vec::new());
    }
    let wrong = |error: PyErr| {
        let hint = "headers are pairs of key, which is str or bytes, and value, bytes or None";
        PyTypeError::new_err(format!("{hint}: {}", error.value(headers.py())))
    };
    let pairs: Vec<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> =
        headers.extract().map_err(wrong)?;
    pairs.into_iter().map(owned_header).collect::<PyResult<_>>().map_err(wrong)
}

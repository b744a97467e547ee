//! The tables `batches` and `records` of a segment as Arrow record batches, without a Python object
//! for any row.

use crate::damage::damage_dict;
use crate::json::lines::json_lines;
use crate::place::{Opened, Place};
use crate::row_arrays::{Constants, Impossible, batches, records};
use crate::row_columns::{Prefix, Selection, Table};
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use ottla_audit::SegmentContext;
use ottla_audit::rows::{
    AbortedTransactions, BatchReader, MAX_PIECE_BYTES, Piece, RecordReader, RecordRules, RowBounds,
    RowRange,
};
use ottla_format::limits::Limits;
use ottla_py_batches::arrow_stream::value_error;
use ottla_py_batches::calls::{called_back, detached, is_called_back};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

enum Reader {
    Batches(Box<BatchReader>),
    Records(Box<RecordReader>),
}

struct State {
    opened: Option<Opened>,
    reader: Reader,
    constants: Constants,
    impossible: Impossible,
    /// Where the batch of the last record of the last piece is.
    last_position: Option<i64>,
}

/// The rows of a segment, read while they are iterated over.
///
/// Iterating gives :class:`TableBatch`; Arrow libraries also take it as it is, as a stream. Either
/// goes on where the other has stopped.
#[pyclass(frozen, module = "ottla._engine")]
pub struct SegmentTable {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    selection: Selection,
    state: Mutex<State>,
}

/// Rows of the table ``batches`` or ``records`` of one segment file, as Arrow record batches.
///
/// Damage is left out; of a batch whose records cannot be read come those before the fault, of one
/// with a wrong checksum none. Memory is bounded by a window of the file, one batch inflated, and the
/// record batch that is made.
///
/// Args:
///     place: path of the file, as the operating system has it, or an object with ``size`` and
///         ``read_at(position, size)``.
///     table: ``batches`` or ``records``; ``source`` for records with headers as structs and with
///         what their batches say; ``kafka`` for records as Spark's Kafka source has them.
///     columns: names of the columns, in the order wanted; all where left out. What is not asked for
///         is not made.
///     prefix: values of ``file``, ``topic`` and ``partition``.
///     start, stop: the batches that begin between these positions; ``start`` is 0 or where a batch
///         begins.
///     min_offset, max_offset, min_timestamp, max_timestamp: bounds, inclusive. Of ``records`` those
///         rows are left out whose ``offset`` or ``timestamp`` is outside; batches of magic 2 whose
///         header lies outside are not inflated, and its word is taken. Of ``batches`` those come with
///         ``last_offset >= min_offset``, ``base_offset <= max_offset`` and
///         ``max_timestamp >= min_timestamp``; ``max_timestamp`` leaves none of them out.
///     batch_bytes: bytes of a record batch, about; at most 64 MiB.
///     impossible_timestamps: what becomes of timestamps that microseconds in 64 bits cannot hold, in
///         the table ``kafka``: ``error``, ``null`` or ``clamp``.
///     place_in_log: base offset of the segment, that of the next one (``None`` for the last), and
///         whether the broker stopped cleanly. With it, records out of their place are left out, as
///         :class:`PartitionRecords` leaves them out.
///     expected: the offset behind the records before ``start``, if that is known.
///     without_controls: leave control records out.
///     aborted: producer id, first offset and offset of the marker of transactions to leave out, as
///         :func:`partition_transactions` returns them.
///
/// Raises:
///     OSError: the file cannot be opened, or while iterating read.
///     ValueError: a table or column that does not exist, or ``batch_bytes`` out of range; while
///         iterating, an impossible timestamp.
#[pyfunction]
#[pyo3(signature = (
    place, table, *, columns=None, prefix=(None, None, None), start=0, stop=None, min_offset=None,
    max_offset=None, min_timestamp=None, max_timestamp=None, batch_bytes=1 << 20,
    impossible_timestamps="error", place_in_log=None, expected=None, without_controls=false,
    aborted=vec![]
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn segment_table(
    py: Python<'_>,
    place: Place,
    table: &str,
    columns: Option<Vec<String>>,
    prefix: Prefix,
    start: u64,
    stop: Option<u64>,
    min_offset: Option<i64>,
    max_offset: Option<i64>,
    min_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    batch_bytes: usize,
    impossible_timestamps: &str,
    place_in_log: Option<PlaceInLog>,
    expected: Option<i64>,
    without_controls: bool,
    aborted: Vec<(i64, i64, i64)>,
) -> PyResult<SegmentTable> {
    tidy(py);
    let impossible = Impossible::from_name(impossible_timestamps)?;
    let table = Table::from_name(table)?;
    let selection = table.select(columns.as_deref())?;
    if !(1..=MAX_PIECE_BYTES).contains(&batch_bytes) {
        let message = format!("batch_bytes is 1 to {MAX_PIECE_BYTES}, not {batch_bytes}");
        return Err(PyValueError::new_err(message));
    }
    let opened = place.open_detached(py)?;
    let everything = RowBounds::default();
    let range = RowRange {
        positions: start..stop.unwrap_or(u64::MAX),
        bounds: RowBounds {
            min_offset: min_offset.unwrap_or(everything.min_offset),
            max_offset: max_offset.unwrap_or(everything.max_offset),
            min_timestamp: min_timestamp.unwrap_or(everything.min_timestamp),
            max_timestamp: max_timestamp.unwrap_or(everything.max_timestamp),
        },
        piece_bytes: batch_bytes,
        row_bytes: selection.sources.iter().map(|source| source.row_bytes(&prefix)).sum(),
    };
    let reader = match table {
        Table::Batches => Reader::Batches(Box::new(BatchReader::new(range, Limits::default()))),
        Table::Records | Table::Source { .. } | Table::Kafka => {
            let parts = selection.parts();
            let rules = RecordRules {
                place: place_in_log.map(context_of),
                expected,
                without_controls,
                aborted: aborted_of(aborted),
            };
            Reader::Records(Box::new(RecordReader::new(range, parts, rules, Limits::default())))
        }
    };
    let state = Mutex::new(State {
        opened: Some(opened),
        reader,
        constants: Constants::new(prefix),
        impossible,
        last_position: None,
    });
    Ok(SegmentTable { shared: Arc::new(Shared { place, selection, state }) })
}

/// Base offset of a segment, that of the next one, and whether the broker stopped cleanly.
type PlaceInLog = (Option<i64>, Option<i64>, bool);

fn context_of((base_offset, next_base_offset, stopped_cleanly): PlaceInLog) -> SegmentContext {
    SegmentContext {
        base_offset,
        next_base_offset,
        is_active: next_base_offset.is_none(),
        stopped_cleanly,
        now_ms: i64::MAX,
        ..SegmentContext::default()
    }
}

fn aborted_of(transactions: Vec<(i64, i64, i64)>) -> AbortedTransactions {
    let mut aborted = AbortedTransactions::default();
    for (producer_id, first_offset, last_offset) in transactions {
        aborted.add(producer_id, first_offset, last_offset);
    }
    aborted
}

/// What reading one more piece came to.
enum Fault {
    Io(io::Error),
    Arrow(ArrowError),
    Busy,
}

impl Shared {
    /// The next rows, `None` at the end. `stop_at_busy`: comes back in between, to be asked again.
    fn next(&self, stop_at_busy: bool) -> Result<Option<RecordBatch>, Fault> {
        // Waiting here would hold the interpreter's lock, which whoever holds this one may wait for.
        let Ok(mut state) = self.state.try_lock() else {
            let message = "the table is in use by another thread".to_owned();
            return Err(Fault::Arrow(ArrowError::InvalidArgumentError(message)));
        };
        let State { opened, reader, constants, impossible, last_position } = &mut *state;
        loop {
            let Some(source) = opened.as_ref() else { return Ok(None) };
            let piece = match reader {
                Reader::Batches(reader) => reader.next(source).map(|piece| match piece {
                    Piece::Rows(rows) => {
                        *last_position = rows.last().map(|row| row.info.position as i64);
                        Piece::Rows(batches(&rows, &self.selection, constants))
                    }
                    Piece::Busy => Piece::Busy,
                    Piece::End => Piece::End,
                }),
                Reader::Records(reader) => reader.next(source).map(|piece| match piece {
                    Piece::Rows(rows) => {
                        *last_position = rows.batch_positions.last().copied();
                        Piece::Rows(records(rows, &self.selection, constants, *impossible))
                    }
                    Piece::Busy => Piece::Busy,
                    Piece::End => Piece::End,
                }),
            };
            match piece {
                Ok(Piece::Rows(batch)) => return batch.map(Some).map_err(Fault::Arrow),
                Ok(Piece::Busy) if stop_at_busy => return Err(Fault::Busy),
                Ok(Piece::Busy) => {}
                Ok(Piece::End) => *opened = None,
                Err(error) => {
                    *opened = None;
                    return Err(Fault::Io(error));
                }
            }
        }
    }
}

#[pymethods]
impl SegmentTable {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<TableBatch>> {
        tidy(py);
        loop {
            match detached(py, || self.shared.next(true))? {
                Ok(batch) => return Ok(batch.map(|batch| TableBatch { batch })),
                Err(Fault::Busy) => py.check_signals()?,
                Err(Fault::Io(error)) => return Err(self.shared.place.error(py, &error)),
                Err(Fault::Arrow(ArrowError::CastError(why))) => {
                    return Err(PyValueError::new_err(why));
                }
                Err(Fault::Arrow(error)) => {
                    return Err(PyRuntimeError::new_err(error.to_string()));
                }
            }
        }
    }

    /// What was passed over since the last call, as dictionaries; see :class:`PartitionRecords`.
    /// Only of records; all of it after the last of them.
    fn take_damage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let damages = match self.shared.state.try_lock() {
            Ok(mut state) => match &mut state.reader {
                Reader::Records(reader) => reader.take_damage(),
                Reader::Batches(_) => Vec::new(),
            },
            Err(_) => Vec::new(),
        };
        damages.iter().map(|damage| damage_dict(py, damage)).collect()
    }

    /// The offset behind the last record in its place; ``None`` before the first, and without
    /// ``place_in_log``.
    #[getter]
    fn next_offset(&self) -> Option<i64> {
        let state = self.shared.state.try_lock().ok()?;
        match &state.reader {
            Reader::Records(reader) => reader.next_offset(),
            Reader::Batches(_) => None,
        }
    }

    /// Position of the batch of the last row that was returned; ``None`` before the first.
    #[getter]
    fn last_position(&self) -> Option<i64> {
        self.shared.state.try_lock().ok().and_then(|state| state.last_position)
    }

    /// The schema (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.shared.selection.schema)
    }

    /// The rows that are left, read while they are asked for (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore what it is asked for; consumers then cast.
        drop(requested_schema);
        let reader = LazyReader {
            schema: Arc::clone(&self.shared.selection.schema),
            batches: Some(Batches::Segment(Arc::clone(&self.shared))),
        };
        stream_capsule(py, reader)
    }
}

/// Rows of a table: a record batch for any Arrow library.
#[pyclass(frozen, module = "ottla._engine")]
pub struct TableBatch {
    batch: RecordBatch,
}

impl TableBatch {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl TableBatch {
    /// Rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The rows as JSON objects, a line each.
    ///
    /// Args:
    ///     json_columns: names of columns whose text is JSON already.
    ///
    /// Raises:
    ///     ValueError: a column of times or structs.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
    fn json_lines<'py>(
        &self,
        py: Python<'py>,
        json_columns: Vec<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let lines = detached(py, || json_lines(&self.batch, &json_columns))?;
        Ok(PyBytes::new(py, lines.map_err(|error| value_error(&error))?.as_bytes()))
    }

    /// The schema (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.batch.schema_ref())
    }

    /// Schema and array, nothing copied (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface lets a producer ignore what it is asked for; consumers then cast.
        drop(requested_schema);
        let array = StructArray::from(self.batch.clone());
        let (array, _) = to_ffi(&array.into_data()).map_err(|error| value_error(&error))?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((schema_capsule(py, self.batch.schema_ref())?, array))
    }
}

/// Record batches of a table, one after the other, as one Arrow stream.
///
/// Args:
///     table: ``batches`` or ``records``.
///     batches: iterable over :class:`TableBatch` with all columns, asked for the next one while the
///         stream is read.
#[pyfunction]
pub fn segment_stream(table: &str, batches: &Bound<'_, PyAny>) -> PyResult<SegmentStream> {
    let schema = Table::from_name(table)?.select(None)?.schema;
    Ok(SegmentStream::over(schema, batches.try_iter()?))
}

/// What :func:`segment_stream` gives: it can be read once.
#[pyclass(frozen, module = "ottla._engine")]
pub struct SegmentStream {
    schema: SchemaRef,
    batches: Mutex<Option<Py<PyIterator>>>,
}

impl SegmentStream {
    /// Over an iterator of [`TableBatch`].
    pub(crate) fn over(schema: SchemaRef, batches: Bound<'_, PyIterator>) -> Self {
        tidy(batches.py());
        Self { schema, batches: Mutex::new(Some(batches.unbind())) }
    }
}

#[pymethods]
impl SegmentStream {
    /// The stream (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore what it is asked for; consumers then cast.
        drop(requested_schema);
        let taken = self.batches.try_lock().ok().and_then(|mut batches| batches.take());
        let Some(batches) = taken else {
            return Err(PyRuntimeError::new_err("the stream was read already"));
        };
        let batches = Some(Batches::Python(batches));
        let reader = LazyReader { schema: Arc::clone(&self.schema), batches };
        stream_capsule(py, reader)
    }
}

/// A stream whose batches are made while it is read.
struct LazyReader {
    schema: SchemaRef,
    batches: Option<Batches>,
}

/// What streams of Arrow have let go of.
///
/// An Arrow library may drop a stream without the interpreter's lock while a function of this module
/// further up the stack believes to have it: there nothing of Python's can be dropped. The next call
/// from Python does.
static LEFT_OVER: Mutex<Vec<LeftOver>> = Mutex::new(Vec::new());

enum LeftOver {
    Place { _place: Place, _opened: Option<Opened> },
    Iterator { _iterator: Py<PyIterator> },
}

/// Drops what was left over; called by functions that Python has called.
fn tidy(_: Python<'_>) {
    let left = LEFT_OVER.try_lock().map(|mut left| std::mem::take(&mut *left));
    drop(left);
}

impl Drop for LazyReader {
    fn drop(&mut self) {
        let left = match self.batches.take() {
            Some(Batches::Python(iterator)) => Some(LeftOver::Iterator { _iterator: iterator }),
            Some(Batches::Segment(shared)) => Arc::into_inner(shared).and_then(|shared| {
                let Shared { place, state, .. } = shared;
                let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
                let of_python = matches!(place, Place::Object(_));
                of_python.then_some(LeftOver::Place { _place: place, _opened: state.opened })
            }),
            None => None,
        };
        if let Some(left) = left {
            LEFT_OVER.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
    }
}

enum Batches {
    Segment(Arc<Shared>),
    Python(Py<PyIterator>),
}

impl Batches {
    /// Whether the interpreter is needed to read them.
    fn need_python(&self) -> bool {
        match self {
            Self::Segment(shared) => matches!(shared.place, Place::Object(_)),
            Self::Python(_) => true,
        }
    }
}

impl LazyReader {
    fn next_batch(&self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(batches) = &self.batches else { return Ok(None) };
        match batches {
            batches if batches.need_python() && is_called_back() => {
                let message = "a stream cannot be read inside a function that the engine calls, \
                               such as on_damage, progress or read_at: iterate over its batches there";
                Err(ArrowError::IoError(message.to_owned(), io::Error::other(message)))
            }
            Batches::Segment(shared) => shared.next(false).map_err(|fault| match fault {
                Fault::Io(error) => ArrowError::IoError(error.to_string(), error),
                Fault::Arrow(error) => error,
                Fault::Busy => ArrowError::InvalidArgumentError("interrupted".to_owned()),
            }),
            Batches::Python(iterator) => Python::attach(|py| {
                let next = called_back(|| iterator.bind(py).clone().next());
                let next = next.transpose().and_then(|item| {
                    item.map(|item| Ok(item.cast::<TableBatch>()?.get().batch.clone())).transpose()
                });
                next.map_err(|error: PyErr| {
                    let error = io::Error::other(error.to_string());
                    ArrowError::IoError(error.to_string(), error)
                })
            }),
        }
    }
}

impl Iterator for LazyReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for LazyReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn stream_capsule(py: Python<'_>, reader: LazyReader) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| value_error(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

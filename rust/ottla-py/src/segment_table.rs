//! The tables `batches` and `records` of a segment as Arrow record batches, without a Python object
//! for any row.

use crate::place::{Opened, Place};
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, RecordBatchReader, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ottla_audit::rows::table::{
    BatchReader, MAX_PIECE_BYTES, Piece, RecordParts, RecordReader, RecordRows, RowBounds, RowRange,
};
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::limits::Limits;
use ottla_kernels::copies::BinaryValues;
use ottla_kernels::views::Nulls;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

const FILE_COLUMNS: [(&str, DataType); 3] =
    [("file", DataType::Utf8), ("topic", DataType::Utf8), ("partition", DataType::Int32)];

/// What there is of each batch.
const BATCH_COLUMNS: [(&str, DataType); 20] = [
    ("position", DataType::Int64),
    ("size", DataType::Int64),
    ("magic", DataType::Int32),
    ("base_offset", DataType::Int64),
    ("last_offset", DataType::Int64),
    ("record_count", DataType::Int32),
    ("compression", DataType::Utf8),
    ("timestamp_type", DataType::Utf8),
    ("base_timestamp", DataType::Int64),
    ("max_timestamp", DataType::Int64),
    ("partition_leader_epoch", DataType::Int32),
    ("producer_id", DataType::Int64),
    ("producer_epoch", DataType::Int32),
    ("base_sequence", DataType::Int32),
    ("last_sequence", DataType::Int32),
    ("is_transactional", DataType::Boolean),
    ("is_control", DataType::Boolean),
    ("delete_horizon_ms", DataType::Int64),
    ("crc", DataType::Int64),
    ("is_valid", DataType::Boolean),
];

/// What there is of each record.
const RECORD_COLUMNS: [(&str, DataType); 8] = [
    ("batch_position", DataType::Int64),
    ("offset", DataType::Int64),
    ("timestamp", DataType::Int64),
    ("key", DataType::Binary),
    ("value", DataType::Binary),
    ("headers", DataType::Utf8),
    ("sequence", DataType::Int32),
    ("control", DataType::Utf8),
];

/// Bytes of the text of a record without headers.
const NO_HEADERS: &str = "[]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Batches,
    Records,
}

impl Kind {
    fn of(name: &str) -> PyResult<Self> {
        match name {
            "batches" => Ok(Self::Batches),
            "records" => Ok(Self::Records),
            _ => {
                Err(PyValueError::new_err(format!("table is 'batches' or 'records', not '{name}'")))
            }
        }
    }

    fn columns(self) -> impl Iterator<Item = &'static (&'static str, DataType)> {
        static FILE: [(&str, DataType); 3] = FILE_COLUMNS;
        static BATCH: [(&str, DataType); 20] = BATCH_COLUMNS;
        static RECORD: [(&str, DataType); 8] = RECORD_COLUMNS;
        let rest: &'static [(&'static str, DataType)] = match self {
            Self::Batches => &BATCH,
            Self::Records => &RECORD,
        };
        FILE.iter().chain(rest)
    }

    /// The columns asked for, in the order asked for.
    fn schema(self, columns: Option<&[String]>) -> PyResult<SchemaRef> {
        let field =
            |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
        let Some(columns) = columns else {
            return Ok(Arc::new(Schema::new(self.columns().map(field).collect::<Vec<_>>())));
        };
        let fields = columns.iter().enumerate().map(|(index, wanted)| {
            if columns.iter().take(index).any(|other| other == wanted) {
                return Err(PyValueError::new_err(format!("column '{wanted}' is asked for twice")));
            }
            let found = self.columns().find(|(name, _)| name == wanted).map(field);
            found.ok_or_else(|| {
                let names: Vec<_> = self.columns().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                PyValueError::new_err(format!("there is no column '{wanted}', only {names}"))
            })
        });
        Ok(Arc::new(Schema::new(fields.collect::<PyResult<Vec<_>>>()?)))
    }
}

/// The same value in every row, made once for as many rows as were ever needed.
struct Repeated<T> {
    value: Option<T>,
    array: ArrayRef,
}

impl<T> Repeated<T> {
    fn new(value: Option<T>) -> Self {
        Self { value, array: Arc::new(Int32Array::new_null(0)) }
    }

    fn rows(
        &mut self,
        count: usize,
        make: impl FnOnce(&T, usize) -> ArrayRef,
        kind: &DataType,
    ) -> ArrayRef {
        if self.array.len() < count || self.array.data_type() != kind {
            self.array = match &self.value {
                Some(value) => make(value, count),
                None => arrow_array::new_null_array(kind, count),
            };
        }
        self.array.slice(0, count)
    }
}

impl Repeated<String> {
    fn text(&mut self, count: usize) -> ArrayRef {
        let make = |value: &String, count: usize| -> ArrayRef {
            let ends = OffsetBuffer::from_repeated_length(value.len(), count);
            let data = Buffer::from_vec(value.as_bytes().repeat(count));
            // It repeats UTF-8, and its length is that of the repetition.
            StringArray::try_new(ends, data, None).map_or_else(
                |_| arrow_array::new_null_array(&DataType::Utf8, count),
                |array| Arc::new(array) as _,
            )
        };
        self.rows(count, make, &DataType::Utf8)
    }
}

impl Repeated<i32> {
    fn number(&mut self, count: usize) -> ArrayRef {
        let make =
            |value: &i32, count| -> ArrayRef { Arc::new(Int32Array::from_value(*value, count)) };
        self.rows(count, make, &DataType::Int32)
    }
}

/// The columns that are the same in every row, or nearly always.
struct Constants {
    file: Repeated<String>,
    topic: Repeated<String>,
    partition: Repeated<i32>,
    no_headers: Repeated<String>,
    no_control: Repeated<String>,
}

enum Reader {
    Batches(Box<BatchReader>),
    Records(Box<RecordReader>),
}

struct State {
    opened: Option<Opened>,
    reader: Reader,
    constants: Constants,
}

/// The rows of a segment, read while they are iterated over.
///
/// Iterating gives :class:`TableBatch`; Arrow libraries also take it as it is, as a stream. Either
/// goes on where the other has stopped.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct SegmentTable {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    schema: SchemaRef,
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
///     table: ``batches`` or ``records``.
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
///
/// Raises:
///     OSError: the file cannot be opened, or while iterating read.
///     ValueError: a table or column that does not exist, or ``batch_bytes`` out of range.
#[pyfunction]
#[pyo3(signature = (
    place, table, *, columns=None, prefix=(None, None, None), start=0, stop=None, min_offset=None,
    max_offset=None, min_timestamp=None, max_timestamp=None, batch_bytes=1 << 20
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn segment_table(
    py: Python<'_>,
    place: Place,
    table: &str,
    columns: Option<Vec<String>>,
    prefix: (Option<String>, Option<String>, Option<i32>),
    start: u64,
    stop: Option<u64>,
    min_offset: Option<i64>,
    max_offset: Option<i64>,
    min_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    batch_bytes: usize,
) -> PyResult<SegmentTable> {
    tidy(py);
    let kind = Kind::of(table)?;
    let schema = kind.schema(columns.as_deref())?;
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
        row_bytes: row_bytes(&schema, &prefix),
    };
    let has = |name: &str| schema.index_of(name).is_ok();
    let reader = match kind {
        Kind::Batches => Reader::Batches(Box::new(BatchReader::new(range, Limits::default()))),
        Kind::Records => {
            let parts =
                RecordParts { keys: has("key"), values: has("value"), headers: has("headers") };
            Reader::Records(Box::new(RecordReader::new(range, parts, Limits::default())))
        }
    };
    let (file, topic, partition) = prefix;
    let constants = Constants {
        file: Repeated::new(file),
        topic: Repeated::new(topic),
        partition: Repeated::new(partition),
        no_headers: Repeated::new(Some(NO_HEADERS.to_owned())),
        no_control: Repeated::new(None),
    };
    let state = Mutex::new(State { opened: Some(opened), reader, constants });
    Ok(SegmentTable { shared: Arc::new(Shared { place, schema, state }) })
}

/// Bytes of a row, without what keys, values and headers hold.
fn row_bytes(schema: &Schema, prefix: &(Option<String>, Option<String>, Option<i32>)) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let size = |field: &Arc<Field>| {
        let fixed = match field.data_type() {
            DataType::Int64 => 8,
            DataType::Boolean => 1,
            _ => 4,
        };
        fixed
            + match field.name().as_str() {
                "file" => text(&prefix.0),
                "topic" => text(&prefix.1),
                "headers" => NO_HEADERS.len(),
                "compression" => 6,
                "timestamp_type" => 12,
                _ => 0,
            }
    };
    schema.fields().iter().map(size).sum()
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
        let State { opened, reader, constants } = &mut *state;
        loop {
            let Some(source) = opened.as_ref() else { return Ok(None) };
            let piece = match reader {
                Reader::Batches(reader) => reader.next(source).map(|piece| match piece {
                    Piece::Rows(rows) => Piece::Rows(batches(&rows, &self.schema, constants)),
                    Piece::Busy => Piece::Busy,
                    Piece::End => Piece::End,
                }),
                Reader::Records(reader) => reader.next(source).map(|piece| match piece {
                    Piece::Rows(rows) => Piece::Rows(records(rows, &self.schema, constants)),
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
            match py.detach(|| self.shared.next(true)) {
                Ok(batch) => return Ok(batch.map(|batch| TableBatch { batch })),
                Err(Fault::Busy) => py.check_signals()?,
                Err(Fault::Io(error)) => return Err(self.shared.place.error(py, &error)),
                Err(Fault::Arrow(error)) => {
                    return Err(PyRuntimeError::new_err(error.to_string()));
                }
            }
        }
    }

    /// The schema (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.shared.schema)
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
            schema: Arc::clone(&self.shared.schema),
            batches: Some(Batches::Segment(Arc::clone(&self.shared))),
        };
        stream_capsule(py, reader)
    }
}

/// Rows of a table: a record batch for any Arrow library.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct TableBatch {
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
pub(crate) fn segment_stream(table: &str, batches: &Bound<'_, PyAny>) -> PyResult<SegmentStream> {
    tidy(batches.py());
    let schema = Kind::of(table)?.schema(None)?;
    let batches = Mutex::new(Some(batches.try_iter()?.unbind()));
    Ok(SegmentStream { schema, batches })
}

/// What :func:`segment_stream` gives: it can be read once.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct SegmentStream {
    schema: SchemaRef,
    batches: Mutex<Option<Py<PyIterator>>>,
}

#[pymethods]
impl SegmentStream {
    /// The stream (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
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

impl LazyReader {
    fn next_batch(&self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(batches) = &self.batches else { return Ok(None) };
        match batches {
            Batches::Segment(shared) => shared.next(false).map_err(|fault| match fault {
                Fault::Io(error) => ArrowError::IoError(error.to_string(), error),
                Fault::Arrow(error) => error,
                Fault::Busy => ArrowError::InvalidArgumentError("interrupted".to_owned()),
            }),
            Batches::Python(iterator) => Python::attach(|py| {
                let next = iterator.bind(py).clone().next().transpose().and_then(|item| {
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

fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| value_error(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn value_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn batch_of(
    schema: &SchemaRef,
    rows: usize,
    mut column: impl FnMut(&str) -> Result<ArrayRef, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().map(|field| column(field.name()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn records(
    mut rows: RecordRows,
    schema: &SchemaRef,
    constants: &mut Constants,
) -> Result<RecordBatch, ArrowError> {
    let count = rows.offsets.len();
    batch_of(schema, count, |name| {
        let long = |values: &mut Vec<i64>| -> ArrayRef {
            Arc::new(Int64Array::from(std::mem::take(values)))
        };
        Ok(match name {
            "file" => constants.file.text(count),
            "topic" => constants.topic.text(count),
            "partition" => constants.partition.number(count),
            "batch_position" => long(&mut rows.batch_positions),
            "offset" => long(&mut rows.offsets),
            "timestamp" => long(&mut rows.timestamps),
            "key" => binary(&mut rows.keys)?,
            "value" => binary(&mut rows.values)?,
            "sequence" => Arc::new(Int32Array::from(std::mem::take(&mut rows.sequences))),
            "headers" => match rows.headers.take() {
                None => constants.no_headers.text(count),
                Some(text) => {
                    let ends = OffsetBuffer::new(ScalarBuffer::from(text.ends));
                    Arc::new(StringArray::try_new(ends, Buffer::from_vec(text.data), None)?)
                }
            },
            _ => match rows.controls.take() {
                None => constants.no_control.text(count),
                Some(controls) => Arc::new(StringArray::from(controls)),
            },
        })
    })
}

fn binary(values: &mut BinaryValues) -> Result<ArrayRef, ArrowError> {
    let BinaryValues { ends, data, nulls } = values;
    let rows = ends.len().saturating_sub(1);
    let ends = OffsetBuffer::new(ScalarBuffer::from(std::mem::take(ends)));
    let data = Buffer::from_vec(std::mem::take(data));
    Ok(Arc::new(BinaryArray::try_new(ends, data, validity(nulls, rows))?))
}

fn validity(nulls: &mut Nulls, rows: usize) -> Option<NullBuffer> {
    let bits = Buffer::from_vec(nulls.validity.take()?);
    Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
}

fn batches(
    rows: &[(BatchInfo, bool)],
    schema: &SchemaRef,
    constants: &mut Constants,
) -> Result<RecordBatch, ArrowError> {
    fn all<T, A: FromIterator<T> + Array + 'static>(
        rows: &[(BatchInfo, bool)],
        value: impl Fn(&BatchInfo) -> T,
    ) -> ArrayRef {
        Arc::new(rows.iter().map(|(info, _)| value(info)).collect::<A>())
    }
    let count = rows.len();
    let long = |value: fn(&BatchInfo) -> i64| all::<_, Int64Array>(rows, |info| Some(value(info)));
    let int = |value: fn(&BatchInfo) -> i32| all::<_, Int32Array>(rows, |info| Some(value(info)));
    let truth =
        |value: fn(&BatchInfo) -> bool| all::<_, BooleanArray>(rows, |info| Some(value(info)));
    batch_of(schema, count, |name| {
        Ok(match name {
            "file" => constants.file.text(count),
            "topic" => constants.topic.text(count),
            "partition" => constants.partition.number(count),
            "position" => long(|info| info.position as i64),
            "size" => long(|info| info.size as i64),
            "magic" => int(|info| i32::from(info.magic)),
            "base_offset" => long(|info| info.base_offset),
            "last_offset" => long(|info| info.last_offset),
            "record_count" => all::<_, Int32Array>(rows, |info| info.record_count),
            "compression" => all::<_, StringArray>(rows, |info| {
                Some(info.compression().map_or("unknown", Compression::name))
            }),
            "timestamp_type" => {
                all::<_, StringArray>(rows, |info| Some(info.timestamp_type().name()))
            }
            "base_timestamp" => {
                all::<_, Int64Array>(rows, |info| (info.magic >= 2).then_some(info.base_timestamp))
            }
            "max_timestamp" => long(|info| info.max_timestamp),
            "partition_leader_epoch" => int(|info| info.partition_leader_epoch),
            "producer_id" => long(|info| info.producer_id),
            "producer_epoch" => int(|info| i32::from(info.producer_epoch)),
            "base_sequence" => int(|info| info.base_sequence),
            "last_sequence" => int(BatchInfo::last_sequence),
            "is_transactional" => truth(BatchInfo::is_transactional),
            "is_control" => truth(BatchInfo::is_control),
            "delete_horizon_ms" => all::<_, Int64Array>(rows, BatchInfo::delete_horizon_ms),
            "crc" => long(|info| i64::from(info.crc)),
            _ => {
                Arc::new(rows.iter().map(|(_, is_valid)| Some(*is_valid)).collect::<BooleanArray>())
            }
        })
    })
}

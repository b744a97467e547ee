//! The tables `batches` and `records` of a segment as Arrow record batches, without a Python object
//! for any row.

use crate::calls::detached;
use crate::header_json::header_texts;
use crate::place::{Opened, Place};
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, RecordBatchReader, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ottla_audit::rows::columns::{
    BATCH_COLUMNS, BatchValue, PLACE_COLUMNS, PlacePart, RECORD_COLUMNS, RecordPart,
};
use ottla_audit::rows::{
    BatchReader, BatchRow, MAX_PIECE_BYTES, Piece, RecordParts, RecordReader, RecordRows,
    RowBounds, RowRange,
};
use ottla_format::limits::Limits;
use ottla_kernels::copies::BinaryValues;
use ottla_kernels::views::Nulls;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the text of a record without headers.
const NO_HEADERS: &str = "[]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Batches,
    Records,
}

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug)]
enum ColumnSource {
    Place(PlacePart),
    Batch(BatchValue),
    Record(RecordPart),
}

impl ColumnSource {
    fn data_type(self) -> DataType {
        match self {
            Self::Batch(BatchValue::Int64(_))
            | Self::Record(
                RecordPart::BatchPosition | RecordPart::Offset | RecordPart::Timestamp,
            ) => DataType::Int64,
            Self::Place(PlacePart::Partition)
            | Self::Batch(BatchValue::Int32(_))
            | Self::Record(RecordPart::Sequence) => DataType::Int32,
            Self::Batch(BatchValue::Boolean(_)) => DataType::Boolean,
            Self::Record(RecordPart::Key | RecordPart::Value) => DataType::Binary,
            Self::Place(PlacePart::File | PlacePart::Topic)
            | Self::Batch(BatchValue::Text(_))
            | Self::Record(RecordPart::Headers | RecordPart::Control) => DataType::Utf8,
        }
    }

    /// Bytes that a row takes of the column, without what keys, values and headers hold.
    fn row_bytes(self, prefix: &Prefix) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let fixed = match self.data_type() {
            DataType::Int64 => 8,
            DataType::Boolean => 1,
            _ => 4,
        };
        let content = match self {
            Self::Place(PlacePart::File) => text(&prefix.0),
            Self::Place(PlacePart::Topic) => text(&prefix.1),
            Self::Batch(BatchValue::Text(_)) => MAX_NAME_BYTES,
            Self::Record(RecordPart::Headers) => NO_HEADERS.len(),
            _ => 0,
        };
        content.saturating_add(fixed)
    }
}

/// Bytes of the longest name of a codec or timestamp type, about.
const MAX_NAME_BYTES: usize = 12;

/// Values of ``file``, ``topic`` and ``partition``.
type Prefix = (Option<String>, Option<String>, Option<i32>);

impl Table {
    fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "batches" => Ok(Self::Batches),
            "records" => Ok(Self::Records),
            _ => {
                Err(PyValueError::new_err(format!("table is 'batches' or 'records', not '{name}'")))
            }
        }
    }

    fn columns(self) -> Vec<(&'static str, ColumnSource)> {
        let place = PLACE_COLUMNS.iter().map(|c| (c.name, ColumnSource::Place(c.value)));
        match self {
            Self::Batches => {
                let rest = BATCH_COLUMNS.iter().map(|c| (c.name, ColumnSource::Batch(c.value)));
                place.chain(rest).collect()
            }
            Self::Records => {
                let rest = RECORD_COLUMNS.iter().map(|c| (c.name, ColumnSource::Record(c.value)));
                place.chain(rest).collect()
            }
        }
    }

    /// Returns the columns asked for, in the order asked for; all where nothing is asked for.
    fn select(self, wanted: Option<&[String]>) -> PyResult<Selection> {
        let all = self.columns();
        let Some(wanted) = wanted else { return Ok(Selection::new(all)) };
        let chosen = wanted.iter().enumerate().map(|(index, name)| {
            if wanted.iter().take(index).any(|other| other == name) {
                return Err(PyValueError::new_err(format!("column '{name}' is asked for twice")));
            }
            all.iter().find(|(known, _)| known == name).copied().ok_or_else(|| {
                let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                PyValueError::new_err(format!("there is no column '{name}', only {names}"))
            })
        });
        Ok(Selection::new(chosen.collect::<PyResult<_>>()?))
    }
}

/// The columns of a table that are asked for.
struct Selection {
    schema: SchemaRef,
    sources: Vec<ColumnSource>,
}

impl Selection {
    fn new(columns: Vec<(&'static str, ColumnSource)>) -> Self {
        let field =
            |(name, source): &(&str, ColumnSource)| Field::new(*name, source.data_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Self { schema, sources: columns.into_iter().map(|(_, source)| source).collect() }
    }

    fn has(&self, part: RecordPart) -> bool {
        self.sources.iter().any(|s| matches!(s, ColumnSource::Record(has) if *has == part))
    }

    fn batch_of(
        &self,
        rows: usize,
        column: impl FnMut(ColumnSource) -> Result<ArrayRef, ArrowError>,
    ) -> Result<RecordBatch, ArrowError> {
        let columns = self.sources.iter().copied().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
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

impl Constants {
    fn of((file, topic, partition): Prefix) -> Self {
        Self {
            file: Repeated::new(file),
            topic: Repeated::new(topic),
            partition: Repeated::new(partition),
            no_headers: Repeated::new(Some(NO_HEADERS.to_owned())),
            no_control: Repeated::new(None),
        }
    }

    fn place(&mut self, part: PlacePart, count: usize) -> ArrayRef {
        match part {
            PlacePart::File => self.file.text(count),
            PlacePart::Topic => self.topic.text(count),
            PlacePart::Partition => self.partition.number(count),
        }
    }
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
    prefix: Prefix,
    start: u64,
    stop: Option<u64>,
    min_offset: Option<i64>,
    max_offset: Option<i64>,
    min_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    batch_bytes: usize,
) -> PyResult<SegmentTable> {
    tidy(py);
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
        Table::Records => {
            let parts = RecordParts {
                keys: selection.has(RecordPart::Key),
                values: selection.has(RecordPart::Value),
                headers: selection.has(RecordPart::Headers),
            };
            Reader::Records(Box::new(RecordReader::new(range, parts, Limits::default())))
        }
    };
    let constants = Constants::of(prefix);
    let state = Mutex::new(State { opened: Some(opened), reader, constants });
    Ok(SegmentTable { shared: Arc::new(Shared { place, selection, state }) })
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
                    Piece::Rows(rows) => Piece::Rows(batches(&rows, &self.selection, constants)),
                    Piece::Busy => Piece::Busy,
                    Piece::End => Piece::End,
                }),
                Reader::Records(reader) => reader.next(source).map(|piece| match piece {
                    Piece::Rows(rows) => Piece::Rows(records(rows, &self.selection, constants)),
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
                Err(Fault::Arrow(error)) => {
                    return Err(PyRuntimeError::new_err(error.to_string()));
                }
            }
        }
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
    let schema = Table::from_name(table)?.select(None)?.schema;
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

/// The columns of records that depend on no file.
pub(crate) fn record_columns(rows: RecordRows) -> Result<RecordBatch, ArrowError> {
    let columns = RECORD_COLUMNS.iter().map(|c| (c.name, ColumnSource::Record(c.value)));
    records(rows, &Selection::new(columns.collect()), &mut Constants::of((None, None, None)))
}

fn records(
    mut rows: RecordRows,
    selection: &Selection,
    constants: &mut Constants,
) -> Result<RecordBatch, ArrowError> {
    let count = rows.offsets.len();
    selection.batch_of(count, |source| {
        let part = match source {
            ColumnSource::Place(part) => return Ok(constants.place(part, count)),
            ColumnSource::Record(part) => part,
            ColumnSource::Batch(_) => return Err(foreign_column()),
        };
        let long = |values: &mut Vec<i64>| -> ArrayRef {
            Arc::new(Int64Array::from(std::mem::take(values)))
        };
        Ok(match part {
            RecordPart::BatchPosition => long(&mut rows.batch_positions),
            RecordPart::Offset => long(&mut rows.offsets),
            RecordPart::Timestamp => long(&mut rows.timestamps),
            RecordPart::Key => binary(&mut rows.keys)?,
            RecordPart::Value => binary(&mut rows.values)?,
            RecordPart::Sequence => Arc::new(Int32Array::from(std::mem::take(&mut rows.sequences))),
            RecordPart::Headers => match rows.headers.take() {
                None => constants.no_headers.text(count),
                Some(headers) => Arc::new(header_texts(&headers)?),
            },
            RecordPart::Control => match rows.controls.take() {
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
    rows: &[BatchRow],
    selection: &Selection,
    constants: &mut Constants,
) -> Result<RecordBatch, ArrowError> {
    let count = rows.len();
    selection.batch_of(count, |source| {
        let value = match source {
            ColumnSource::Place(part) => return Ok(constants.place(part, count)),
            ColumnSource::Batch(value) => value,
            ColumnSource::Record(_) => return Err(foreign_column()),
        };
        Ok(match value {
            BatchValue::Int64(value) => Arc::new(rows.iter().map(value).collect::<Int64Array>()),
            BatchValue::Int32(value) => Arc::new(rows.iter().map(value).collect::<Int32Array>()),
            BatchValue::Boolean(value) => {
                Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>())
            }
            BatchValue::Text(value) => {
                Arc::new(rows.iter().map(|row| Some(value(row))).collect::<StringArray>())
            }
        })
    })
}

/// A table has the columns of its own rows alone: see [`Table::columns`].
fn foreign_column() -> ArrowError {
    ArrowError::SchemaError("a column of another table".to_owned())
}

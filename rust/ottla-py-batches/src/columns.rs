//! A buffer as columns: numbers for NumPy, views for Arrow.
//!
//! NumPy takes memory by address (`__array_interface__`) and keeps alive the object that provides it;
//! Arrow takes it through the C stream interface. Neither is needed to import the module.

use crate::arrow_stream::{stream_capsule, value_error};
use crate::bytes::{BackedBytes, DETACH_BYTES, SharedBytes};
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::errors::to_python;
use crate::header_structs::{HeaderKeys, header_list, header_structs};
use crate::shared_array::{SharedArray, bytes_of, numbers_of};
use crate::shown::rows_html;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use ottla_format::check::Level;
use ottla_format::columns::{
    HeaderColumns, InflatedColumns, NumberColumns, Places, read_numbers, read_views,
};
use ottla_kernels::Views;
use ottla_kernels::arrow::ViewArrays;
use ottla_kernels::numbers::Row;
use ottla_kernels::views::ViewColumns;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// Reads a buffer of batches as columns, one row per record, as a consumer would receive them.
///
/// Checksums are verified and payloads inflated. Control batches are left out, and so is a last batch
/// that the data truncates. Nothing of an uncompressed batch is copied: rows refer to ``data``. Headers
/// are looked for when they are first asked for.
///
/// Args:
///     data: any bytes-like object below 2 GiB.
///     views: prepare keys and values for Arrow now, and numbers when they are first used.
///     headers: have them among the columns for Arrow, as a list of structs of key and value.
///
/// Raises:
///     RecordBatchError: the first batch that a consumer would refuse.
///
/// >>> import ottla
/// >>> columns = ottla.read_columns(ottla.build_batch([ottla.NewRecord(b"k", b"value")]))
/// >>> columns.offset.tolist(), columns.value_length.tolist()
/// ([0], [5])
#[pyfunction]
#[pyo3(signature = (data, *, views=false, headers=false))]
pub fn read_columns(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    views: bool,
    headers: bool,
) -> PyResult<Columns> {
    let columns = Columns::new(ColumnsSource::Batches(SharedBytes::of(data)?), headers);
    if views {
        columns.batch(py)?;
    } else {
        columns.owner(py)?;
    }
    Ok(columns)
}

fn called<T: Send>(py: Python<'_>, bytes: &[u8], work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if bytes.len() < DETACH_BYTES { attached(py, work) } else { detached(py, work) }
}

fn read_inflated(py: Python<'_>, bytes: &[u8]) -> PyResult<Arc<InflatedNumbers>> {
    let read =
        called(py, bytes, || with_checker(Level::Decode, |checker| read_numbers(checker, bytes)))?;
    let InflatedColumns { columns, inflated } = read.map_err(|error| to_python(py, &error))?;
    Ok(Arc::new(InflatedNumbers { columns, inflated }))
}

/// Numbers, and the inflated payloads they refer to.
pub struct InflatedNumbers {
    /// The numbers.
    pub columns: NumberColumns,
    /// The payloads.
    pub inflated: Vec<u8>,
}

/// The payloads, which Arrow shares.
struct SharedPayloads(Arc<InflatedNumbers>);

impl AsRef<[u8]> for SharedPayloads {
    fn as_ref(&self) -> &[u8] {
        &self.0.inflated
    }
}

/// Where columns are from.
enum ColumnsSource {
    /// Batches, which are read again for another view of them.
    Batches(SharedBytes),
    /// Rows whose bytes are all among the inflated.
    Rows,
}

/// Records as columns, in the order of the log. Positions count the bytes of the data and continue
/// through :attr:`inflated`, which holds the payloads of compressed batches: position ``p`` is
/// ``data[p]`` below ``len(data)``, else ``inflated[p - len(data)]``. Of a partition's columns there are
/// no other data than :attr:`inflated`.
///
/// The headers of row ``i`` are those from ``header_offsets[i]`` to ``header_offsets[i + 1]`` of the
/// arrays ``header_key_position``, ``header_key_length``, ``header_value_position`` and
/// ``header_value_length``, which are made when one is first asked for.
///
/// Two are equal if their rows are, headers included.
#[pyclass(frozen, module = "ottla")]
pub struct Columns {
    source: ColumnsSource,
    numbers: OnceLock<Arc<InflatedNumbers>>,
    headers: OnceLock<Arc<HeaderColumns>>,
    arrow: OnceLock<RecordBatch>,
    shows_headers: bool,
}

impl Columns {
    fn new(source: ColumnsSource, shows_headers: bool) -> Self {
        let (numbers, headers, arrow) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { source, numbers, headers, arrow, shows_headers }
    }

    /// Columns of rows whose bytes are all among the inflated.
    pub fn of_rows(numbers: InflatedNumbers, shows_headers: bool) -> Self {
        let columns = Self::new(ColumnsSource::Rows, shows_headers);
        let _ = columns.numbers.set(Arc::new(numbers));
        columns
    }

    /// The data that they were read from.
    fn data<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match &self.source {
            ColumnsSource::Batches(bytes) => bytes.as_bytes(py),
            ColumnsSource::Rows => &[],
        }
    }

    fn places<'a>(&'a self, py: Python<'a>) -> PyResult<Places<'a>> {
        Ok(Places { data: self.data(py), inflated: &self.owner(py)?.inflated })
    }

    fn headers(&self, py: Python<'_>) -> PyResult<&Arc<HeaderColumns>> {
        if let Some(headers) = self.headers.get() {
            return Ok(headers);
        }
        let (columns, places) = (&self.owner(py)?.columns, self.places(py)?);
        let headers = called(py, places.data, || columns.header_columns(places))?;
        Ok(self.headers.get_or_init(|| Arc::new(headers)))
    }

    fn header_array<'py, T>(
        &self,
        py: Python<'py>,
        column: impl Fn(&HeaderColumns) -> &[T],
        kind: &'static str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let headers = self.headers(py)?;
        SharedArray::of(Arc::<HeaderColumns>::clone(headers), column(headers), kind).array(py)
    }

    fn owner(&self, py: Python<'_>) -> PyResult<&Arc<InflatedNumbers>> {
        if let Some(owner) = self.numbers.get() {
            return Ok(owner);
        }
        let owner = read_inflated(py, self.data(py))?;
        Ok(self.numbers.get_or_init(|| owner))
    }

    fn batch(&self, py: Python<'_>) -> PyResult<&RecordBatch> {
        if let Some(batch) = self.arrow.get() {
            return Ok(batch);
        }
        let mut batch = match &self.source {
            ColumnsSource::Batches(source) => read_arrow(py, source)?,
            ColumnsSource::Rows => {
                arrow_rows(self.owner(py)?).map_err(|error| value_error(&error))?
            }
        };
        if self.shows_headers {
            let (columns, places) = (&self.owner(py)?.columns, self.places(py)?);
            let with_headers = called(py, places.data, || with_headers(&batch, columns, places))?;
            batch = with_headers.map_err(|error| value_error(&error))?;
        }
        Ok(self.arrow.get_or_init(|| batch))
    }

    fn array<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        const KINDS: [&str; 6] = ["<i8", "<i8", "<u4", "<i4", "<u4", "<i4"];
        let owner = Arc::clone(self.owner(py)?);
        let addresses = owner.columns.numbers().column_addresses();
        let found = addresses.get(column).zip(KINDS.get(column));
        let (&address, kind) = found.ok_or_else(|| PyIndexError::new_err(column))?;
        let count = owner.columns.numbers().row_count();
        SharedArray::at(owner, address, count, kind).array(py)
    }
}

#[pymethods]
impl Columns {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.arrow.get() {
            Some(batch) => Ok(batch.num_rows()),
            None => Ok(self.owner(py)?.columns.numbers().row_count()),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let (columns, others) = (&self.owner(py)?.columns, &other.get().owner(py)?.columns);
        let (places, other_places) = (self.places(py)?, other.get().places(py)?);
        let equal = called(py, places.data, || columns.is_equal(places, others, other_places))?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.owner(py)?.columns.numbers().offsets().hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, ColumnsState<'py>)> {
        let (py, columns) = (this.py(), this.get());
        let (numbers, bytes) = match &columns.source {
            ColumnsSource::Batches(source) => (None, source.to_bytes(py)),
            ColumnsSource::Rows => {
                let owner = columns.owner(py)?;
                (Some(number_bytes(py, owner)), PyBytes::new(py, &owner.inflated))
            }
        };
        Ok((this.get_type().getattr("_restore")?, (bytes, numbers, columns.shows_headers)))
    }

    #[staticmethod]
    fn _restore(
        bytes: &Bound<'_, PyBytes>,
        numbers: Option<[Bound<'_, PyBytes>; 6]>,
        shows_headers: bool,
    ) -> PyResult<Self> {
        let py = bytes.py();
        let Some(numbers) = numbers else {
            return read_columns(py, bytes, false, shows_headers);
        };
        let wrong = |fault| PyValueError::new_err(format!("not the columns of records: {fault}"));
        let columns = restored(&numbers, bytes.as_bytes()).map_err(wrong)?;
        let inflated = bytes.as_bytes().to_vec();
        Ok(Self::of_rows(InflatedNumbers { columns, inflated }, shows_headers))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let with = if self.shows_headers { " with headers" } else { "" };
        Ok(format!("<Columns of {} records{with}>", self.__len__(py)?))
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch(py)?;
        let rows: usize = py.import("ottla.notebook")?.getattr("MAX_ROWS")?.extract()?;
        let shown = batch.slice(0, batch.num_rows().min(rows));
        let numbers = |column: usize| shown.column(column).as_primitive::<Int64Type>().iter();
        let parts = |column: usize| {
            let parts: &BinaryViewArray = shown.column(column).as_binary_view();
            parts.iter().map(|part| part.map(|part| PyBytes::new(py, part)))
        };
        let rows = numbers(0).zip(numbers(1)).zip(parts(2)).zip(parts(3));
        let rows = rows.map(|(((offset, timestamp), key), value)| (offset, timestamp, key, value));
        let names = ["offset", "timestamp", "key", "value", "headers"];
        if !self.shows_headers {
            return rows_html(py, "Columns", &names[..4], rows.collect(), batch.num_rows());
        }
        let bytes = |bytes| PyBytes::new(py, bytes);
        let headers = self.owner(py)?.columns.header_rows(self.places(py)?);
        let headers = headers.map(|row| {
            let pairs = row.iter().map(|(key, value)| (bytes(key), value.map(bytes)));
            pairs.collect::<Vec<_>>()
        });
        let rows = rows.zip(headers).map(|(row, headers)| (row.0, row.1, row.2, row.3, headers));
        rows_html(py, "Columns", &names, rows.collect(), batch.num_rows())
    }

    /// Offsets in the log, int64.
    #[getter]
    fn offset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 0)
    }

    /// Timestamps in ms since 1970, int64; with LogAppendTime the batch's, with magic 0 −1.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 1)
    }

    /// Where keys begin, uint32.
    #[getter]
    fn key_position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 2)
    }

    /// Bytes of keys, int32, −1 for null.
    #[getter]
    fn key_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 3)
    }

    /// Where values begin, uint32.
    #[getter]
    fn value_position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 4)
    }

    /// Bytes of values, int32, −1 for null.
    #[getter]
    fn value_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, 5)
    }

    /// The six arrays: offset, timestamp, key_position, key_length, value_position, value_length.
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let arrays: Vec<_> =
            (0..6).map(|column| self.array(py, column)).collect::<PyResult<_>>()?;
        PyTuple::new(py, arrays)
    }

    /// How many headers each row has, int32.
    #[getter]
    fn header_count<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.counts, "<i4")
    }

    /// Where the headers of each row begin among all, and the end of the last, int32, of one more than
    /// there are rows.
    #[getter]
    fn header_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.offsets, "<i4")
    }

    /// Where keys of headers begin, uint32, one a header as the next three.
    #[getter]
    fn header_key_position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.key_positions, "<u4")
    }

    /// Bytes of keys of headers, int32.
    #[getter]
    fn header_key_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.key_lengths, "<i4")
    }

    /// Where values of headers begin, uint32.
    #[getter]
    fn header_value_position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.value_positions, "<u4")
    }

    /// Bytes of values of headers, int32, −1 for null.
    #[getter]
    fn header_value_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.header_array(py, |headers| &headers.value_lengths, "<i4")
    }

    /// Payloads of compressed batches, one behind the other.
    #[getter]
    fn inflated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.owner(py)?.inflated))
    }

    /// The columns offset, timestamp (int64), key and value (binary view), and where they were asked for
    /// headers (a list of structs of binary key and value), through Arrow's C stream interface:
    /// ``pyarrow.table(columns)``, ``polars.DataFrame(columns)``, DuckDB.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested schema; consumers then cast.
        drop(requested_schema);
        stream_capsule(py, self.batch(py)?.clone())
    }
}

fn read_arrow(py: Python<'_>, source: &SharedBytes) -> PyResult<RecordBatch> {
    let bytes = source.as_bytes(py);
    let read = called(py, bytes, || {
        let read = with_checker(Level::Decode, |checker| read_views(checker, bytes))?;
        Ok((read.columns.finish(), read.inflated))
    })?;
    let (columns, inflated) = read.map_err(|error| to_python(py, &error))?;
    arrow_batch(&columns, source.backed(py), inflated).map_err(|error| value_error(&error))
}

/// What columns of rows are pickled as.
type ColumnsState<'py> = (Bound<'py, PyBytes>, Option<[Bound<'py, PyBytes>; 6]>, bool);

fn number_bytes<'py>(py: Python<'py>, owner: &InflatedNumbers) -> [Bound<'py, PyBytes>; 6] {
    let numbers = owner.columns.numbers();
    [
        bytes_of(py, numbers.offsets(), i64::to_le_bytes),
        bytes_of(py, numbers.timestamps(), i64::to_le_bytes),
        bytes_of(py, numbers.key_positions(), u32::to_le_bytes),
        bytes_of(py, numbers.key_lengths(), i32::to_le_bytes),
        bytes_of(py, numbers.value_positions(), u32::to_le_bytes),
        bytes_of(py, numbers.value_lengths(), i32::to_le_bytes),
    ]
}

fn restored(
    numbers: &[Bound<'_, PyBytes>; 6],
    inflated: &[u8],
) -> Result<NumberColumns, &'static str> {
    let [offset, timestamp, key_position, key_length, value_position, value_length] = numbers;
    let keys = (
        numbers_of(key_position, u32::from_le_bytes)?,
        numbers_of(key_length, i32::from_le_bytes)?,
    );
    let values = (
        numbers_of(value_position, u32::from_le_bytes)?,
        numbers_of(value_length, i32::from_le_bytes)?,
    );
    let (offsets, timestamps) =
        (numbers_of(offset, i64::from_le_bytes)?, numbers_of(timestamp, i64::from_le_bytes)?);
    let count = offsets.len();
    let lengths = [timestamps.len(), keys.0.len(), keys.1.len(), values.0.len(), values.1.len()];
    if lengths != [count; 5] {
        return Err("columns of different lengths");
    }
    let keys = keys.0.into_iter().zip(keys.1);
    let values = values.0.into_iter().zip(values.1);
    let rows = offsets.into_iter().zip(timestamps).zip(keys).zip(values);
    let columns = NumberColumns::of_rows(rows.map(|(((offset, timestamp), key), value)| Row {
        offset,
        timestamp,
        key_position: key.0,
        key_length: key.1,
        value_position: value.0,
        value_length: value.1,
    }));
    let places = Places { data: &[], inflated };
    if columns.is_within(places) { Ok(columns) } else { Err("positions outside the data") }
}

/// Rows whose bytes are all among the inflated.
fn arrow_rows(owner: &Arc<InflatedNumbers>) -> Result<RecordBatch, ArrowError> {
    let count = owner.columns.numbers().row_count();
    let mut views = Views::new(count);
    for row in (0..count).filter_map(|row| owner.columns.row(row)) {
        views.push(&owner.inflated, row);
    }
    let bytes = Bytes::from_owner(SharedPayloads(Arc::clone(owner)));
    batch_of(&views.finish(), &[Buffer::from(bytes)])
}

/// Adds the column of headers.
fn with_headers(
    batch: &RecordBatch,
    columns: &NumberColumns,
    places: Places<'_>,
) -> Result<RecordBatch, ArrowError> {
    let kind = HeaderKeys::Bytes;
    let rows = columns.header_rows(places);
    let headers = header_structs(Some(rows), batch.num_rows(), false, kind)?;
    let field = Field::new("headers", header_list(kind), false);
    let schema = batch.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain([Arc::new(field)]).collect();
    let columns = batch.columns().iter().cloned().chain([headers]).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn arrow_batch(
    columns: &ViewColumns,
    source: BackedBytes,
    inflated: Vec<u8>,
) -> Result<RecordBatch, ArrowError> {
    let mut buffers = vec![Buffer::from(Bytes::from_owner(source))];
    if !inflated.is_empty() {
        buffers.push(Buffer::from_vec(inflated));
    }
    batch_of(columns, &buffers)
}

fn batch_of(columns: &ViewColumns, buffers: &[Buffer]) -> Result<RecordBatch, ArrowError> {
    let arrays = ViewArrays::new(columns, buffers)
        .ok_or_else(|| ArrowError::InvalidArgumentError("a view outside its buffers".into()))?;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrays.offsets),
        Arc::new(arrays.timestamps),
        Arc::new(arrays.keys),
        Arc::new(arrays.values),
    ];
    RecordBatch::try_new(schema(), columns)
}

fn schema() -> SchemaRef {
    static SCHEMA: OnceLock<SchemaRef> = OnceLock::new();
    Arc::clone(SCHEMA.get_or_init(|| {
        Arc::new(Schema::new(vec![
            Field::new("offset", DataType::Int64, false),
            Field::new("timestamp", DataType::Int64, false),
            Field::new("key", DataType::BinaryView, true),
            Field::new("value", DataType::BinaryView, true),
        ]))
    }))
}

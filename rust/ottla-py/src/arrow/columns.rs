//! A buffer as columns: numbers for NumPy, views for Arrow.
//!
//! NumPy takes memory by address (`__array_interface__`) and keeps alive the object that provides it;
//! Arrow takes it through the C stream interface. Neither is needed to import the module.

use crate::arrow::shared::SharedArray;
use crate::arrow::stream::stream_capsule;
use crate::bytes::{BackedBytes, DETACH_BYTES, SharedBytes};
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::errors::to_python;
use crate::shown::rows_html;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use ottla_format::check::Level;
use ottla_format::columns::{InflatedColumns, read_numbers, read_views};
use ottla_kernels::Numbers;
use ottla_kernels::arrow::ViewArrays;
use ottla_kernels::views::ViewColumns;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// Reads a buffer of batches as columns, one row per record, as a consumer would receive them.
///
/// Checksums are verified and payloads inflated. Control batches are left out, and so is a last batch
/// that the data truncates. Nothing of an uncompressed batch is copied: rows refer to ``data``.
///
/// Args:
///     data: any bytes-like object below 2 GiB.
///     views: prepare keys and values for Arrow now, and numbers when they are first used.
///
/// Raises:
///     RecordBatchError: the first batch that a consumer would refuse.
///
/// >>> import ottla
/// >>> columns = ottla.read_columns(ottla.build_batch([ottla.NewRecord(b"k", b"value")]))
/// >>> columns.offset.tolist(), columns.value_length.tolist()
/// ([0], [5])
#[pyfunction]
#[pyo3(signature = (data, *, views=false))]
pub(crate) fn read_columns(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    views: bool,
) -> PyResult<Columns> {
    let source = SharedBytes::of(data)?;
    let bytes = source.as_bytes(py);
    let numbers = OnceLock::new();
    let arrow = OnceLock::new();
    if views {
        let _ = arrow.set(read_arrow(py, &source)?);
    } else {
        let _ = numbers.set(read_inflated(py, bytes)?);
    }
    Ok(Columns { source, numbers, arrow })
}

fn called<T: Send>(py: Python<'_>, bytes: &[u8], work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if bytes.len() < DETACH_BYTES { attached(py, work) } else { detached(py, work) }
}

fn read_inflated(py: Python<'_>, bytes: &[u8]) -> PyResult<Arc<InflatedNumbers>> {
    let read =
        called(py, bytes, || with_checker(Level::Decode, |checker| read_numbers(checker, bytes)))?;
    let InflatedColumns { columns, inflated } = read.map_err(|error| to_python(py, &error))?;
    Ok(Arc::new(InflatedNumbers { numbers: columns, inflated }))
}

/// Numbers, and the inflated payloads they refer to.
struct InflatedNumbers {
    numbers: Numbers,
    inflated: Vec<u8>,
}

/// Records as columns, in the order of the log. Positions count the bytes of the data and continue
/// through :attr:`inflated`, which holds the payloads of compressed batches: position ``p`` is
/// ``data[p]`` below ``len(data)``, else ``inflated[p - len(data)]``. Two are equal if their rows are.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct Columns {
    source: SharedBytes,
    numbers: OnceLock<Arc<InflatedNumbers>>,
    arrow: OnceLock<RecordBatch>,
}

impl Columns {
    fn owner(&self, py: Python<'_>) -> PyResult<&Arc<InflatedNumbers>> {
        if let Some(owner) = self.numbers.get() {
            return Ok(owner);
        }
        let owner = read_inflated(py, self.source.as_bytes(py))?;
        Ok(self.numbers.get_or_init(|| owner))
    }

    fn batch(&self, py: Python<'_>) -> PyResult<&RecordBatch> {
        if let Some(batch) = self.arrow.get() {
            return Ok(batch);
        }
        let batch = read_arrow(py, &self.source)?;
        Ok(self.arrow.get_or_init(|| batch))
    }

    fn array<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        const KINDS: [&str; 6] = ["<i8", "<i8", "<u4", "<i4", "<u4", "<i4"];
        let owner = Arc::clone(self.owner(py)?);
        let addresses = owner.numbers.column_addresses();
        let found = addresses.get(column).zip(KINDS.get(column));
        let (&address, kind) = found.ok_or_else(|| PyIndexError::new_err(column))?;
        let count = owner.numbers.row_count();
        SharedArray::at(owner, address, count, kind).array(py)
    }
}

#[pymethods]
impl Columns {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.arrow.get() {
            Some(batch) => Ok(batch.num_rows()),
            None => Ok(self.owner(py)?.numbers.row_count()),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let equal = self.batch(py)? == other.get().batch(py)?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.batch(py)?.column(0).as_primitive::<Int64Type>().values().hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = this.py().import("ottla")?.getattr("read_columns")?;
        Ok((read, (this.get().source.to_bytes(this.py()),)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Columns of {} records>", self.__len__(py)?))
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
        let names = ["offset", "timestamp", "key", "value"];
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

    /// Payloads of compressed batches, one behind the other.
    #[getter]
    fn inflated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.owner(py)?.inflated))
    }

    /// The columns offset, timestamp (int64), key and value (binary view) through Arrow's C stream
    /// interface: ``pyarrow.table(columns)``, ``polars.DataFrame(columns)``, DuckDB.
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
    arrow_batch(&columns, source.backed(py), inflated)
        .map_err(|error| PyValueError::new_err(error.to_string()))
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
    let arrays = ViewArrays::new(columns, &buffers)
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

//! The records of a partition as record batches of Arrow, and as columns of NumPy.

use crate::row_arrays::binary;
use crate::segment_table::{SegmentStream, TableBatch, schema_capsule};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use ottla_audit::rows::headers::RecordHeaders;
use ottla_audit::rows::{BufferedRecords, MAX_PIECE_BYTES, RecordParts, RecordRows};
use ottla_format::columns::InflatedColumns;
use ottla_kernels::copies::Room;
use ottla_py_batches::arrow_stream::value_error;
use ottla_py_batches::calls::detached;
use ottla_py_batches::columns::{Columns, InflatedNumbers};
use ottla_py_batches::header_structs::{HeaderKeys, header_list, header_structs};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a record batch where nobody asks for more.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Bytes of a row beside key, value and headers: numbers, ends and lengths.
const ROW_BYTES: usize = 32;

/// Adds the next records to columns until these are full; none are added at the end.
pub(crate) type NextRows =
    Box<dyn Fn(Python<'_>, &mut BufferedRecords) -> PyResult<()> + Send + Sync>;

/// Iterator over record batches of a partition, and an Arrow stream of them; see
/// :meth:`PartitionRecords.batches`.
#[pyclass(frozen, module = "ottla._engine")]
pub struct PartitionBatches {
    next_rows: NextRows,
    is_raw: bool,
    batch_bytes: usize,
    /// What the last one took.
    room: Mutex<Room>,
}

impl PartitionBatches {
    pub(crate) fn of(next_rows: NextRows, is_raw: bool, batch_bytes: usize) -> PyResult<Self> {
        if !(1..=MAX_PIECE_BYTES).contains(&batch_bytes) {
            let message = format!("batch_bytes is {batch_bytes}, expected 1 to {MAX_PIECE_BYTES}");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self { next_rows, is_raw, batch_bytes, room: Mutex::new(Room::default()) })
    }

    /// The records of the next one.
    fn rows(&self, py: Python<'_>) -> PyResult<Option<RecordRows>> {
        let parts = RecordParts { keys: true, values: true, headers: true };
        let room = *self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = BufferedRecords::new(parts, self.batch_bytes, ROW_BYTES, room);
        (self.next_rows)(py, &mut rows)?;
        if rows.row_count() == 0 {
            return Ok(None);
        }
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = rows.room();
        Ok(Some(rows.finish()))
    }

    fn schema(&self) -> SchemaRef {
        let times = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let (timestamp, keys) = if self.is_raw {
            (Field::new("timestamp", DataType::Int64, false), HeaderKeys::Bytes)
        } else {
            (Field::new("timestamp", times, true), HeaderKeys::Text)
        };
        Arc::new(Schema::new(vec![
            Field::new("offset", DataType::Int64, false),
            timestamp,
            Field::new("key", DataType::Binary, true),
            Field::new("value", DataType::Binary, true),
            Field::new("headers", header_list(keys), false),
        ]))
    }

    fn batch(&self, mut rows: RecordRows) -> Result<RecordBatch, ArrowError> {
        let count = rows.offsets.len();
        let times = std::mem::take(&mut rows.timestamps);
        let (timestamps, keys): (ArrayRef, _) = if self.is_raw {
            (Arc::new(Int64Array::from(times)), HeaderKeys::Bytes)
        } else {
            (timestamps(times)?, HeaderKeys::Text)
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(std::mem::take(&mut rows.offsets))),
            timestamps,
            binary(&mut rows.keys)?,
            binary(&mut rows.values)?,
            header_structs(
                rows.headers.take().as_ref().map(RecordHeaders::iter),
                count,
                false,
                keys,
            )?,
        ];
        RecordBatch::try_new(self.schema(), columns)
    }
}

/// Iterator over the records of a partition as columns of NumPy; see :meth:`PartitionRecords.columns`.
#[pyclass(frozen, module = "ottla._engine")]
pub struct PartitionColumns {
    batches: PartitionBatches,
    shows_headers: bool,
}

impl PartitionColumns {
    pub(crate) fn of(
        next_rows: NextRows,
        shows_headers: bool,
        batch_bytes: usize,
    ) -> PyResult<Self> {
        let batches = PartitionBatches::of(next_rows, true, batch_bytes)?;
        Ok(Self { batches, shows_headers })
    }
}

#[pymethods]
impl PartitionColumns {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Columns>> {
        let Some(rows) = self.batches.rows(py)? else { return Ok(None) };
        let InflatedColumns { columns, inflated } = detached(py, || rows.to_numbers())?;
        Ok(Some(Columns::of_rows(InflatedNumbers { columns, inflated }, self.shows_headers)))
    }
}

/// Times of the zone UTC; null for -1, which says that a record has none.
fn timestamps(times: Vec<i64>) -> Result<ArrayRef, ArrowError> {
    let has_time = |time: &i64| *time != -1;
    let nulls = (!times.iter().all(has_time)).then(|| times.iter().map(has_time).collect());
    let nulls: Option<NullBuffer> = nulls;
    let array = TimestampMillisecondArray::try_new(ScalarBuffer::from(times), nulls)?;
    Ok(Arc::new(array.with_timezone("UTC")))
}

#[pymethods]
impl PartitionBatches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<TableBatch>> {
        let Some(rows) = self.rows(py)? else { return Ok(None) };
        let batch = self.batch(rows).map_err(|error| value_error(&error))?;
        Ok(Some(TableBatch::new(batch)))
    }

    /// The schema (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }

    /// The record batches that are left, read while the stream is (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        this: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = PyIterator::from_object(this.as_any())?;
        SegmentStream::over(this.get().schema(), batches)
            .__arrow_c_stream__(this.py(), requested_schema)
    }
}

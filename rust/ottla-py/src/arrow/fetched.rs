//! Fetched records of several partitions as columns, for NumPy and for Arrow.

use crate::arrow::shared::SharedArray;
use crate::arrow::stream::stream_capsule;
use crate::calls::detached;
use crate::fetched::{Answer, FetchedRecords};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeBinaryArray, RecordBatch, StringArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use ottla_format::fetched::{JoinedColumns, JoinedParts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Puts the records of partitions into one table, in the order of the parts.
///
/// Args:
///     parts: topic, partition and :class:`FetchedRecords` of each.
///
/// >>> from ottla.records import NewRecord, build_batch, fetched, join_columns
/// >>> found = fetched(build_batch([NewRecord(value=b"a"), NewRecord(value=b"bc")]), 0)
/// >>> columns = join_columns([("events", 7, found)])
/// >>> columns.partition.tolist(), columns.offset.tolist()
/// ([7, 7], [0, 1])
/// >>> offsets, data = columns.value
/// >>> offsets.tolist(), data.tobytes()
/// ([0, 1, 3], b'abc')
#[pyfunction]
pub(crate) fn join_columns(
    py: Python<'_>,
    parts: Vec<(String, i32, Bound<'_, FetchedRecords>)>,
) -> PyResult<FetchedColumns> {
    let mut topics = Vec::new();
    let mut indexes = HashMap::new();
    let mut placed: Vec<(i32, i32, Arc<Answer>, Range<usize>)> = Vec::with_capacity(parts.len());
    for (topic, partition, part) in parts {
        let index = *indexes.entry(topic).or_insert_with_key(|topic| {
            topics.push(topic.clone());
            topics.len().saturating_sub(1) as i32
        });
        let part = part.get();
        placed.push((index, partition, Arc::clone(&part.answer), part.range.clone()));
    }
    let joined = detached(py, || {
        let mut columns = JoinedColumns::default();
        columns.reserve(placed.iter().map(|(.., range)| range.len()).sum());
        for (topic, partition, answer, range) in placed {
            let place = (topic, partition);
            columns.add(place, &answer.records, &answer.data, range);
        }
        columns
    })?;
    Ok(FetchedColumns { columns: Arc::new(Buffers::of(joined, topics)) })
}

/// Columns whose memory NumPy and Arrow share.
struct Buffers {
    topics: Vec<String>,
    topic: ScalarBuffer<i32>,
    partition: ScalarBuffer<i32>,
    offset: ScalarBuffer<i64>,
    timestamp: ScalarBuffer<i64>,
    key: ByteParts,
    value: ByteParts,
}

/// Keys or values.
struct ByteParts {
    offsets: ScalarBuffer<i64>,
    data: Buffer,
    valid: Vec<bool>,
    null_count: usize,
}

impl ByteParts {
    fn of(parts: JoinedParts) -> Self {
        Self {
            offsets: parts.offsets.into(),
            data: Buffer::from_vec(parts.data),
            valid: parts.valid,
            null_count: parts.null_count,
        }
    }

    fn array(&self) -> Result<ArrayRef, ArrowError> {
        let nulls = (self.null_count > 0).then(|| NullBuffer::from(self.valid.as_slice()));
        let offsets = OffsetBuffer::new(self.offsets.clone());
        Ok(Arc::new(LargeBinaryArray::try_new(offsets, self.data.clone(), nulls)?))
    }
}

impl Buffers {
    fn of(joined: JoinedColumns, topics: Vec<String>) -> Self {
        Self {
            topics,
            topic: joined.topic.into(),
            partition: joined.partition.into(),
            offset: joined.offset.into(),
            timestamp: joined.timestamp.into(),
            key: ByteParts::of(joined.key),
            value: ByteParts::of(joined.value),
        }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let names = StringArray::from_iter_values(&self.topics);
        let topic = Int32Array::new(self.topic.clone(), None);
        let topic = DictionaryArray::<Int32Type>::try_new(topic, Arc::new(names))?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(topic),
            Arc::new(Int32Array::new(self.partition.clone(), None)),
            Arc::new(Int64Array::new(self.offset.clone(), None)),
            Arc::new(Int64Array::new(self.timestamp.clone(), None)),
            self.key.array()?,
            self.value.array()?,
        ];
        let topic = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let schema = Schema::new(vec![
            Field::new("topic", topic, false),
            Field::new("partition", DataType::Int32, false),
            Field::new("offset", DataType::Int64, false),
            Field::new("timestamp_ms", DataType::Int64, false),
            Field::new("key", DataType::LargeBinary, true),
            Field::new("value", DataType::LargeBinary, true),
        ]);
        RecordBatch::try_new(Arc::new(schema), columns)
    }
}

/// Records as columns, one row a record.
///
/// Keys and values are columns as :func:`ottla.build_batch_from_columns` takes them: offsets and data,
/// and validity where there are nulls. NumPy and Arrow share the memory.
#[pyclass(frozen, module = "ottla.records")]
pub(crate) struct FetchedColumns {
    columns: Arc<Buffers>,
}

impl FetchedColumns {
    fn parts<'py>(&self, py: Python<'py>, parts: &ByteParts) -> PyResult<Bound<'py, PyTuple>> {
        let offsets = self.shared(&parts.offsets, "<i8").array(py)?;
        let data = self.shared(&parts.data, "|u1").array(py)?;
        if parts.null_count == 0 {
            return PyTuple::new(py, [offsets, data]);
        }
        let valid = self.shared(&parts.valid, "|b1").array(py)?;
        PyTuple::new(py, [offsets, data, valid])
    }

    fn shared<T>(&self, numbers: &[T], kind: &'static str) -> SharedArray {
        SharedArray::of(Arc::<Buffers>::clone(&self.columns), numbers, kind)
    }
}

#[pymethods]
impl FetchedColumns {
    fn __len__(&self) -> usize {
        self.columns.offset.len()
    }

    /// The names of topics.
    #[getter]
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.columns.topics)
    }

    /// The place of each row's topic in :attr:`topics`, int32.
    #[getter]
    fn topic_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shared(&self.columns.topic, "<i4").array(py)
    }

    /// Partitions, int32.
    #[getter]
    fn partition<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shared(&self.columns.partition, "<i4").array(py)
    }

    /// Offsets in the log, int64.
    #[getter]
    fn offset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shared(&self.columns.offset, "<i8").array(py)
    }

    /// Timestamps in ms since 1970, int64; -1 for none.
    #[getter]
    fn timestamp_ms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shared(&self.columns.timestamp, "<i8").array(py)
    }

    /// Keys: int64 offsets and uint8 data, and bool validity where there are nulls.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.parts(py, &self.columns.key)
    }

    /// Values: int64 offsets and uint8 data, and bool validity where there are nulls.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.parts(py, &self.columns.value)
    }

    /// The columns topic, partition, offset, timestamp_ms, key and value through Arrow's C stream
    /// interface: ``pyarrow.table(columns)``, ``polars.DataFrame(columns)``, DuckDB.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested schema; consumers then cast.
        drop(requested_schema);
        let batch = self.columns.batch();
        stream_capsule(py, batch.map_err(|error| PyValueError::new_err(error.to_string()))?)
    }
}

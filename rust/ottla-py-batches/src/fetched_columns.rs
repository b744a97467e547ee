//! Fetched records of several partitions as columns, for NumPy and for Arrow.

use crate::arrow_stream::stream_capsule;
use crate::calls::detached;
use crate::fetched::{Answer, FetchedRecords};
use crate::shared_array::{SharedArray, bytes_of, numbers_of};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeBinaryArray, RecordBatch, StringArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use ottla_format::fetched::{JoinedColumns, JoinedParts};
use ottla_log::sorting::sort_by;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
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
pub fn join_columns(
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

/// Topics, partitions, offsets and timestamps as bytes, little-endian.
type NumberBytes<'py> = [Bound<'py, PyBytes>; 4];

/// Offsets, data, and a byte a row that is 1 where it is not null.
type PartBytes<'py> = [Bound<'py, PyBytes>; 3];

/// What columns are pickled as.
type FetchedState<'py> = (Vec<String>, NumberBytes<'py>, PartBytes<'py>, PartBytes<'py>);

fn restored(
    topics: &[String],
    [topic, partition, offset, timestamp]: &NumberBytes<'_>,
    parts: [&PartBytes<'_>; 2],
) -> Result<JoinedColumns, &'static str> {
    let [key, value] = parts.map(restored_parts);
    let columns = JoinedColumns {
        topic: numbers_of(topic, i32::from_le_bytes)?,
        partition: numbers_of(partition, i32::from_le_bytes)?,
        offset: numbers_of(offset, i64::from_le_bytes)?,
        timestamp: numbers_of(timestamp, i64::from_le_bytes)?,
        key: key?,
        value: value?,
    };
    columns.check(topics.len())?;
    Ok(columns)
}

fn restored_parts([offsets, data, valid]: &PartBytes<'_>) -> Result<JoinedParts, &'static str> {
    let valid = valid.as_bytes().iter().map(|&byte| match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err("a truth value that is none"),
    });
    let valid = valid.collect::<Result<Vec<_>, _>>()?;
    Ok(JoinedParts {
        offsets: numbers_of(offsets, i64::from_le_bytes)?,
        data: data.as_bytes().to_vec(),
        null_count: valid.iter().filter(|&&valid| !valid).count(),
        valid,
    })
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

    fn state<'py>(&self, py: Python<'py>) -> PartBytes<'py> {
        [
            bytes_of(py, &self.offsets, i64::to_le_bytes),
            PyBytes::new(py, &self.data),
            bytes_of(py, &self.valid, |valid| [u8::from(valid)]),
        ]
    }

    fn array(&self) -> Result<ArrayRef, ArrowError> {
        let nulls = (self.null_count > 0).then(|| NullBuffer::from(self.valid.as_slice()));
        let offsets = OffsetBuffer::new(self.offsets.clone());
        Ok(Arc::new(LargeBinaryArray::try_new(offsets, self.data.clone(), nulls)?))
    }
}

impl PartialEq for ByteParts {
    fn eq(&self, other: &Self) -> bool {
        (&self.offsets, &self.data, &self.valid) == (&other.offsets, &other.data, &other.valid)
    }
}

impl PartialEq for Buffers {
    /// Whether the rows are equal: a topic without a row is none of them.
    fn eq(&self, other: &Self) -> bool {
        let numbers = |columns: &Self| {
            (columns.partition.clone(), columns.offset.clone(), columns.timestamp.clone())
        };
        numbers(self) == numbers(other)
            && self.topic_names().eq(other.topic_names())
            && self.key == other.key
            && self.value == other.value
    }
}

impl Buffers {
    fn topic_names(&self) -> impl Iterator<Item = Option<&String>> {
        self.topic.iter().map(|&topic| self.topics.get(usize::try_from(topic).ok()?))
    }

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

    fn state<'py>(&self, py: Python<'py>) -> FetchedState<'py> {
        let numbers = [
            bytes_of(py, &self.topic, i32::to_le_bytes),
            bytes_of(py, &self.partition, i32::to_le_bytes),
            bytes_of(py, &self.offset, i64::to_le_bytes),
            bytes_of(py, &self.timestamp, i64::to_le_bytes),
        ];
        (self.topics.clone(), numbers, self.key.state(py), self.value.state(py))
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
/// and validity where there are nulls. NumPy and Arrow share the memory. Two are equal if their rows are.
#[pyclass(frozen, module = "ottla.records")]
pub struct FetchedColumns {
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

    fn __eq__(&self, other: &Self) -> bool {
        self.columns == other.columns
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.columns.offset.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, FetchedState<'py>)> {
        let restore = this.get_type().getattr("_restore")?;
        Ok((restore, this.get().columns.state(this.py())))
    }

    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes them for this call")]
    fn _restore(
        topics: Vec<String>,
        numbers: NumberBytes<'_>,
        key: PartBytes<'_>,
        value: PartBytes<'_>,
    ) -> PyResult<Self> {
        let columns = restored(&topics, &numbers, [&key, &value]).map_err(|fault| {
            PyValueError::new_err(format!("not the columns of fetched records: {fault}"))
        })?;
        Ok(Self { columns: Arc::new(Buffers::of(columns, topics)) })
    }

    fn __repr__(&self) -> String {
        let mut topics: Vec<_> = self.columns.topic.to_vec();
        sort_by(&mut topics, Ord::cmp);
        topics.dedup();
        format!("<FetchedColumns of {} records of {} topics>", self.__len__(), topics.len())
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

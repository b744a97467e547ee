//! A record as a consumer hands it to its user.

use crate::integers::int;
use crate::shown::fields_html;
use ottla_format::attributes::TimestampType;
use ottla_format::fetched::FetchedRow;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A record of a partition.
///
/// Attributes:
///     topic, partition, offset: where it is.
///     timestamp_ms: ms since 1970; -1 for none.
///     timestamp_type: ``create_time``, ``log_append_time``, or ``no_timestamp_type`` of magic 0.
///     key, value: bytes, or what was made of them; ``None`` for null.
///     headers: pairs of key and value; a key that is not UTF-8 has replacement characters.
///     leader_epoch: of the leader that appended it; -1 where it is not known.
#[pyclass(frozen, module = "ottla.records", get_all)]
pub struct ConsumerRecord {
    topic: Py<PyString>,
    partition: i32,
    offset: i64,
    timestamp_ms: i64,
    timestamp_type: &'static str,
    key: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
    headers: Py<PyTuple>,
    leader_epoch: i32,
}

#[pymethods]
impl ConsumerRecord {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&str, &str, &str) = ("topic", "partition", "offset");

    #[new]
    #[pyo3(signature = (
        topic, partition, offset, timestamp_ms=-1, timestamp_type="create_time", key=None, value=None,
        headers=None, leader_epoch=-1
    ))]
    #[expect(clippy::too_many_arguments, reason = "one per field")]
    fn new(
        topic: Py<PyString>,
        #[pyo3(from_py_with = int)] partition: i32,
        #[pyo3(from_py_with = int)] offset: i64,
        #[pyo3(from_py_with = int)] timestamp_ms: i64,
        timestamp_type: &str,
        key: Option<Py<PyAny>>,
        value: Option<Py<PyAny>>,
        headers: Option<Bound<'_, PyAny>>,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] leader_epoch: i32,
    ) -> PyResult<Self> {
        let [none, create, append] =
            [TimestampType::None, TimestampType::CreateTime, TimestampType::LogAppendTime]
                .map(TimestampType::name);
        let known = [none, create, append].into_iter().find(|name| *name == timestamp_type);
        let timestamp_type = known.ok_or_else(|| {
            let expected = format!("expected {none}, {create} or {append}");
            PyValueError::new_err(format!("timestamp_type is '{timestamp_type}', {expected}"))
        })?;
        let headers = match headers {
            None => PyTuple::empty(py),
            Some(headers) => headers
                .extract::<Vec<Bound<'_, PyAny>>>()
                .and_then(|headers| PyTuple::new(py, headers))?,
        };
        let headers = headers.unbind();
        Ok(Self {
            topic,
            partition,
            offset,
            timestamp_ms,
            timestamp_type,
            key,
            value,
            headers,
            leader_epoch,
        })
    }

    /// Returns the record with another key and value.
    fn with_parts(&self, py: Python<'_>, key: Option<Py<PyAny>>, value: Option<Py<PyAny>>) -> Self {
        Self {
            topic: self.topic.clone_ref(py),
            key,
            value,
            headers: self.headers.clone_ref(py),
            ..*self
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let equal = self.fields(py)?.eq(other.get().fields(py)?)?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        (self.topic.bind(py).to_str()?, self.partition, self.offset).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((this.get_type().into_any(), this.get().fields(this.py())?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const NAMES: [&str; 9] = [
            "topic",
            "partition",
            "offset",
            "timestamp_ms",
            "timestamp_type",
            "key",
            "value",
            "headers",
            "leader_epoch",
        ];
        let mut fields = Vec::with_capacity(NAMES.len());
        for (name, field) in NAMES.iter().zip(self.fields(py)?) {
            fields.push(format!("{name}={}", field.repr()?));
        }
        Ok(format!("ConsumerRecord({})", fields.join(", ")))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        fields_html(this.as_any())
    }
}

impl ConsumerRecord {
    /// A record of an answer.
    #[inline]
    pub(crate) fn of(
        py: Python<'_>,
        row: &FetchedRow<'_>,
        place: &RecordPlace<'_, '_>,
    ) -> PyResult<Self> {
        let part =
            |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part).into_any().unbind());
        let headers = if row.headers.is_empty() {
            place.no_headers.clone_ref(py)
        } else {
            let pairs = row.headers.iter().map(|(key, value)| {
                (String::from_utf8_lossy(key), value.map(|value| PyBytes::new(py, value)))
            });
            let pairs: PyResult<Vec<_>> = pairs.map(|pair| pair.into_pyobject(py)).collect();
            PyTuple::new(py, pairs?)?.unbind()
        };
        Ok(Self {
            topic: place.topic.clone().unbind(),
            partition: place.partition,
            offset: row.offset,
            timestamp_ms: row.timestamp,
            timestamp_type: row.timestamp_type.name(),
            key: part(row.key),
            value: part(row.value),
            headers,
            leader_epoch: row.leader_epoch,
        })
    }

    /// What a record is made of again, in order.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let fields = (
            &self.topic,
            self.partition,
            self.offset,
            self.timestamp_ms,
            self.timestamp_type,
            &self.key,
            &self.value,
            &self.headers,
            self.leader_epoch,
        );
        fields.into_pyobject(py)
    }
}

/// What the records of a partition share.
pub(crate) struct RecordPlace<'a, 'py> {
    pub(crate) topic: &'a Bound<'py, PyString>,
    pub(crate) partition: i32,
    pub(crate) no_headers: &'a Py<PyTuple>,
}

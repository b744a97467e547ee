//! Reading record by record.

use crate::bytes::SharedBytes;
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::errors::to_python;
use crate::integers::int;
use crate::shown::{bytes_shown, fields_html};
use ottla_audit::rows::BufferedRecords;
use ottla_audit::rows::columns::{RECORD_COLUMNS, RecordPart};
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_format::check::Level;
use ottla_format::control_record::ControlRecord;
use ottla_format::error::{Error, ErrorKind};
use ottla_format::limits::Limits;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Returns an iterator over the records of a batch in `data`, which begins at position `origin` of the
/// file or buffer.
pub fn iterate(
    py: Python<'_>,
    info: &BatchInfo,
    data: &SharedBytes,
    origin: u64,
) -> PyResult<RecordIterator> {
    let (cursor, source) = attached(py, || open(py, info, data, origin))?
        .map_err(|error| to_python(py, &error.within(info.position as usize)))?;
    let (is_control, position) = (info.is_control(), info.position);
    Ok(RecordIterator { source, cursor: Mutex::new(cursor), is_control, position })
}

/// The bytes of a batch in `data`, which begins at position `origin` of the file or buffer.
pub fn whole_batch<'a>(info: &BatchInfo, data: &'a [u8], origin: u64) -> Result<&'a [u8], Error> {
    let range = range_of(info, origin);
    let left = data.len().saturating_sub(range.start) as u64;
    let truncated = ErrorKind::TruncatedBatch { needed: info.size, left };
    data.get(range).ok_or(Error::new(truncated, 0))
}

fn range_of(info: &BatchInfo, origin: u64) -> Range<usize> {
    let start = info.position.saturating_sub(origin) as usize;
    start..start.saturating_add(info.size as usize)
}

/// A cursor before the first record, and the bytes it moves over.
fn open(
    py: Python<'_>,
    info: &BatchInfo,
    data: &SharedBytes,
    origin: u64,
) -> Result<(RecordCursor, Source), Error> {
    let whole = whole_batch(info, data.as_bytes(py), origin)?;
    let limits = Limits::default();
    match batch::payload(info, whole)? {
        Payload::Plain { bytes, start } => {
            let cursor = RecordCursor::start(info, bytes, limits)?;
            let Range { start: begin, end } = range_of(info, origin);
            let range = begin.saturating_add(start).min(end)..end;
            Ok((cursor, Source::Borrowed(data.clone_ref(py), range)))
        }
        Payload::Compressed { codec, reading, bytes, start } => {
            with_checker(Level::Full, |checker| {
                let inflated = checker
                    .codecs()
                    .decompress(codec, reading, bytes)
                    .map_err(|kind| Error::new(kind, start))?;
                let cursor = RecordCursor::start(info, inflated, limits)?;
                Ok((cursor, Source::Owned(inflated.to_vec())))
            })
        }
    }
}

/// The bytes that hold the records.
enum Source {
    Borrowed(SharedBytes, Range<usize>),
    Owned(Vec<u8>),
}

impl Source {
    fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match self {
            Self::Borrowed(data, range) => data.as_bytes(py).get(range.clone()).unwrap_or_default(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The highest length that is announced: Python reserves memory for it.
const MAX_LENGTH_HINT: usize = 1 << 20;

/// Iterator over :class:`Record`.
#[pyclass(frozen, module = "ottla")]
pub struct RecordIterator {
    source: Source,
    cursor: Mutex<RecordCursor>,
    is_control: bool,
    position: u64,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __length_hint__(&self, py: Python<'_>) -> usize {
        let remaining = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).remaining();
        // Each record has a byte or more: a count that lies reserves no memory.
        remaining.min(MAX_LENGTH_HINT).min(self.source.bytes(py).len())
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.next_record(py)
    }
}

impl RecordIterator {
    /// The offset of the next record; `None` after the last.
    pub(crate) fn next_offset(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let next = cursor.next(self.source.bytes(py));
        drop(cursor);
        match next {
            Ok(record) => Ok(record.map(|record| record.offset)),
            Err(error) => Err(to_python(py, &error.within(self.position as usize))),
        }
    }

    /// Adds the records that are left to columns, those that are wanted: whether there was room for all.
    pub fn fill(
        &self,
        py: Python<'_>,
        info: &BatchInfo,
        rows: &mut BufferedRecords,
        is_wanted: impl FnMut(i64) -> bool + Send,
    ) -> PyResult<bool> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let (payload, left) = (self.source.bytes(py), &mut *cursor);
        detached(py, || rows.add_left(info, payload, left, is_wanted))?
            .map_err(|error| to_python(py, &error.within(self.position as usize)))
    }

    /// The next record; `None` after the last.
    pub fn next_record(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let index = cursor.index();
        let next = cursor.next(self.source.bytes(py));
        drop(cursor);
        let record = match next {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) => return Err(to_python(py, &error.within(self.position as usize))),
        };
        let control = self
            .is_control
            .then(|| ControlRecord::read(index, record.key, record.value).ok())
            .flatten();
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(py, part).unbind());
        let raw_headers = if record.headers.is_empty() {
            None
        } else {
            let pairs = record.headers.iter().map(|(key, value)| {
                let value = value.map(|value| PyBytes::new(py, value));
                (PyBytes::new(py, key), value).into_pyobject(py)
            });
            let pairs: Vec<Bound<'_, PyTuple>> = pairs.collect::<PyResult<_>>()?;
            Some(PyList::new(py, pairs)?.unbind())
        };
        Ok(Some(Record {
            offset: record.offset,
            timestamp: record.timestamp,
            key: bytes(record.key),
            value: bytes(record.value),
            raw_headers,
            sequence: record.sequence,
            control,
        }))
    }
}

/// One record, as a consumer receives it. Two are equal if all of their fields are.
///
/// Args:
///     offset, timestamp, key, value, sequence: see below.
///     headers: pairs of key and value; a key may be ``str`` or bytes.
///     is_control: whether it is of a control batch, which its key and value describe then.
///
/// >>> import ottla
/// >>> match ottla.Record(7, 1_500_000_000_000, b"k", None):
/// ...     case ottla.Record(offset, _, key, None):
/// ...         print(offset, key, "was deleted")
/// 7 b'k' was deleted
#[pyclass(frozen, module = "ottla")]
pub struct Record {
    offset: i64,
    timestamp: i64,
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
    raw_headers: Option<Py<PyList>>,
    sequence: i32,
    control: Option<ControlRecord>,
}

impl Record {
    /// Offset in the log.
    pub fn at(&self) -> i64 {
        self.offset
    }

    /// Key or value, borrowed.
    fn part<'a>(py: Python<'a>, part: Option<&'a Py<PyBytes>>) -> Option<&'a [u8]> {
        part.map(|part| part.as_bytes(py))
    }

    /// Returns the record as a row of the table of records.
    pub fn row<'py>(&self, py: Python<'py>, batch_position: u64) -> PyResult<Bound<'py, PyTuple>> {
        let object = |part| -> PyResult<Bound<'py, PyAny>> {
            Ok(match part {
                RecordPart::BatchPosition => batch_position.into_pyobject(py)?.into_any(),
                RecordPart::Offset => self.offset.into_pyobject(py)?.into_any(),
                RecordPart::Timestamp => self.timestamp.into_pyobject(py)?.into_any(),
                RecordPart::Key => self.key(py).into_pyobject(py)?.into_any(),
                RecordPart::Value => self.value(py).into_pyobject(py)?.into_any(),
                RecordPart::Headers => self.headers(py)?.into_pyobject(py)?.into_any(),
                RecordPart::Sequence => self.sequence.into_pyobject(py)?.into_any(),
                RecordPart::Control => self.control().into_pyobject(py)?.into_any(),
            })
        };
        let values = RECORD_COLUMNS.iter().map(|column| object(column.value));
        PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

/// Key and value of a header, as a caller gives them.
type HeaderPair<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>);

#[pymethods]
impl Record {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&str, &str, &str, &str) = ("offset", "timestamp", "key", "value");

    #[new]
    #[pyo3(signature = (
        offset, timestamp=-1, key=None, value=None, headers=None, sequence=-1, is_control=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "one per field")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = int)] offset: i64,
        #[pyo3(from_py_with = int)] timestamp: i64,
        key: Option<Py<PyBytes>>,
        value: Option<Py<PyBytes>>,
        headers: Option<Vec<HeaderPair<'_>>>,
        #[pyo3(from_py_with = int)] sequence: i32,
        is_control: bool,
    ) -> PyResult<Self> {
        let (read_key, read_value) = (Self::part(py, key.as_ref()), Self::part(py, value.as_ref()));
        let control = is_control.then(|| ControlRecord::read(0, read_key, read_value).ok());
        let pairs = headers.unwrap_or_default().into_iter();
        let pairs = pairs.map(|(key, value)| (header_key(&key)?, value).into_pyobject(py));
        let pairs = pairs.collect::<PyResult<Vec<_>>>()?;
        let raw_headers =
            if pairs.is_empty() { None } else { Some(PyList::new(py, pairs)?.unbind()) };
        let control = control.flatten();
        Ok(Self { offset, timestamp, key, value, raw_headers, sequence, control })
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = other.get();
        let numbers = |record: &Self| (record.offset, record.timestamp, record.sequence);
        let equal = numbers(self) == numbers(other)
            && self.control == other.control
            && Self::part(py, self.key.as_ref()) == Self::part(py, other.key.as_ref())
            && Self::part(py, self.value.as_ref()) == Self::part(py, other.value.as_ref())
            && self.raw_headers(py).eq(other.raw_headers(py))?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.offset, self.timestamp, self.sequence).hash(&mut hasher);
        (Self::part(py, self.key.as_ref()), Self::part(py, self.value.as_ref())).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, record) = (this.py(), this.get());
        let fields = (
            record.offset,
            record.timestamp,
            record.key(py),
            record.value(py),
            record.raw_headers(py),
            record.sequence,
            record.control.is_some(),
        );
        Ok((this.get_type().into_any(), fields.into_pyobject(py)?))
    }

    /// Offset in the log.
    #[getter]
    fn offset(&self) -> i64 {
        self.offset
    }

    /// In ms since 1970; with LogAppendTime the batch's, with magic 0 −1.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Key bytes, or ``None`` for null.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.key.as_ref().map(|key| key.bind(py).clone())
    }

    /// Value bytes, or ``None`` for null.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.value.as_ref().map(|value| value.bind(py).clone())
    }

    /// Pairs of key and value; a key that is not UTF-8 has replacement characters.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let headers = PyList::empty(py);
        for pair in self.raw_headers(py).iter() {
            let (key, value): (Bound<'py, PyBytes>, Bound<'py, PyAny>) = pair.extract()?;
            headers.append((String::from_utf8_lossy(key.as_bytes()), value))?;
        }
        Ok(headers)
    }

    /// Pairs of key bytes and value.
    #[getter]
    fn raw_headers<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        // A new list: a caller's changes to it must not change the record.
        self.raw_headers.as_ref().map_or_else(
            || PyList::empty(py),
            |headers| {
                let headers = headers.bind(py);
                headers.get_slice(0, headers.len())
            },
        )
    }

    /// Sequence number, −1 without an idempotent producer.
    #[getter]
    fn sequence(&self) -> i32 {
        self.sequence
    }

    /// The type of a control record, such as ``COMMIT`` or ``ABORT``; ``None`` for other records.
    #[getter]
    fn control(&self) -> Option<&'static str> {
        self.control.map(|control| control.name())
    }

    /// The coordinator epoch of an end-transaction marker; ``None`` for other records.
    #[getter]
    fn coordinator_epoch(&self) -> Option<i32> {
        match self.control {
            Some(
                ControlRecord::Abort { coordinator_epoch }
                | ControlRecord::Commit { coordinator_epoch },
            ) => Some(coordinator_epoch),
            _ => None,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (offset, timestamp) = (self.offset, self.timestamp);
        let (key, value) =
            (bytes_shown(py, self.key.as_ref())?, bytes_shown(py, self.value.as_ref())?);
        let headers = match &self.raw_headers {
            None => String::new(),
            Some(_) => format!(", headers={}", self.headers(py)?.repr()?),
        };
        let control = self.control().map(|name| format!(", control='{name}'")).unwrap_or_default();
        let parts = format!("key={key}, value={value}{headers}{control}");
        Ok(format!("Record(offset={offset}, timestamp={timestamp}, {parts})"))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        fields_html(this.as_any())
    }
}

/// The bytes of a header's key, which a caller may give as text.
fn header_key<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(PyBytes::new(key.py(), text.to_str()?.as_bytes()));
    }
    key.cast::<PyBytes>().cloned().map_err(|_| {
        let found = key.get_type();
        PyTypeError::new_err(format!("the key of a header is {found}, expected str or bytes"))
    })
}

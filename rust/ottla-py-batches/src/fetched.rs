//! What a consumer gets of one partition of a Fetch answer.

use crate::bytes::{BackedBytes, DETACH_BYTES, SharedBytes};
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::consumer_record::{ConsumerRecord, RecordPlace};
use crate::errors::to_python;
use crate::integers::int;
use ottla_format::check::Level;
use ottla_format::fetched::{self, Fetched};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::ops::Range;
use std::sync::Arc;

/// Reads what a Fetch answer has of one partition, as a consumer does.
///
/// Whole batches of any magic are read, and a last one that is cut off is left for the next fetch.
/// Left out are records before the position, control batches, and aborted transactions.
///
/// Args:
///     data: the records of the answer, any bytes-like object; ``bytes``, and views of
///         it, are not copied.
///     position: the offset that was fetched from.
///     aborted: producer id and first offset of each aborted transaction in the answer; ``None`` with
///         ``read_uncommitted``.
///     check_crcs: whether checksums are verified.
///
/// >>> from ottla.records import NewRecord, build_batch, fetched
/// >>> found = fetched(build_batch([NewRecord(value=b"a"), NewRecord(value=b"b")]), 1)
/// >>> [(record.offset, record.value) for record in found.records("events", 0)]
/// [(1, b'b')]
/// >>> found.next_position
/// 2
#[pyfunction]
#[pyo3(name = "fetched", signature = (data, position, aborted=None, check_crcs=true))]
pub fn read_fetched(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = int)] position: i64,
    aborted: Option<Vec<(i64, i64)>>,
    check_crcs: bool,
) -> PyResult<FetchedRecords> {
    let data = SharedBytes::of(data)?.backed(py);
    let read = || {
        with_checker(Level::Decode, |checker| {
            fetched::read(checker, &data, position, aborted, check_crcs)
        })
    };
    let records = if data.len() < DETACH_BYTES { attached(py, read) } else { detached(py, read) }?;
    let range = 0..records.count();
    Ok(FetchedRecords { answer: Arc::new(Answer { data, records }), range })
}

/// The bytes of an answer, and what is in them.
pub struct Answer {
    /// The bytes.
    pub data: BackedBytes,
    /// What is in them.
    pub records: Fetched,
}

/// Records of one partition of a Fetch answer, and where the partition goes on.
#[pyclass(frozen, module = "ottla.records")]
pub struct FetchedRecords {
    /// What they are records of.
    pub answer: Arc<Answer>,
    /// Which of its records.
    pub range: Range<usize>,
}

impl FetchedRecords {
    fn part(&self, range: Range<usize>) -> Self {
        Self { answer: Arc::clone(&self.answer), range }
    }

    /// Whether it reaches the end of the answer.
    fn is_last(&self) -> bool {
        self.range.end >= self.answer.records.count()
    }
}

#[pymethods]
impl FetchedRecords {
    fn __len__(&self) -> usize {
        self.range.len()
    }

    /// The offset to go on from behind these records; where there are no more, behind the last batch,
    /// whatever of it was left out.
    #[getter]
    fn next_position(&self) -> i64 {
        self.answer.records.next_offset(self.range.end)
    }

    /// The leader epoch of the batch before :attr:`next_position`; -1 where it is not known.
    #[getter]
    fn leader_epoch(&self) -> i32 {
        self.answer.records.leader_epoch(self.range.end)
    }

    /// Why nothing behind :attr:`next_position` can be read, a :class:`~ottla.errors.RecordBatchError`;
    /// ``None`` where it can, or where there are more records before that place.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        let fault = self.answer.records.fault().filter(|_| self.is_last())?;
        Some(to_python(py, &fault.error))
    }

    /// Returns the first records, at most `count` of them, and the others.
    fn split(&self, #[pyo3(from_py_with = int)] count: usize) -> (Self, Self) {
        let at = self.range.start.saturating_add(count).min(self.range.end);
        (self.part(self.range.start..at), self.part(at..self.range.end))
    }

    /// Returns the records as a list of :class:`ConsumerRecord`.
    fn records<'py>(
        &self,
        py: Python<'py>,
        topic: &Bound<'py, PyString>,
        #[pyo3(from_py_with = int)] partition: i32,
    ) -> PyResult<Bound<'py, PyList>> {
        let no_headers = PyTuple::empty(py).unbind();
        let place = RecordPlace { topic, partition, no_headers: &no_headers };
        let Answer { data, records } = &*self.answer;
        let made = attached(py, || {
            let rows = records.rows(data, self.range.clone());
            let made = rows.map(|row| Py::new(py, ConsumerRecord::of(py, &row, &place)?));
            made.collect::<PyResult<Vec<_>>>()
        })??;
        PyList::new(py, made)
    }

    fn __repr__(&self) -> String {
        let (count, next_position) = (self.range.len(), self.next_position());
        format!("FetchedRecords(count={count}, next_position={next_position})")
    }
}

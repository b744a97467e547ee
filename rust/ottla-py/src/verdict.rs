//! `Verdict`: a leader's decision on a record set.

use ottla_format::error_code::ErrorCode;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_leader::{Metrics, Patch, Refusal, Stored};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PySlice, PyTuple};

/// From here on joining parts is faster than copying into bytes that are zeroed first.
const JOINED_BYTES: usize = 32 << 10;

/// Where the bytes are that are appended.
enum StoredBytes {
    /// The received bytes up to a position.
    AsReceived(usize),
    /// One batch, the received bytes up to a position, with another header.
    Patched(Patch, usize),
    /// Other bytes.
    Owned(Py<PyBytes>),
}

/// What is appended.
struct Appended {
    stored: StoredBytes,
    base_offset: i64,
    last_offset: i64,
    max_timestamp_ms: i64,
    offset_of_max_timestamp: i64,
    log_append_time_ms: i64,
    message_count: u64,
    converted: u64,
    is_rebuilt: bool,
    is_duplicate: bool,
}

/// A leader's decision on the record set of one partition.
///
/// Where the set is refused, ``error`` is Kafka's error code, ``error_message`` says what was found
/// and expected, and ``record_errors`` names the records to blame, ascending; nothing is appended.
#[pyclass(frozen, module = "ottla")]
pub(crate) struct Verdict {
    outcome: Result<Appended, Box<Refusal>>,
    log_start_offset: i64,
    set_bytes: usize,
    data: Py<PyBytes>,
    stored: PyOnceLock<Py<PyBytes>>,
}

impl Verdict {
    /// A verdict on `data`.
    #[inline]
    pub(crate) fn new(
        py: Python<'_>,
        data: Bound<'_, PyBytes>,
        verdict: ottla_leader::Verdict<'_>,
    ) -> Self {
        let ottla_leader::Verdict { outcome, log_start_offset, set_bytes } = verdict;
        let outcome = outcome.map(|accepted| Appended {
            message_count: accepted.message_count(),
            stored: match accepted.stored {
                Stored::Nothing => StoredBytes::AsReceived(0),
                Stored::AsReceived(bytes) => StoredBytes::AsReceived(bytes.len()),
                Stored::Patched { batch, patch } => StoredBytes::Patched(patch, batch.len()),
                Stored::Owned(bytes) => StoredBytes::Owned(PyBytes::new(py, &bytes).unbind()),
            },
            base_offset: accepted.base_offset,
            last_offset: accepted.last_offset,
            max_timestamp_ms: accepted.max_timestamp_ms,
            offset_of_max_timestamp: accepted.offset_of_max_timestamp,
            log_append_time_ms: accepted.log_append_time_ms,
            converted: accepted.converted,
            is_rebuilt: accepted.is_rebuilt,
            is_duplicate: accepted.is_duplicate,
        });
        Self {
            outcome,
            log_start_offset,
            set_bytes,
            data: data.unbind(),
            stored: PyOnceLock::new(),
        }
    }

    /// A field of what is appended, −1 where nothing is.
    fn field(&self, field: impl FnOnce(&Appended) -> i64) -> i64 {
        self.outcome.as_ref().map_or(-1, field)
    }

    fn code(&self) -> ErrorCode {
        self.outcome.as_ref().map_or_else(|refusal| refusal.error, |_| ErrorCode::None)
    }

    /// The received bytes up to `end` with another header, copied.
    fn patched(&self, py: Python<'_>, patch: &Patch, end: usize) -> PyResult<Py<PyBytes>> {
        let data = self.data.as_bytes(py);
        let received = data.get(..end).unwrap_or(data);
        let stored = PyBytes::new_with(py, received.len(), |to| {
            to.copy_from_slice(received);
            if let (Some(head), Some(header)) = (to.first_chunk_mut(), patch.header_of(received)) {
                *head = header.to_bytes();
            }
            Ok(())
        })?;
        Ok(stored.unbind())
    }

    /// The received bytes from `start` up to `end`, not copied.
    fn received<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Nearly every slice is this one.
        static RECORDS: PyOnceLock<Py<PySlice>> = PyOnceLock::new();
        let slice = |start: usize, end: isize| PySlice::new(py, start as isize, end, 1);
        let data = self.data.bind(py);
        let is_to_end = end == data.as_bytes().len();
        if start == 0 && is_to_end {
            return Ok(data.clone().into_any());
        }
        let view = PyMemoryView::from(data)?;
        if start == RECORD_BATCH_OVERHEAD && is_to_end {
            return view.get_item(RECORDS.get_or_init(py, || slice(start, isize::MAX).unbind()));
        }
        view.get_item(slice(start, end as isize))
    }
}

#[pymethods]
impl Verdict {
    /// Whether the set is accepted.
    #[getter]
    fn accepted(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Kafka's error code; 0 where the set is accepted.
    #[getter]
    fn error(&self) -> i16 {
        self.code().code()
    }

    /// Kafka's name for the error.
    #[getter]
    fn error_name(&self) -> &'static str {
        self.code().name()
    }

    /// What was found, what was expected and at which records; ``None`` where the set is accepted.
    #[getter]
    fn error_message(&self) -> Option<String> {
        self.outcome.as_ref().err().map(|refusal| refusal.message())
    }

    /// The records to blame, ascending.
    #[getter]
    fn record_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let refusal = self.outcome.as_ref().err();
        RecordError::tuple(py, refusal.map_or(&[], |refusal| &refusal.record_errors))
    }

    /// Whether Kafka fails every partition of the request with this error.
    #[getter]
    fn is_request_wide(&self) -> bool {
        self.outcome.as_ref().is_err_and(|refusal| refusal.is_request_wide)
    }

    /// Offset of the first record; −1 where nothing is appended.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.field(|accepted| accepted.base_offset)
    }

    /// Offset of the last record; −1 where nothing is appended.
    #[getter]
    fn last_offset(&self) -> i64 {
        self.field(|accepted| accepted.last_offset)
    }

    /// The largest timestamp, in ms; −1 for none.
    #[getter]
    fn max_timestamp_ms(&self) -> i64 {
        self.field(|accepted| accepted.max_timestamp_ms)
    }

    /// Offset of the first record that has it; −1 for none.
    #[getter]
    fn offset_of_max_timestamp(&self) -> i64 {
        self.field(|accepted| accepted.offset_of_max_timestamp)
    }

    /// The time of the append, in ms; −1 where the topic keeps the producer's timestamps.
    #[getter]
    fn log_append_time_ms(&self) -> i64 {
        self.field(|accepted| accepted.log_append_time_ms)
    }

    /// Log start offset of the answer; −1 where the answer leaves it out.
    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// Whether records were written anew; otherwise every byte behind the header is kept.
    #[getter]
    fn is_rebuilt(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|accepted| accepted.is_rebuilt)
    }

    /// Whether the batch is in the log already, at these offsets; nothing is appended then.
    #[getter]
    fn is_duplicate(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|accepted| accepted.is_duplicate)
    }

    /// Records written anew.
    #[getter]
    fn converted(&self) -> i64 {
        self.outcome.as_ref().map_or(0, |accepted| accepted.converted as i64)
    }

    /// The bytes to append, in one piece; empty where nothing is.
    ///
    /// A set that is kept stands behind another header: the first call copies it.
    /// :attr:`stored_parts` are the same bytes without a copy.
    #[getter]
    fn stored<'py>(&'py self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyBytes>> {
        let stored = self.stored.get_or_try_init(py, || {
            if let Ok(Appended { stored: StoredBytes::Patched(patch, end), .. }) = &self.outcome
                && *end < JOINED_BYTES
            {
                return self.patched(py, patch, *end);
            }
            let parts = self.stored_parts(py)?;
            if parts.len() == 1
                && let Ok(whole) = parts.get_item(0)?.cast_into::<PyBytes>()
            {
                return Ok(whole.unbind());
            }
            let joined = PyBytes::new(py, b"").call_method1(pyo3::intern!(py, "join"), (parts,))?;
            Ok::<_, PyErr>(joined.cast_into::<PyBytes>()?.unbind())
        })?;
        Ok(stored.bind(py))
    }

    /// The bytes to append as bytes-like objects that follow one another, none of them copied, as
    /// ``os.writev`` and ``b"".join`` take them; ``()`` where nothing is appended.
    ///
    /// A set that is kept comes as its new header, 61 ``bytes``, and a ``memoryview`` of the
    /// received records; one that is written anew, or kept whole, as one object. A view keeps the
    /// received bytes alive.
    ///
    /// >>> import ottla
    /// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"a")])
    /// >>> verdict = ottla.validate(batch, now_ms=0, base_offset=42)
    /// >>> [len(part) for part in verdict.stored_parts]
    /// [61, 8]
    /// >>> b"".join(verdict.stored_parts) == verdict.stored
    /// True
    #[getter]
    fn stored_parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.outcome.as_ref().map(|appended| &appended.stored) {
            Ok(StoredBytes::Patched(patch, end)) => {
                let header = patch.header_of(self.data.as_bytes(py)).map(|new| new.to_bytes());
                let header = PyBytes::new(py, header.as_ref().map_or(&[], |bytes| &bytes[..]));
                let rest = self.received(py, RECORD_BATCH_OVERHEAD, *end)?;
                PyTuple::new(py, [header.into_any(), rest])
            }
            Ok(StoredBytes::AsReceived(end)) if *end > 0 => {
                PyTuple::new(py, [self.received(py, 0, *end)?])
            }
            Ok(StoredBytes::Owned(bytes)) => PyTuple::new(py, [bytes]),
            Ok(StoredBytes::AsReceived(_)) | Err(_) => Ok(PyTuple::empty(py)),
        }
    }

    /// What was counted, by the names of Kafka's meters (KIP-467).
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        let metrics = match &self.outcome {
            Ok(appended) => {
                Metrics::accepted(self.set_bytes, appended.message_count, appended.converted)
            }
            Err(refusal) => refusal.metrics,
        };
        for (name, count) in metrics.named() {
            named.set_item(name, count)?;
        }
        Ok(named)
    }

    fn __repr__(&self) -> String {
        match &self.outcome {
            Ok(accepted) => format!(
                "<Verdict accepted, offsets {} to {}>",
                accepted.base_offset, accepted.last_offset
            ),
            Err(refusal) => {
                format!("<Verdict {} ({}): {}>", self.error_name(), self.error(), refusal.message())
            }
        }
    }
}

/// A record to blame.
#[pyclass(frozen, eq, hash, module = "ottla")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RecordError {
    /// Its position in the batch, from 0.
    #[pyo3(get)]
    batch_index: u32,
    /// What was found and what was expected.
    #[pyo3(get)]
    message: String,
    error: ErrorCode,
}

impl RecordError {
    pub(crate) fn tuple<'py>(
        py: Python<'py>,
        errors: &[ottla_leader::RecordError],
    ) -> PyResult<Bound<'py, PyTuple>> {
        let errors = errors.iter().map(|error| {
            let (batch_index, message) = (error.batch_index, error.message());
            Py::new(py, Self { batch_index, message, error: error.error })
        });
        PyTuple::new(py, errors.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl RecordError {
    /// Kafka's error code of this record.
    #[getter]
    fn error(&self) -> i16 {
        self.error.code()
    }

    /// Kafka's name for the error.
    #[getter]
    fn error_name(&self) -> &'static str {
        self.error.name()
    }

    fn __repr__(&self) -> String {
        let Self { batch_index, message, error } = self;
        let error = error.code();
        format!("RecordError(batch_index={batch_index}, message={message:?}, error={error})")
    }
}

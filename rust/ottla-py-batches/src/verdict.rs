//! `Verdict`: a leader's decision on a record set.

use crate::bytes::SharedBytes;
use crate::errors::refused;
use crate::record_error::RecordError;
use crate::shown::fields_html;
use crate::verdict_state::{Said, VerdictState};
use ottla_format::error_code::ErrorCode;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_leader::{Metrics, Patch, Refusal, Stored};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// From here on joining parts is faster than copying into bytes that are zeroed first.
const JOINED_BYTES: usize = 32 << 10;

/// What is appended.
struct Appended {
    /// Where it ends in the data.
    end: usize,
    /// What changes in the header of the data, where that is one batch.
    patch: Option<Patch>,
    base_offset: i64,
    last_offset: i64,
    max_timestamp_ms: i64,
    offset_of_max_timestamp: i64,
    log_append_time_ms: i64,
    converted: u64,
    is_rebuilt: bool,
    is_duplicate: bool,
}

impl Appended {
    /// How many offsets the set takes.
    fn message_count(&self) -> u64 {
        ottla_leader::count_offsets(self.base_offset, self.last_offset)
    }
}

/// Why nothing is appended.
enum Refused {
    Judged(Box<Refusal>),
    /// As it was pickled.
    Said(Box<Said>),
}

impl Refused {
    fn error(&self) -> ErrorCode {
        match self {
            Self::Judged(refusal) => refusal.error,
            Self::Said(said) => said.error,
        }
    }

    fn said(&self) -> Cow<'_, Said> {
        match self {
            Self::Judged(refusal) => Cow::Owned(Said::of(refusal)),
            Self::Said(said) => Cow::Borrowed(said),
        }
    }
}

/// A decision on bytes that it does not hold.
pub struct Decision {
    outcome: Result<Appended, Refused>,
    log_start_offset: i64,
    set_bytes: usize,
    /// What is appended in the place of these bytes.
    written: Option<Vec<u8>>,
}

impl From<ottla_leader::Verdict<'_>> for Decision {
    #[expect(clippy::inline_always, reason = "what is not a call is not copied")]
    #[inline(always)]
    fn from(verdict: ottla_leader::Verdict<'_>) -> Self {
        let ottla_leader::Verdict { outcome, log_start_offset, set_bytes } = verdict;
        let mut written = None;
        let outcome = match outcome {
            Ok(accepted) => Ok(Appended {
                end: accepted.stored.len(),
                patch: match accepted.stored {
                    Stored::Patched { patch, .. } => Some(patch),
                    Stored::Owned(bytes) => {
                        written = Some(bytes);
                        None
                    }
                    Stored::Nothing | Stored::AsReceived(_) => None,
                },
                base_offset: accepted.base_offset,
                last_offset: accepted.last_offset,
                max_timestamp_ms: accepted.max_timestamp_ms,
                offset_of_max_timestamp: accepted.offset_of_max_timestamp,
                log_append_time_ms: accepted.log_append_time_ms,
                converted: accepted.converted,
                is_rebuilt: accepted.is_rebuilt,
                is_duplicate: accepted.is_duplicate,
            }),
            Err(refusal) => Err(Refused::Judged(refusal)),
        };
        Self { outcome, log_start_offset, set_bytes, written }
    }
}

/// A leader's decision on the record set of one partition.
///
/// Where the set is refused, ``error`` is Kafka's error code, ``error_message`` says what was found
/// and expected, and ``record_errors`` names the records to blame, ascending; nothing is appended.
/// A verdict is true where the set is accepted.
///
/// >>> import ottla
/// >>> bool(ottla.validate(ottla.build_batch([ottla.NewRecord(value=b"a")]), now_ms=0))
/// True
#[pyclass(frozen, freelist = 16, module = "ottla")]
pub struct Verdict {
    outcome: Result<Appended, Refused>,
    log_start_offset: i64,
    set_bytes: usize,
    data: SharedBytes,
    stored: PyOnceLock<Py<PyBytes>>,
}

impl Verdict {
    /// A decision on `data`.
    #[expect(clippy::inline_always, reason = "what is not a call is not copied")]
    #[inline(always)]
    pub fn new(py: Python<'_>, data: SharedBytes, decision: Decision) -> Self {
        let Decision { outcome, log_start_offset, set_bytes, written } = decision;
        let data = match written {
            Some(bytes) => SharedBytes::whole(PyBytes::new(py, &bytes)),
            None => data,
        };
        Self { outcome, log_start_offset, set_bytes, data, stored: PyOnceLock::new() }
    }

    /// A field of what is appended, −1 where nothing is.
    fn field(&self, field: impl FnOnce(&Appended) -> i64) -> i64 {
        self.outcome.as_ref().map_or(-1, field)
    }

    fn code(&self) -> ErrorCode {
        self.outcome.as_ref().map_or_else(Refused::error, |_| ErrorCode::None)
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
        self.outcome.as_ref().err().map(|refused| match refused {
            Refused::Judged(refusal) => refusal.message(),
            Refused::Said(said) => said.message.clone(),
        })
    }

    /// The records to blame, ascending.
    #[getter]
    fn record_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.outcome.as_ref().err() {
            None => Ok(PyTuple::empty(py)),
            Some(Refused::Judged(refusal)) => RecordError::tuple(py, &refusal.record_errors),
            Some(Refused::Said(said)) => PyTuple::new(py, said.record_errors.iter().cloned()),
        }
    }

    /// Whether Kafka fails every partition of the request with this error.
    #[getter]
    fn is_request_wide(&self) -> bool {
        self.outcome.as_ref().is_err_and(|refused| match refused {
            Refused::Judged(refusal) => refusal.is_request_wide,
            Refused::Said(said) => said.is_request_wide,
        })
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
            if let Ok(Appended { patch: Some(patch), end, .. }) = &self.outcome
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

    /// The bytes to append as bytes-like objects that follow one another, as ``os.writev`` and
    /// ``b"".join`` take them; ``()`` where nothing is appended.
    ///
    /// A set that is kept comes as its new header, 61 ``bytes``, and the received records; one that is
    /// written anew, or kept whole, as one object. From 4 KiB on the records are a ``memoryview``, not
    /// copied, which keeps the received bytes alive; fewer are ``bytes``, since a view takes longer to
    /// make.
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
        match &self.outcome {
            Ok(Appended { patch: Some(patch), end, .. }) => {
                let data = self.data.as_bytes(py);
                let header = patch.header_of(data).map(|new| new.to_bytes());
                let header = PyBytes::new(py, header.as_ref().map_or(&[], |bytes| &bytes[..]));
                let rest = self.data.part(py, data, RECORD_BATCH_OVERHEAD..*end)?;
                PyTuple::new(py, [header.into_any(), rest])
            }
            Ok(Appended { end: end @ 1.., .. }) => {
                PyTuple::new(py, [self.data.part(py, self.data.as_bytes(py), 0..*end)?])
            }
            Ok(_) | Err(_) => Ok(PyTuple::empty(py)),
        }
    }

    /// What was counted, by the names of Kafka's meters (KIP-467).
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (name, count) in self.counted().named() {
            named.set_item(name, count)?;
        }
        Ok(named)
    }

    /// Returns where the set is accepted, and raises where it is not.
    ///
    /// Raises:
    ///     RecordsRefusedError: with the error, its message and the records to blame.
    ///
    /// >>> import ottla
    /// >>> verdict = ottla.validate(b"", now_ms=0)
    /// >>> verdict.raise_for_error()  # doctest: +ELLIPSIS
    /// Traceback (most recent call last):
    /// ottla.errors.RecordsRefusedError: INVALID_RECORD (87): no whole record batch, expected one
    fn raise_for_error(&self, py: Python<'_>) -> PyResult<()> {
        match self.error_message() {
            None => Ok(()),
            Some(message) => Err(refused(py, &message, self.code(), self.record_errors(py)?)),
        }
    }

    fn __bool__(&self) -> bool {
        self.accepted()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let equal = self.state(py)?.is_equal(&other.get().state(py)?);
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.error(), self.base_offset(), self.last_offset(), self.set_bytes).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (VerdictState<'py>,))> {
        let restore = this.get_type().getattr("_restore")?;
        Ok((restore, (this.get().state(this.py())?,)))
    }

    #[staticmethod]
    fn _restore(state: VerdictState<'_>) -> Self {
        let VerdictState { set_bytes, log_start_offset, stored, appended, said } = state;
        let ([base_offset, last_offset, max_timestamp, of_max, append_time], converted, flags) =
            appended;
        let accepted = Appended {
            end: stored.as_bytes().len(),
            patch: None,
            base_offset,
            last_offset,
            max_timestamp_ms: max_timestamp,
            offset_of_max_timestamp: of_max,
            log_append_time_ms: append_time,
            converted,
            is_rebuilt: flags.0,
            is_duplicate: flags.1,
        };
        Self {
            outcome: said.map_or(Ok(accepted), |said| Err(Refused::Said(Box::new(said)))),
            log_start_offset,
            set_bytes,
            data: SharedBytes::whole(stored),
            stored: PyOnceLock::new(),
        }
    }

    fn __repr__(&self) -> String {
        match self.error_message() {
            None => {
                let (first, last) = (self.base_offset(), self.last_offset());
                format!("<Verdict accepted, offsets {first} to {last}>")
            }
            Some(message) => {
                format!("<Verdict {} ({}): {message}>", self.error_name(), self.error())
            }
        }
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        fields_html(this.as_any())
    }
}

impl Verdict {
    fn counted(&self) -> Metrics {
        match &self.outcome {
            Ok(appended) => {
                Metrics::accepted(self.set_bytes, appended.message_count(), appended.converted)
            }
            Err(Refused::Judged(refusal)) => refusal.metrics,
            Err(Refused::Said(said)) => said.metrics,
        }
    }

    /// Everything that a verdict says.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<VerdictState<'py>> {
        let appended = self.outcome.as_ref().ok();
        let numbers = [
            self.base_offset(),
            self.last_offset(),
            self.max_timestamp_ms(),
            self.offset_of_max_timestamp(),
            self.log_append_time_ms(),
        ];
        let converted = appended.map_or(0, |appended| appended.converted);
        Ok(VerdictState {
            set_bytes: self.set_bytes,
            log_start_offset: self.log_start_offset,
            stored: self.stored(py)?.as_unbound().clone_ref(py).into_bound(py),
            appended: (numbers, converted, (self.is_rebuilt(), self.is_duplicate())),
            said: self.outcome.as_ref().err().map(|refused| refused.said().into_owned()),
        })
    }
}

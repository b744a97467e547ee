//! What a leader decides, for Python.

use crate::bytes::{DETACH_BYTES, bytes_of};
use crate::check::kernels;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_format::limits::Limits;
use ottla_leader::{
    self, ErrorCode, Metrics, Origin, Patch, Profile, Refusal, Request, Stored, TopicConfig,
    Validator,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PySlice, PyTuple};
use std::cell::RefCell;

thread_local! {
    static VALIDATOR: RefCell<Validator> =
        RefCell::new(Validator::new(Limits::default(), kernels()));
}

/// Works with this thread's validator.
pub(crate) fn with_validator<T>(work: impl FnOnce(&mut Validator) -> T) -> T {
    VALIDATOR.with_borrow_mut(work)
}

/// Whether a decision takes less than a microsecond, and the GIL is better kept: few bytes, and not
/// many more of them inside.
pub(crate) fn is_short(records: &[u8]) -> bool {
    const PLAIN_BYTES: usize = 16 << 10;
    const CODEC: u8 = 7;
    let is_plain = || records.get(22).is_some_and(|attributes| attributes & CODEC == 0);
    records.len() < DETACH_BYTES || records.len() < PLAIN_BYTES && is_plain()
}

/// A topic's configuration, read once: what ``ottla.TopicConfig`` holds for the engine.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct TopicSettings {
    config: TopicConfig,
}

impl TopicSettings {
    pub(crate) fn config(&self) -> &TopicConfig {
        &self.config
    }
}

#[pymethods]
impl TopicSettings {
    /// From pairs of Kafka's names and the texts of their values.
    #[new]
    fn new(settings: Vec<(String, String)>) -> PyResult<Self> {
        let mut config = TopicConfig::default();
        for (key, value) in settings {
            config.set(&key, &value).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        Ok(Self { config })
    }
}

/// The settings of a ``TopicConfig``, or Kafka's defaults.
pub(crate) fn settings_of(
    py: Python<'_>,
    config: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<TopicSettings>> {
    static DEFAULT: PyOnceLock<Py<TopicSettings>> = PyOnceLock::new();
    let Some(config) = config else {
        let default = DEFAULT.get_or_try_init(py, || {
            Py::new(py, TopicSettings { config: TopicConfig::default() })
        })?;
        return Ok(default.clone_ref(py));
    };
    let settings = config.getattr(pyo3::intern!(py, "_settings")).ok();
    if let Some(settings) = settings.and_then(|settings| settings.cast_into().ok()) {
        return Ok(settings.unbind());
    }
    let found = config.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("config is a TopicConfig, not {found}")))
}

/// A whole number that Python gave, in 64 bits or not.
#[derive(Clone, Copy)]
pub(crate) enum Whole {
    /// This one.
    Of(i64),
    /// One that 64 bits do not hold.
    TooLarge,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(value: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Ok(number) => Ok(Self::Of(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(Self::TooLarge),
            Err(error) => Err(error),
        }
    }
}

impl Whole {
    /// The number, if it lies within bounds.
    pub(crate) fn within(self, name: &str, minimum: i64, maximum: i64) -> PyResult<i64> {
        let refused = |found: &dyn std::fmt::Display| {
            PyValueError::new_err(format!("{name} is {found}, expected {minimum} to {maximum}"))
        };
        match self {
            Self::Of(number) if (minimum..=maximum).contains(&number) => Ok(number),
            Self::Of(number) => Err(refused(&number)),
            Self::TooLarge => Err(refused(&"beyond 64 bits")),
        }
    }

    /// A broker's clock, in ms since 1970.
    pub(crate) fn clock(self) -> PyResult<i64> {
        self.within("now_ms", 0, i64::MAX)
    }

    /// A Produce version.
    pub(crate) fn api_version(self) -> PyResult<i16> {
        self.within("api_version", 0, 13).map(|version| version as i16)
    }
}

/// An origin, by its name.
#[derive(Clone, Copy)]
pub(crate) struct OriginName(pub(crate) Origin);

impl<'a, 'py> FromPyObject<'a, 'py> for OriginName {
    type Error = PyErr;

    fn extract(name: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        origin_of(name.extract()?).map(Self)
    }
}

/// The origin of a name.
pub(crate) fn origin_of(name: &str) -> PyResult<Origin> {
    Origin::from_name(name).ok_or_else(|| {
        let names = "'client', 'coordinator' or 'replication'";
        PyValueError::new_err(format!("origin is {names}, not '{name}'"))
    })
}

/// The profile of a name.
pub(crate) fn profile_of(name: &str) -> PyResult<Profile> {
    Profile::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("profile is 'strict' or 'kafka', not '{name}'"))
    })
}

/// What :func:`validate` is told beside bytes and configuration.
pub(crate) struct RequestOptions<'a> {
    pub(crate) now_ms: Whole,
    pub(crate) api_version: Option<Whole>,
    pub(crate) base_offset: Whole,
    pub(crate) leader_epoch: Whole,
    pub(crate) origin: Origin,
    pub(crate) has_transactional_id: bool,
    pub(crate) profile: &'a str,
}

impl RequestOptions<'_> {
    /// The same within the bounds of the engine.
    pub(crate) fn request(&self) -> PyResult<Request> {
        Ok(Request {
            now_ms: self.now_ms.clock()?,
            api_version: self.api_version.map(Whole::api_version).transpose()?,
            base_offset: self.base_offset.within("base_offset", 0, i64::MAX)?,
            log_start_offset: 0,
            leader_epoch: self.leader_epoch.within("leader_epoch", 0, i32::MAX.into())? as i32,
            origin: self.origin,
            has_transactional_id: self.has_transactional_id,
            profile: profile_of(self.profile)?,
        })
    }
}

/// Decides over the record set of one partition of a Produce request, as its leader would.
///
/// The partition knows no producer; :class:`Leader` remembers them.
///
/// Args:
///     records: any bytes-like object; ``bytes`` is not copied.
///     config: the topic's configuration; Kafka's defaults where there is none.
///     now_ms: the broker's clock, ms since 1970.
///     api_version: Produce version, 0 to 13 (Kafka 4 serves 3 and newer); ``None`` goes by the
///         request gate, as what a broker itself writes does.
///     base_offset: the offset that the first record gets.
///     leader_epoch: stored with the batch.
///     origin: ``"client"``, ``"coordinator"`` or ``"replication"``.
///     transactional_id: of the request; one that may be written with.
///     profile: ``"strict"``, or ``"kafka"`` for Apache Kafka's decision to the last oddity.
///
/// Raises:
///     ValueError: a number out of range, or an unknown name.
///     TypeError: records that are no bytes-like object, a config that is no TopicConfig.
///
/// >>> import ottla
/// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"hello", timestamp=5)])
/// >>> verdict = ottla.validate(batch, now_ms=5, base_offset=42)
/// >>> verdict.accepted, verdict.base_offset
/// (True, 42)
#[pyfunction]
#[pyo3(signature = (
    records, config=None, *, now_ms, api_version=Some(Whole::Of(11)), base_offset=Whole::Of(0),
    leader_epoch=Whole::Of(0), origin=OriginName(Origin::Client), transactional_id=None, profile="strict"
), text_signature = "(records, config=None, *, now_ms, api_version=11, base_offset=0, \
    leader_epoch=0, origin='client', transactional_id=None, profile='strict')")]
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
pub(crate) fn validate(
    py: Python<'_>,
    records: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now_ms: Whole,
    api_version: Option<Whole>,
    base_offset: Whole,
    leader_epoch: Whole,
    origin: OriginName,
    transactional_id: Option<&str>,
    profile: &str,
) -> PyResult<Verdict> {
    let data = bytes_of(records)?;
    let settings = settings_of(py, config)?;
    let request = RequestOptions {
        now_ms,
        api_version,
        base_offset,
        leader_epoch,
        origin: origin.0,
        has_transactional_id: transactional_id.is_some(),
        profile,
    }
    .request()?;
    let (bytes, config) = (data.as_bytes(), settings.get().config());
    let decide =
        || with_validator(|validator| ottla_leader::validate(bytes, config, &request, validator));
    let verdict = if is_short(bytes) { decide() } else { py.detach(decide) };
    Ok(Verdict::new(py, data.clone(), verdict))
}

/// From here on joining parts is faster than copying into bytes that are zeroed first.
const JOINED_BYTES: usize = 32 << 10;

/// What is appended: where its bytes are.
enum Kept {
    /// The received bytes up to here.
    AsReceived(usize),
    /// One batch, the received bytes up to here, with another header.
    Patched(Patch, usize),
    /// Other bytes.
    Owned(Py<PyBytes>),
}

/// What is appended: what :class:`Verdict` tells of it.
struct Appended {
    kept: Kept,
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
            kept: match accepted.stored {
                Stored::Nothing => Kept::AsReceived(0),
                Stored::AsReceived(bytes) => Kept::AsReceived(bytes.len()),
                Stored::Patched { batch, patch } => Kept::Patched(patch, batch.len()),
                Stored::Owned(bytes) => Kept::Owned(PyBytes::new(py, &bytes).unbind()),
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
        let received = self.data.as_bytes(py).get(..end).unwrap_or_default();
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
    /// Whether the set is taken.
    #[getter]
    fn accepted(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Kafka's error code; 0 where the set is taken.
    #[getter]
    fn error(&self) -> i16 {
        self.code().code()
    }

    /// Kafka's name for the error.
    #[getter]
    fn error_name(&self) -> &'static str {
        self.code().name()
    }

    /// What was found, what was expected and at which records; ``None`` where the set is taken.
    #[getter]
    fn error_message(&self) -> Option<String> {
        self.outcome.as_ref().err().map(|refusal| refusal.message())
    }

    /// The records to blame, ascending.
    #[getter]
    fn record_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let refusal = self.outcome.as_ref().err();
        let errors = refusal.iter().flat_map(|refusal| &refusal.record_errors);
        let errors = errors.map(|error| RecordError {
            batch_index: error.batch_index,
            error: error.error.code(),
            message: error.message(),
        });
        PyTuple::new(py, errors.map(|error| Py::new(py, error)).collect::<PyResult<Vec<_>>>()?)
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

    /// The time of the append, in ms; −1 where the topic keeps the producer's.
    #[getter]
    fn log_append_time_ms(&self) -> i64 {
        self.field(|accepted| accepted.log_append_time_ms)
    }

    /// Log start offset of the answer; −1 where it is not told.
    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// Whether records were written anew; the rest keeps every byte behind its header.
    #[getter]
    fn is_rebuilt(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|accepted| accepted.is_rebuilt)
    }

    /// Whether the batch is in the log already, at these offsets: nothing is appended.
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
            if let Ok(Appended { kept: Kept::Patched(patch, end), .. }) = &self.outcome
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
        match self.outcome.as_ref().map(|appended| &appended.kept) {
            Ok(Kept::Patched(patch, end)) => {
                let header = patch.header_of(self.data.as_bytes(py)).map(|new| new.to_bytes());
                let header = PyBytes::new(py, header.as_ref().map_or(&[], |bytes| &bytes[..]));
                let rest = self.received(py, RECORD_BATCH_OVERHEAD, *end)?;
                PyTuple::new(py, [header.into_any(), rest])
            }
            Ok(Kept::AsReceived(end)) if *end > 0 => {
                PyTuple::new(py, [self.received(py, 0, *end)?])
            }
            Ok(Kept::Owned(bytes)) => PyTuple::new(py, [bytes]),
            Ok(Kept::AsReceived(_)) | Err(_) => Ok(PyTuple::empty(py)),
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
#[pyclass(frozen, eq, hash, get_all, module = "ottla")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RecordError {
    /// Its position in the batch, from 0.
    batch_index: u32,
    /// What was found and what was expected.
    message: String,
    /// Kafka's error code of this record.
    error: i16,
}

#[pymethods]
impl RecordError {
    fn __repr__(&self) -> String {
        let Self { batch_index, message, error } = self;
        format!("RecordError(batch_index={batch_index}, message={message:?}, error={error})")
    }
}

/// The rows in which the profiles differ: ``id``, ``kafka``, ``strict``, ``why``.
#[pyfunction]
pub(crate) fn profile_differences(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |row: &ottla_leader::Difference| {
        let dict = PyDict::new(py);
        dict.set_item("id", row.id())?;
        dict.set_item("kafka", row.kafka())?;
        dict.set_item("strict", row.strict())?;
        dict.set_item("why", row.why())?;
        Ok(dict)
    };
    ottla_leader::Difference::ALL.iter().map(row).collect()
}

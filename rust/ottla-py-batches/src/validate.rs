//! Verdicts for a partition that knows no producer.

use crate::bytes::SharedBytes;
use crate::calls::{attached, detached};
use crate::check::with_checker;
use crate::integers::int;
use crate::record_error::RecordError;
use crate::records::{RecordIterator, iterate};
use crate::request_options::{Integer, OriginName, RequestOptions, profile_of, release_of};
use crate::topic_settings::settings_of;
use crate::validator::{is_short, with_validator};
use crate::verdict::{Decision, Verdict};
use ottla_format::batch::BatchInfo;
use ottla_format::check::Level;
use ottla_leader::{PartRefusal, PartVerdict};
use ottla_log::kafka_version::{KafkaVersion, ReleaseDifference};
use ottla_log::producers::Origin;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Decides whether the leader of a partition would accept the record set of a Produce request.
///
/// The partition knows no producer; :class:`Leader` remembers them.
///
/// Args:
///     records: any bytes-like object; ``bytes``, and views of it, are not copied.
///     config: the topic's configuration; Kafka's defaults where there is none.
///     now_ms: the broker's clock, ms since 1970.
///     api_version: Produce version, 0 to 13 (Kafka 4 serves 3 and newer); ``None`` skips the
///         request gate, as a broker does for what it writes itself.
///     base_offset: the offset that the first record gets.
///     leader_epoch: stored with the batch.
///     origin: ``"client"``, ``"coordinator"`` or ``"replication"``.
///     transactional_id: of the request, which may write with it.
///     profile: ``"strict"``, or ``"kafka"`` for Apache Kafka's decision, oddities included.
///     kafka_version: the release whose rules hold, as a line (``"4.4"``) or a release
///         (``"4.2.2"``); that of the configuration where there is none, or the newest that is known.
///
/// Raises:
///     ValueError: a number out of range, an unknown name, or a setting that the release lacks.
///     TypeError: records that are not bytes-like, or a config that is not a TopicConfig.
///
/// >>> import ottla
/// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"hello", timestamp=5)])
/// >>> verdict = ottla.validate(batch, now_ms=5, base_offset=42)
/// >>> verdict.accepted, verdict.base_offset
/// (True, 42)
#[pyfunction]
#[pyo3(signature = (
    records, config=None, *, now_ms, api_version=Some(Integer::Of(11)), base_offset=Integer::Of(0),
    leader_epoch=Integer::Of(0), origin=OriginName(Origin::Client), transactional_id=None, profile="strict",
    kafka_version=None
), text_signature = "(records, config=None, *, now_ms, api_version=11, base_offset=0, \
    leader_epoch=0, origin='client', transactional_id=None, profile='strict', kafka_version=None)")]
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
pub fn validate(
    py: Python<'_>,
    records: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now_ms: Integer,
    api_version: Option<Integer>,
    base_offset: Integer,
    leader_epoch: Integer,
    origin: OriginName,
    transactional_id: Option<&str>,
    profile: &str,
    kafka_version: Option<&str>,
) -> PyResult<Verdict> {
    let data = SharedBytes::of(records)?;
    let settings = settings_of(py, config)?;
    let config = settings.get().config();
    let request = RequestOptions {
        now_ms,
        api_version,
        base_offset,
        leader_epoch,
        origin: origin.0,
        has_transactional_id: transactional_id.is_some(),
        profile,
        kafka_version,
    }
    .request(config)?;
    let bytes = data.as_bytes(py);
    let decide =
        || with_validator(|validator| ottla_leader::validate(bytes, config, &request, validator));
    let verdict = if is_short(bytes) { attached(py, decide) } else { detached(py, decide) }?;
    let decision = Decision::from(verdict);
    Ok(Verdict::new(py, data, decision))
}

/// Decides what a leader would do with a batch of a log if its producer sent it once more.
///
/// It is judged with base offset 0 and without a request gate; a marker as from its coordinator,
/// anything else as from a client that may write with its transactional id.
///
/// Args:
///     batch: one stored batch.
///     config: the topic's configuration; Kafka's defaults where there is none.
///     now_ms: the broker's clock, ms since 1970.
///     base_offset: where the batch stands in its log; a number that no offset has counts as the
///         nearest that one has.
///     profile, kafka_version: as in :func:`validate`.
///
/// Raises:
///     ValueError, TypeError: as :func:`validate`.
#[pyfunction]
#[pyo3(signature = (batch, config=None, *, now_ms, base_offset, profile="strict", kafka_version=None))]
pub fn validate_stored(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now_ms: Integer,
    #[pyo3(from_py_with = int)] base_offset: i64,
    profile: &str,
    kafka_version: Option<&str>,
) -> PyResult<Verdict> {
    let data = SharedBytes::of(batch)?;
    let settings = settings_of(py, config)?;
    let (bytes, config) = (data.as_bytes(py), settings.get().config());
    let (now_ms, profile) = (now_ms.clock()?, profile_of(profile)?);
    let version = release_of(config, kafka_version)?;
    let verdict = detached(py, || {
        with_validator(|validator| {
            ottla_leader::validate_stored(
                bytes,
                base_offset,
                config,
                now_ms,
                profile,
                version,
                validator,
            )
        })
    })?;
    Ok(Verdict::new(py, SharedBytes::empty(py), verdict.into()))
}

/// Takes a record set apart: good records, records to blame, and bytes that are refused whole.
///
/// Of several batches each is judged alone, where a request of this version may carry several. With
/// origin ``"replication"`` a batch is held to the rules of the format besides.
///
/// Returns a list of :class:`SetPart`, which follow one another and together are the set.
///
/// Args and errors are those of :func:`validate`.
#[pyfunction]
#[pyo3(signature = (
    records, config=None, *, now_ms, api_version=Some(Integer::Of(11)), base_offset=Integer::Of(0),
    leader_epoch=Integer::Of(0), origin=OriginName(Origin::Client), transactional_id=None,
    profile="strict", kafka_version=None
), text_signature = "(records, config=None, *, now_ms, api_version=11, base_offset=0, \
    leader_epoch=0, origin='client', transactional_id=None, profile='strict', kafka_version=None)")]
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
pub fn validate_each(
    py: Python<'_>,
    records: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now_ms: Integer,
    api_version: Option<Integer>,
    base_offset: Integer,
    leader_epoch: Integer,
    origin: OriginName,
    transactional_id: Option<&str>,
    profile: &str,
    kafka_version: Option<&str>,
) -> PyResult<Vec<SetPart>> {
    let data = SharedBytes::of(records)?;
    let settings = settings_of(py, config)?;
    let config = settings.get().config();
    let request = RequestOptions {
        now_ms,
        api_version,
        base_offset,
        leader_epoch,
        origin: origin.0,
        has_transactional_id: transactional_id.is_some(),
        profile,
        kafka_version,
    }
    .request(config)?;
    let bytes = data.as_bytes(py);
    let parts = detached(py, || {
        with_validator(|validator| {
            with_checker(Level::Full, |checker| {
                ottla_leader::validate_each(bytes, config, &request, validator, checker)
            })
        })
    })?;
    Ok(parts.into_iter().map(|part| SetPart::new(data.clone_ref(py), part)).collect())
}

/// A part of a record set: a batch, or bytes that are none.
#[pyclass(frozen, module = "ottla._engine")]
pub struct SetPart {
    data: SharedBytes,
    /// Where it begins, in bytes of the set.
    #[pyo3(get)]
    position: usize,
    /// Its bytes.
    #[pyo3(get)]
    size: usize,
    /// The batch, if its records are told apart.
    info: Option<BatchInfo>,
    record_errors: Vec<ottla_leader::RecordError>,
    refusal: Option<PartRefusal>,
}

impl SetPart {
    fn new(data: SharedBytes, part: ottla_leader::SetPart) -> Self {
        let ottla_leader::SetPart { position, size, verdict } = part;
        let (info, record_errors, refusal) = match verdict {
            PartVerdict::Accepted(info) => (Some(info), Vec::new(), None),
            PartVerdict::RecordsRefused(info, errors) => (Some(info), errors, None),
            PartVerdict::Refused(refusal) => (None, Vec::new(), Some(refusal)),
        };
        Self { data, position, size, info, record_errors, refusal }
    }
}

#[pymethods]
impl SetPart {
    /// Whether it is refused whole: no record of it is told apart.
    #[getter]
    fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Kafka's error code; ``None`` where it is not refused whole, or only incomplete.
    #[getter]
    fn error(&self) -> Option<i16> {
        self.refusal.as_ref()?.error
    }

    /// Kafka's name of the error, or the kind of fault; ``None`` where it is not refused whole.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.refusal.as_ref().map(|refusal| refusal.reason)
    }

    /// What was found and expected; ``None`` where it is not refused whole.
    #[getter]
    fn message(&self) -> Option<&str> {
        self.refusal.as_ref().map(|refusal| refusal.message.as_str())
    }

    /// The first record to blame of a part that is refused whole, where one is.
    #[getter]
    fn record_index(&self) -> Option<u32> {
        self.refusal.as_ref()?.record_index
    }

    /// The records to blame, ascending; the others of :meth:`records` are good.
    #[getter]
    fn record_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        RecordError::tuple(py, &self.record_errors)
    }

    /// The records, none of a part that is refused whole.
    fn records(&self, py: Python<'_>) -> PyResult<Option<RecordIterator>> {
        self.info.map(|info| iterate(py, &info, &self.data, 0)).transpose()
    }
}

/// Returns the rows in which the profiles differ: ``id``, ``kafka``, ``strict``, ``why``.
#[pyfunction]
pub fn profile_differences(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
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

/// Returns the rows in which releases of Kafka decide otherwise: ``id``, ``releases`` (the first of
/// each line that decides the newer way), ``before``, ``since``.
#[pyfunction]
pub fn release_differences(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |row: &ReleaseDifference| {
        let releases: Vec<_> = row.first_releases().iter().map(KafkaVersion::to_string).collect();
        let dict = PyDict::new(py);
        dict.set_item("id", row.id())?;
        dict.set_item("releases", releases)?;
        dict.set_item("before", row.before())?;
        dict.set_item("since", row.since())?;
        Ok(dict)
    };
    ReleaseDifference::ALL.iter().map(row).collect()
}

/// Returns the releases of Kafka that are known, oldest first.
#[pyfunction]
pub fn kafka_versions() -> Vec<String> {
    KafkaVersion::RELEASES.iter().map(KafkaVersion::to_string).collect()
}

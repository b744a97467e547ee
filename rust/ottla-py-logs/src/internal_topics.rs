//! Coordinators' topics decoded, and what they say held against the logs.

use crate::findings::Finding;
use crate::place::Place;
use crate::scanners::with_scanner;
use ottla_audit::committed_offsets::{LogRange, judge};
use ottla_audit::{FindingKind, Isolation, PartitionReader, ReadOptions, RecordState};
use ottla_format::batch::Record as CoreRecord;
use ottla_format::check::Level;
use ottla_log::internal_topics::consumer_offsets::{CommittedOffsets, SharedTopic};
use ottla_log::internal_topics::schema::{DecodeError, Value, uuid_text};
use ottla_log::internal_topics::share_group_state::ShareStates;
use ottla_log::internal_topics::transaction_state::{
    self, Standing, TransactionState, TransactionalId, TransactionalIds,
};
use ottla_log::internal_topics::{self, RecordValue, feature_level};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

type TopicRows<'py> = Vec<Bound<'py, PyDict>>;

/// What could not be decoded: how many records, the offset of the first and why, entries left out.
type LeftOut = (u64, Option<(i64, String)>, u64);

/// Shows every record of a partition that counts for a coordinator. Stops on Ctrl-C.
fn each_record(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    start_offset: i64,
    mut on_record: impl FnMut(i64, &[u8], Option<&[u8]>) + Send,
) -> PyResult<()> {
    let (places, bases): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
    let options = ReadOptions {
        isolation: Isolation::Decided,
        start_offset,
        end_offset: i64::MAX,
        stopped_cleanly: false,
    };
    let mut reader = PartitionReader::new(bases, options);
    let mut visit = |record: &CoreRecord<'_>| {
        if let Some(key) = record.key {
            on_record(record.offset, key, record.value);
        }
    };
    let mut opened = None;
    while let Some(segment) = reader.segment() {
        py.check_signals()?;
        let Some(place) = places.get(segment) else { break };
        let file = match opened.take() {
            Some((known, file)) if known == segment => file,
            _ => place.open_detached(py)?,
        };
        let visited = detached(py, || {
            with_scanner(Level::Crc, |scanner| reader.visit(scanner, &file, &mut visit))
        })?;
        let more = visited.map_err(|error| place.error(py, &error))?;
        if !more {
            break;
        }
        opened = Some((segment, file));
    }
    Ok(())
}

fn with_message(error: Option<(i64, DecodeError)>) -> Option<(i64, String)> {
    error.map(|(offset, error)| (offset, error.to_string()))
}

/// The committed offsets in a partition of ``__consumer_offsets``: rows, and what was left out.
///
/// Args:
///     segments: path and base offset of each segment, in order; the path, or an object that reads it, is
///         as of :class:`Segment`.
///     start_offset: the log start offset.
///
/// Raises:
///     OSError: a file cannot be read.
#[pyfunction]
pub fn committed_offsets(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    start_offset: i64,
) -> PyResult<(TopicRows<'_>, LeftOut)> {
    let mut found = CommittedOffsets::default();
    each_record(py, segments, start_offset, |offset, key, value| found.add(offset, key, value))?;
    let rows = found.offsets.iter().map(|((group, topic, partition), committed)| {
        let row = PyDict::new(py);
        row.set_item("group", group)?;
        row.set_item("type", found.groups.get(group).map(|kind| kind.name()))?;
        row.set_item("topic", topic)?;
        row.set_item("partition", partition)?;
        row.set_item("offset", committed.offset)?;
        row.set_item("leader_epoch", committed.leader_epoch)?;
        row.set_item("metadata", &committed.metadata)?;
        row.set_item("commit_timestamp_ms", committed.commit_timestamp_ms)?;
        row.set_item("expire_timestamp_ms", committed.expire_timestamp_ms)?;
        Ok(row)
    });
    let mut rows = rows.collect::<PyResult<Vec<_>>>()?;
    for (group, kind) in &found.groups {
        let is_told = found.offsets.range((group.clone(), String::new(), i32::MIN)..).next();
        if is_told.is_some_and(|((committer, ..), _)| committer == group) {
            continue;
        }
        for (id, topic, partition) in places_of(found.shared.get(group)) {
            let row = PyDict::new(py);
            row.set_item("group", group)?;
            row.set_item("type", kind.name())?;
            row.set_item("topic", topic)?;
            row.set_item("topic_id", id)?;
            row.set_item("partition", partition)?;
            rows.push(row);
        }
    }
    Ok((rows, (found.undecoded, with_message(found.first_error), found.left_out)))
}

/// The places of a share group, or none in particular: topic id, topic and partition.
fn places_of(
    shared: Option<&Vec<SharedTopic>>,
) -> Vec<(Option<String>, Option<&str>, Option<i32>)> {
    let topics = shared.into_iter().flatten();
    let places: Vec<_> = topics
        .flat_map(|(id, topic, partitions)| {
            let place = move |partition: &i32| {
                (Some(uuid_text(*id)), Some(topic.as_str()), Some(*partition))
            };
            partitions.iter().map(place)
        })
        .collect();
    if places.is_empty() { vec![(None, None, None)] } else { places }
}

/// The states in a partition of ``__share_group_state``: rows, and what was left out.
///
/// Args and errors are those of :func:`committed_offsets`.
#[pyfunction]
pub fn share_group_states(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    start_offset: i64,
) -> PyResult<(TopicRows<'_>, LeftOut)> {
    let mut found = ShareStates::default();
    each_record(py, segments, start_offset, |offset, key, value| found.add(offset, key, value))?;
    let rows = found.states.iter().map(|((group, topic_id, partition), state)| {
        let row = PyDict::new(py);
        row.set_item("group", group)?;
        row.set_item("topic_id", uuid_text(*topic_id))?;
        row.set_item("partition", partition)?;
        row.set_item("offset", state.start_offset)?;
        row.set_item("leader_epoch", state.leader_epoch)?;
        row.set_item("commit_timestamp_ms", state.write_timestamp_ms)?;
        Ok(row)
    });
    let rows = rows.collect::<PyResult<_>>()?;
    Ok((rows, (found.undecoded, with_message(found.first_error), found.left_out)))
}

/// The transactional ids in a partition of ``__transaction_state``: rows, and what was left out.
///
/// Args and errors are those of :func:`committed_offsets`.
#[pyfunction]
pub fn transactional_ids(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    start_offset: i64,
) -> PyResult<(TopicRows<'_>, LeftOut)> {
    let mut found = TransactionalIds::default();
    each_record(py, segments, start_offset, |offset, key, value| found.add(offset, key, value))?;
    let rows = found.ids.iter().map(|(id, known)| {
        let row = PyDict::new(py);
        row.set_item("transactional_id", id)?;
        row.set_item("producer_id", known.producer_id)?;
        row.set_item("producer_epoch", known.producer_epoch)?;
        row.set_item("state", known.state.name())?;
        row.set_item("partitions", &known.partitions)?;
        row.set_item("timeout_ms", known.timeout_ms)?;
        row.set_item("last_update_ms", known.last_update_ms)?;
        row.set_item("start_ms", known.start_ms)?;
        Ok(row)
    });
    let rows = rows.collect::<PyResult<_>>()?;
    Ok((rows, (found.undecoded, with_message(found.first_error), found.left_out)))
}

/// The finding about a committed offset, if it is one.
///
/// Args:
///     group, topic, partition, offset: what was committed.
///     log_start_offset, log_end_offset: of the partition.
///     findings: name, first and last offset and next good offset of the findings about it.
#[pyfunction]
#[pyo3(signature = (group, topic, partition, offset, *, log_start_offset, log_end_offset, findings))]
pub fn judge_committed_offset(
    group: String,
    topic: String,
    partition: i32,
    offset: i64,
    log_start_offset: i64,
    log_end_offset: i64,
    findings: Vec<(String, i64, i64, Option<i64>)>,
) -> Option<Finding> {
    let is_damage = |kind: FindingKind| kind.row().records == RecordState::Unreadable;
    let damage = findings
        .into_iter()
        .filter(|(name, ..)| FindingKind::from_name(name).is_some_and(is_damage));
    let lost = damage.map(|(_, first, last, next)| (first, last, next)).collect();
    let log = LogRange { log_start_offset, log_end_offset, lost };
    judge(&(group, topic, partition), offset, &log).map(Finding::from)
}

/// What the coordinator says about a transaction without an end marker: ``ongoing`` or ``moved-on``.
///
/// Args:
///     known: the row of :func:`transactional_ids` of its producer.
///     producer_epoch, topic, partition: of the transaction.
///
/// Raises:
///     KeyError: a field of the row is missing.
#[pyfunction]
pub fn judge_open_transaction(
    known: &Bound<'_, PyDict>,
    producer_epoch: i16,
    topic: &str,
    partition: i32,
) -> PyResult<&'static str> {
    let field = |name: &str| known.as_any().get_item(name);
    let known = TransactionalId {
        producer_id: field("producer_id")?.extract()?,
        producer_epoch: field("producer_epoch")?.extract()?,
        state: TransactionState::from_name(&field("state")?.extract::<String>()?),
        partitions: field("partitions")?.extract()?,
        timeout_ms: field("timeout_ms")?.extract()?,
        last_update_ms: field("last_update_ms")?.extract()?,
        start_ms: field("start_ms")?.extract()?,
    };
    Ok(match transaction_state::judge(&known, producer_epoch, topic, partition) {
        Standing::Ongoing => "ongoing",
        Standing::MovedOn => "moved-on",
    })
}

/// The release that brokers have at least, as major and minor, by the value of a record of the
/// cluster's metadata; None where it is no level of ``metadata.version``.
#[pyfunction]
pub fn least_release(value: &[u8]) -> Option<(u8, u8)> {
    feature_level::least_release(value)
}

/// Decodes a record of ``__consumer_offsets``, ``__share_group_state`` or ``__transaction_state``, of
/// any version up to Kafka 4.4.
///
/// Args:
///     topic: which of them; of any other topic the answer is ``None``.
///     key, value: of the record.
///
/// Returns:
///     ``type``, ``key``, ``version`` and ``value``, the latter two ``None`` for a tombstone and for
///     values that no released broker writes. Fields have Kafka's names in
///     snake case, those a version lacks are left out, UUIDs are text; the subscription and
///     assignment of a group's member are bytes, as its clients wrote them. What cannot be decoded, as a
///     type or version of a later release, gives ``fault`` alone, a sentence.
///
/// >>> import ottla
/// >>> record = next(ottla.read_partition("examples/data/__consumer_offsets-0", from_offset=12))
/// >>> ottla.decode_record("__consumer_offsets", record.key, record.value).get("type")
/// 'offset-commit'
#[pyfunction]
#[pyo3(signature = (topic, key, value))]
pub fn decode_record<'py>(
    py: Python<'py>,
    topic: &str,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(decoded) = internal_topics::decode(topic, key.unwrap_or_default(), value) else {
        return Ok(None);
    };
    let row = PyDict::new(py);
    match decoded {
        Ok(decoded) => {
            row.set_item("type", decoded.name)?;
            row.set_item("key", object(py, &decoded.key)?)?;
            let (version, value) = match &decoded.value {
                RecordValue::Value { version, value } => (Some(*version), Some(object(py, value)?)),
                RecordValue::Tombstone | RecordValue::Opaque => (None, None),
            };
            row.set_item("version", version)?;
            row.set_item("value", value)?;
        }
        Err(error) => row.set_item("fault", error.to_string())?,
    }
    Ok(Some(row))
}

fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Uuid(bytes) => PyString::new(py, &uuid_text(*bytes)).into_any(),
        Value::Array(values) => {
            let values = values.iter().map(|value| object(py, value));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Struct(fields) => {
            let row = PyDict::new(py);
            for (name, value) in fields {
                row.set_item(name, object(py, value)?)?;
            }
            row.into_any()
        }
    })
}

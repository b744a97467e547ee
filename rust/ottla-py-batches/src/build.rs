//! Building batches: from records and columns to `bytes`.

use crate::bytes::bytes_of;
use crate::calls::attached;
use crate::check::with_checker;
use crate::integers::{int, of_argument};
use crate::numpy_columns::{Array, ByteColumn, contiguous};
use ottla_format::attributes::Compression;
use ottla_format::builder::{
    self, BatchFields, BuildError, ColumnsPlan, LegacyFields, NewControlRecord, NewRecord,
};
use ottla_format::check::Level;
use ottla_kernels::RecordColumns;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyString};

pub(crate) fn refused(error: BuildError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn codec(name: &str) -> PyResult<Compression> {
    Compression::from_name(name).ok_or_else(|| {
        let names = "'none', 'gzip', 'snappy', 'lz4' or 'zstd'";
        PyValueError::new_err(format!("compression is {names}, not '{name}'"))
    })
}

/// A record as Python passes it: timestamp, key, value, headers, offset delta.
type RecordRow<'py> = (
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Vec<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)>>,
    Bound<'py, PyAny>,
);

/// A record that holds its bytes.
pub(crate) struct OwnedRecord<'py> {
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Bound<'py, PyBytes>>,
    pub(crate) value: Option<Bound<'py, PyBytes>>,
    pub(crate) headers: Vec<OwnedHeader<'py>>,
    pub(crate) offset_delta: Option<i32>,
}

/// A header that holds its bytes.
pub(crate) type OwnedHeader<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

fn owned(index: usize, row: RecordRow<'_>) -> PyResult<OwnedRecord<'_>> {
    let (timestamp, key, value, headers, offset_delta) = row;
    let py = timestamp.py();
    let named = |field, error| of_argument(py, &format!("records[{index}].{field}"), error);
    let headers = headers.unwrap_or_default();
    Ok(OwnedRecord {
        timestamp: int(&timestamp).map_err(|error| named("timestamp", error))?,
        key: optional(key)?,
        value: optional(value)?,
        headers: headers.into_iter().map(owned_header).collect::<PyResult<_>>()?,
        offset_delta: int(&offset_delta).map_err(|error| named("offset_delta", error))?,
    })
}

/// Key and value of a header; a key may be text.
pub(crate) fn owned_header<'py>(
    (key, value): (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>),
) -> PyResult<OwnedHeader<'py>> {
    let key = match key.cast::<PyString>() {
        Ok(text) => PyBytes::new(key.py(), text.to_str()?.as_bytes()),
        Err(_) => bytes_of(&key)?,
    };
    Ok((key, optional(value)?))
}

fn optional(part: Option<Bound<'_, PyAny>>) -> PyResult<Option<Bound<'_, PyBytes>>> {
    part.map(|part| bytes_of(&part)).transpose()
}

pub(crate) fn borrowed<'a>(record: &'a OwnedRecord<'_>) -> NewRecord<'a> {
    NewRecord {
        timestamp: record.timestamp,
        key: record.key.as_ref().map(PyBytesMethods::as_bytes),
        value: record.value.as_ref().map(PyBytesMethods::as_bytes),
        headers: borrowed_headers(&record.headers),
        offset_delta: record.offset_delta,
    }
}

pub(crate) fn borrowed_headers<'a>(
    headers: &'a [OwnedHeader<'_>],
) -> Vec<(&'a [u8], Option<&'a [u8]>)> {
    headers
        .iter()
        .map(|(key, value)| (key.as_bytes(), value.as_ref().map(PyBytesMethods::as_bytes)))
        .collect()
}

fn all_owned(rows: Vec<RecordRow<'_>>) -> PyResult<Vec<OwnedRecord<'_>>> {
    rows.into_iter().enumerate().map(|(index, row)| owned(index, row)).collect()
}

/// Builds one batch of magic 2 from rows of timestamp, key, value, headers and offset delta.
///
/// Raises:
///     ValueError: what Kafka's own builder refuses.
#[pyfunction]
#[pyo3(signature = (
    rows, *, base_offset=0, compression="none", compression_level=None, partition_leader_epoch=-1,
    producer_id=-1, producer_epoch=-1, base_sequence=-1, is_transactional=false,
    log_append_time_ms=None, delete_horizon_ms=None
))]
#[expect(clippy::too_many_arguments, reason = "one per field, by name")]
pub fn build_batch<'py>(
    py: Python<'py>,
    rows: Vec<RecordRow<'py>>,
    #[pyo3(from_py_with = int)] base_offset: i64,
    compression: &str,
    #[pyo3(from_py_with = int)] compression_level: Option<i32>,
    #[pyo3(from_py_with = int)] partition_leader_epoch: i32,
    #[pyo3(from_py_with = int)] producer_id: i64,
    #[pyo3(from_py_with = int)] producer_epoch: i16,
    #[pyo3(from_py_with = int)] base_sequence: i32,
    is_transactional: bool,
    #[pyo3(from_py_with = int)] log_append_time_ms: Option<i64>,
    #[pyo3(from_py_with = int)] delete_horizon_ms: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let fields = BatchFields {
        base_offset,
        partition_leader_epoch,
        log_append_time_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        is_transactional,
        is_control: false,
        compression: codec(compression)?,
        compression_level,
        delete_horizon_ms,
    };
    let rows = all_owned(rows)?;
    let records: Vec<_> = rows.iter().map(borrowed).collect();
    let batch = attached(py, || {
        with_checker(Level::Full, |c| builder::build_batch(&fields, &records, c.codecs()))
    })?;
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

/// Builds a control batch of one end-transaction marker (KIP-98).
///
/// Args:
///     kind: ``"commit"`` or ``"abort"``.
///
/// Raises:
///     ValueError: another kind, or no producer.
#[pyfunction]
#[pyo3(signature = (
    kind, *, producer_id, producer_epoch, coordinator_epoch, timestamp, base_offset=0,
    partition_leader_epoch=-1
))]
#[expect(clippy::too_many_arguments, reason = "one per field, by name")]
pub fn build_control_batch<'py>(
    py: Python<'py>,
    kind: &str,
    #[pyo3(from_py_with = int)] producer_id: i64,
    #[pyo3(from_py_with = int)] producer_epoch: i16,
    #[pyo3(from_py_with = int)] coordinator_epoch: i32,
    #[pyo3(from_py_with = int)] timestamp: i64,
    #[pyo3(from_py_with = int)] base_offset: i64,
    #[pyo3(from_py_with = int)] partition_leader_epoch: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let record = match kind {
        "commit" => NewControlRecord::Commit { coordinator_epoch },
        "abort" => NewControlRecord::Abort { coordinator_epoch },
        _ => {
            let message = format!("kind is 'commit' or 'abort', not '{kind}'");
            return Err(PyValueError::new_err(message));
        }
    };
    let fields = BatchFields {
        base_offset,
        partition_leader_epoch,
        producer_id,
        producer_epoch,
        ..BatchFields::default()
    };
    let batch = attached(py, || {
        with_checker(Level::Full, |c| {
            builder::build_control_batch(&fields, timestamp, record, c.codecs())
        })
    })?;
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

/// Builds a control batch of one record that a KRaft quorum keeps for itself: a change of its leader,
/// the head or the foot of a snapshot.
///
/// Args:
///     kind: type of the control record.
///     value: of the record.
#[pyfunction]
#[pyo3(signature = (kind, value, *, timestamp, base_offset=0, partition_leader_epoch=-1))]
pub fn build_quorum_batch<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = int)] kind: i16,
    value: &[u8],
    #[pyo3(from_py_with = int)] timestamp: i64,
    #[pyo3(from_py_with = int)] base_offset: i64,
    #[pyo3(from_py_with = int)] partition_leader_epoch: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let record = NewControlRecord::OfQuorum { kind, value };
    let fields = BatchFields { base_offset, partition_leader_epoch, ..BatchFields::default() };
    let batch = with_checker(Level::Full, |c| {
        builder::build_control_batch(&fields, timestamp, record, c.codecs())
    });
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

/// Builds a message set of magic 0 or 1: one entry per record, or one compressed wrapper around all of
/// them.
///
/// Raises:
///     ValueError: what the format cannot express.
#[pyfunction]
#[pyo3(signature = (
    rows, *, magic, base_offset=0, compression="none", compression_level=None,
    log_append_time_ms=None
))]
pub fn build_message_set<'py>(
    py: Python<'py>,
    rows: Vec<RecordRow<'py>>,
    #[pyo3(from_py_with = int)] magic: i8,
    #[pyo3(from_py_with = int)] base_offset: i64,
    compression: &str,
    #[pyo3(from_py_with = int)] compression_level: Option<i32>,
    #[pyo3(from_py_with = int)] log_append_time_ms: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let compression = codec(compression)?;
    let fields =
        LegacyFields { magic, base_offset, log_append_time_ms, compression, compression_level };
    let rows = all_owned(rows)?;
    let records: Vec<_> = rows.iter().map(borrowed).collect();
    let set = attached(py, || {
        with_checker(Level::Full, |c| builder::build_legacy(&fields, &records, c.codecs()))
    })?;
    Ok(PyBytes::new(py, &set.map_err(refused)?))
}

/// Builds one batch of magic 2 from columns: timestamps (int64), and keys and values as tuples of
/// offsets (int32 or int64), data (uint8) and optionally which are not null.
///
/// Raises:
///     ValueError: columns that do not fit together, or what Kafka's own builder refuses.
#[pyfunction]
#[pyo3(signature = (
    timestamps, keys, values, *, base_offset=0, compression="none", compression_level=None,
    partition_leader_epoch=-1, producer_id=-1, producer_epoch=-1, base_sequence=-1,
    is_transactional=false, log_append_time_ms=None
))]
#[expect(clippy::too_many_arguments, reason = "one per field, by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn build_batch_from_columns<'py>(
    py: Python<'py>,
    timestamps: Array<'py, i64>,
    keys: Option<ByteColumn<'py>>,
    values: Option<ByteColumn<'py>>,
    #[pyo3(from_py_with = int)] base_offset: i64,
    compression: &str,
    #[pyo3(from_py_with = int)] compression_level: Option<i32>,
    #[pyo3(from_py_with = int)] partition_leader_epoch: i32,
    #[pyo3(from_py_with = int)] producer_id: i64,
    #[pyo3(from_py_with = int)] producer_epoch: i16,
    #[pyo3(from_py_with = int)] base_sequence: i32,
    is_transactional: bool,
    #[pyo3(from_py_with = int)] log_append_time_ms: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let fields = BatchFields {
        base_offset,
        partition_leader_epoch,
        log_append_time_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        is_transactional,
        is_control: false,
        compression: codec(compression)?,
        compression_level,
        delete_horizon_ms: None,
    };
    let columns = RecordColumns {
        timestamps: contiguous(&timestamps)?,
        keys: keys.as_ref().map(ByteColumn::borrow).transpose()?,
        values: values.as_ref().map(ByteColumn::borrow).transpose()?,
    };
    let plan = ColumnsPlan::new(&fields, columns).map_err(refused)?;
    if let Some(size) = plan.size() {
        return PyBytes::new_with(py, size, |batch| plan.write(batch).map_err(refused));
    }
    let batch = attached(py, || with_checker(Level::Full, |c| plan.build(c.codecs())))?;
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

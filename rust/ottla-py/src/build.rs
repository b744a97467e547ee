//! Building batches: records and columns in, `bytes` out.

use crate::bytes::bytes_of;
use crate::check::with_checker;
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use ottla_format::attributes::Compression;
use ottla_format::builder::{
    self, BatchFields, BuildError, ColumnsPlan, LegacyFields, NewControlRecord, NewRecord,
};
use ottla_format::check::Level;
use ottla_kernels::{BinaryColumn, Offsets, RecordColumns, Validity};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyString};

fn refused(error: BuildError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn codec(name: &str) -> PyResult<Compression> {
    Compression::from_name(name).ok_or_else(|| {
        let names = "'none', 'gzip', 'snappy', 'lz4' or 'zstd'";
        PyValueError::new_err(format!("compression is {names}, not '{name}'"))
    })
}

/// What a record is given as: timestamp, key, value, headers, offset delta.
type Row<'py> = (
    i64,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Vec<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)>>,
    Option<i32>,
);

/// A record with its bytes held.
struct Held<'py> {
    timestamp: i64,
    key: Option<Bound<'py, PyBytes>>,
    value: Option<Bound<'py, PyBytes>>,
    headers: Vec<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)>,
    offset_delta: Option<i32>,
}

fn held<'py>(row: Row<'py>) -> PyResult<Held<'py>> {
    let (timestamp, key, value, headers, offset_delta) = row;
    let optional = |part: Option<Bound<'py, PyAny>>| part.map(|part| bytes_of(&part)).transpose();
    let header_key = |key: Bound<'py, PyAny>| match key.cast::<PyString>() {
        Ok(text) => Ok(PyBytes::new(key.py(), text.to_str()?.as_bytes())),
        Err(_) => bytes_of(&key),
    };
    let headers = headers
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| Ok((header_key(key)?, optional(value)?)))
        .collect::<PyResult<_>>()?;
    Ok(Held { timestamp, key: optional(key)?, value: optional(value)?, headers, offset_delta })
}

fn borrowed<'a>(held: &'a Held<'_>) -> NewRecord<'a> {
    NewRecord {
        timestamp: held.timestamp,
        key: held.key.as_ref().map(PyBytesMethods::as_bytes),
        value: held.value.as_ref().map(PyBytesMethods::as_bytes),
        headers: held
            .headers
            .iter()
            .map(|(key, value)| (key.as_bytes(), value.as_ref().map(PyBytesMethods::as_bytes)))
            .collect(),
        offset_delta: held.offset_delta,
    }
}

fn hold(rows: Vec<Row<'_>>) -> PyResult<Vec<Held<'_>>> {
    rows.into_iter().map(held).collect()
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
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
pub(crate) fn build_batch<'py>(
    py: Python<'py>,
    rows: Vec<Row<'py>>,
    base_offset: i64,
    compression: &str,
    compression_level: Option<i32>,
    partition_leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
    log_append_time_ms: Option<i64>,
    delete_horizon_ms: Option<i64>,
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
    let held = hold(rows)?;
    let records: Vec<_> = held.iter().map(borrowed).collect();
    let batch = with_checker(Level::Full, |c| builder::build_batch(&fields, &records, c.codecs()));
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

/// Builds a control batch of one marker that ends a transaction (KIP-98).
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
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
pub(crate) fn build_control_batch<'py>(
    py: Python<'py>,
    kind: &str,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    timestamp: i64,
    base_offset: i64,
    partition_leader_epoch: i32,
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
    let batch = with_checker(Level::Full, |c| {
        builder::build_control_batch(&fields, timestamp, record, c.codecs())
    });
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

/// Builds a message set of magic 0 or 1: one entry a record, or one compressed wrapper of all.
///
/// Raises:
///     ValueError: what the format has no place for.
#[pyfunction]
#[pyo3(signature = (
    rows, *, magic, base_offset=0, compression="none", compression_level=None,
    log_append_time_ms=None
))]
pub(crate) fn build_message_set<'py>(
    py: Python<'py>,
    rows: Vec<Row<'py>>,
    magic: i8,
    base_offset: i64,
    compression: &str,
    compression_level: Option<i32>,
    log_append_time_ms: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let compression = codec(compression)?;
    let fields =
        LegacyFields { magic, base_offset, log_append_time_ms, compression, compression_level };
    let held = hold(rows)?;
    let records: Vec<_> = held.iter().map(borrowed).collect();
    let set = with_checker(Level::Full, |c| builder::build_legacy(&fields, &records, c.codecs()));
    Ok(PyBytes::new(py, &set.map_err(refused)?))
}

/// A column of byte strings, borrowed from NumPy: offsets, data, and which are not null.
pub(crate) struct Column<'py> {
    offsets: ColumnOffsets<'py>,
    data: PyReadonlyArray1<'py, u8>,
    validity: ColumnValidity<'py>,
}

enum ColumnOffsets<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

enum ColumnValidity<'py> {
    All,
    Bools(PyReadonlyArray1<'py, bool>),
    Bitmap(PyReadonlyArray1<'py, u8>, usize),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Column<'py> {
    type Error = PyErr;

    fn extract(column: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);
        let wrong = |what: &str| {
            PyTypeError::new_err(format!("{what}; a column is (offsets, data), arrays of NumPy"))
        };
        let (offsets, data, validity): Parts<'py> = match column.len()? {
            2 => {
                let (offsets, data) = column.extract()?;
                (offsets, data, None)
            }
            _ => column.extract()?,
        };
        let offsets = match (offsets.extract(), offsets.extract()) {
            (Ok(narrow), _) => ColumnOffsets::I32(narrow),
            (_, Ok(wide)) => ColumnOffsets::I64(wide),
            _ => return Err(wrong("offsets are not an int32 or int64 array")),
        };
        let data = data.extract().map_err(|_| wrong("data are not an uint8 array"))?;
        let validity = match validity {
            None => ColumnValidity::All,
            Some(validity) => {
                if let Ok(bools) = validity.extract() {
                    ColumnValidity::Bools(bools)
                } else {
                    let (bits, first): (PyReadonlyArray1<'py, u8>, usize) = validity.extract()?;
                    ColumnValidity::Bitmap(bits, first)
                }
            }
        };
        Ok(Self { offsets, data, validity })
    }
}

/// The numbers of an array that lie side by side.
pub(crate) fn contiguous<'a, T: numpy::Element>(
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| {
        let strides = array.strides().first().copied().unwrap_or_default();
        PyValueError::new_err(format!(
            "an array with stride {strides} is not contiguous; pass numpy.ascontiguousarray of it"
        ))
    })
}

fn column<'a>(column: &'a Column<'_>) -> PyResult<BinaryColumn<'a>> {
    Ok(BinaryColumn {
        offsets: match &column.offsets {
            ColumnOffsets::I32(offsets) => Offsets::I32(contiguous(offsets)?),
            ColumnOffsets::I64(offsets) => Offsets::I64(contiguous(offsets)?),
        },
        data: contiguous(&column.data)?,
        validity: match &column.validity {
            ColumnValidity::All => Validity::All,
            ColumnValidity::Bools(bools) => Validity::Bools(contiguous(bools)?),
            ColumnValidity::Bitmap(bits, first_bit) => {
                Validity::Bitmap { bits: contiguous(bits)?, first_bit: *first_bit }
            }
        },
    })
}

/// Builds one batch of magic 2 from columns: timestamps (int64) and keys and values as tuples of
/// offsets (int32 or int64), data (uint8) and which are not null.
///
/// Raises:
///     ValueError: columns that do not fit together, or what Kafka's own builder refuses.
#[pyfunction]
#[pyo3(signature = (
    timestamps, keys, values, *, base_offset=0, compression="none", compression_level=None,
    partition_leader_epoch=-1, producer_id=-1, producer_epoch=-1, base_sequence=-1,
    is_transactional=false, log_append_time_ms=None
))]
#[expect(clippy::too_many_arguments, reason = "one a field, by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn build_batch_from_columns<'py>(
    py: Python<'py>,
    timestamps: PyReadonlyArray1<'py, i64>,
    keys: Option<Column<'py>>,
    values: Option<Column<'py>>,
    base_offset: i64,
    compression: &str,
    compression_level: Option<i32>,
    partition_leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
    log_append_time_ms: Option<i64>,
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
        keys: keys.as_ref().map(column).transpose()?,
        values: values.as_ref().map(column).transpose()?,
    };
    let plan = ColumnsPlan::new(&fields, columns).map_err(refused)?;
    if let Some(size) = plan.size() {
        return PyBytes::new_with(py, size, |batch| plan.write(batch).map_err(refused));
    }
    let batch = with_checker(Level::Full, |c| plan.build(c.codecs()));
    Ok(PyBytes::new(py, &batch.map_err(refused)?))
}

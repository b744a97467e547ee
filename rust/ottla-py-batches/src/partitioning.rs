//! The partitions of many keys at once, and the rows of each partition.

use crate::build::refused;
use crate::calls::detached;
use crate::integers::int;
use crate::kernels::require_numpy;
use crate::numpy_columns::{Array, contiguous};
use crate::row_column::{RowColumn, part_of};
use numpy::PyArray1;
use ottla_format::builder::{BuildError, rows_of, value_at};
use ottla_format::limits::MAX_PARTITIONS;
use ottla_format::partitioning::{self, partition_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytesMethods;

/// The partition of each key, as Java's clients choose it; -1 for a null key.
///
/// Args:
///     keys: a list of bytes-like objects and ``None``; or a column, ``(offsets, data)`` or
///         ``(offsets, data, validity)`` of NumPy.
///     count: how many partitions there are.
///
/// Raises:
///     TypeError: a key is no bytes.
///     ValueError: no partitions, or offsets outside the data.
///
/// >>> from ottla.records import partitions_of
/// >>> partitions_of([b"foobar", None], 10).tolist()
/// [6, -1]
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "the borrow of an array ends with the call")]
pub fn partitions_of<'py>(
    py: Python<'py>,
    keys: RowColumn<'py>,
    #[pyo3(from_py_with = int)] count: u32,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    check_count(count)?;
    require_numpy(py, "Take murmur2 of each key")?;
    // A count within the bound fits.
    let number = |key: Option<&[u8]>| {
        key.and_then(|key| partition_of(key, count)).map_or(-1, |partition| partition as i32)
    };
    let partitions = match &keys {
        RowColumn::Objects(list) => {
            let keys = list.iter().map(|key| part_of(&key, "keys"));
            keys.map(|key| Ok(number(key?.as_ref().map(PyBytesMethods::as_bytes))))
                .collect::<PyResult<_>>()?
        }
        RowColumn::Bytes(column) => {
            let column = column.borrow()?;
            let rows = 0..rows_of(&column);
            let partitions = detached(py, || {
                rows.map(|row| value_at(&column, row).map(number))
                    .collect::<Result<_, BuildError>>()
            })?;
            partitions.map_err(refused)?
        }
    };
    Ok(PyArray1::from_vec(py, partitions))
}

/// The rows of each partition.
///
/// Returns the rows by partition, in order, as an int64 array; and where those of each partition begin
/// in it, with the end of the last, as an int64 array of `count` + 1.
///
/// Args:
///     partitions: an int32 array with the partition of each row.
///     count: how many partitions there are.
///
/// Raises:
///     ValueError: a row has a partition that does not exist.
///
/// >>> import numpy
/// >>> from ottla.records import rows_by_partition
/// >>> rows, bounds = rows_by_partition(numpy.array([1, 0, 1], "int32"), 3)
/// >>> rows.tolist(), bounds.tolist()
/// ([1, 0, 2], [0, 1, 3, 3])
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "the borrow of an array ends with the call")]
#[expect(clippy::type_complexity, reason = "a pair of arrays")]
pub fn rows_by_partition<'py>(
    py: Python<'py>,
    partitions: Array<'py, i32>,
    #[pyo3(from_py_with = int)] count: u32,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)> {
    check_count(count)?;
    let partitions = contiguous(&partitions)?;
    let (rows, bounds) = detached(py, || partitioning::rows_by_partition(partitions, count))?
        .map_err(|row| {
            let found = partitions.get(row).copied().unwrap_or_default();
            let message = format!(
                "row {row} is for partition {found}, expected 0 or more, and less than {count}"
            );
            PyValueError::new_err(message)
        })?;
    Ok((PyArray1::from_vec(py, rows), PyArray1::from_vec(py, bounds)))
}

fn check_count(count: u32) -> PyResult<()> {
    if (1..=MAX_PARTITIONS).contains(&count) {
        return Ok(());
    }
    let message = format!("{count} partitions, expected 1 to {MAX_PARTITIONS}");
    Err(PyValueError::new_err(message))
}

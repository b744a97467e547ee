//! Keys or values of rows, as a list of objects or as a column of NumPy.

use crate::build::refused;
use crate::bytes::bytes_of;
use crate::numpy_columns::ByteColumn;
use ottla_format::builder::{BuildError, rows_of, value_at};
use ottla_kernels::BinaryColumn;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Keys or values of rows.
pub enum RowColumn<'py> {
    /// Objects of bytes, or `None`.
    Objects(Bound<'py, PyList>),
    /// A column of NumPy's.
    Bytes(ByteColumn<'py>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for RowColumn<'py> {
    type Error = PyErr;

    fn extract(column: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match column.cast::<PyList>() {
            Ok(list) => Ok(Self::Objects(list.to_owned())),
            Err(_) => column.extract().map(Self::Bytes),
        }
    }
}

impl<'py> RowColumn<'py> {
    /// The column for the engine; `None` for a list.
    pub(crate) fn bytes(&self) -> PyResult<Option<BinaryColumn<'_>>> {
        match self {
            Self::Objects(_) => Ok(None),
            Self::Bytes(column) => Some(column.borrow()).transpose(),
        }
    }

    pub(crate) fn count(&self) -> PyResult<usize> {
        match self {
            Self::Objects(list) => Ok(list.len()),
            Self::Bytes(column) => Ok(rows_of(&column.borrow()?)),
        }
    }

    pub(crate) fn value(&self, row: usize, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self {
            Self::Objects(list) => {
                let rows = list.len();
                let value =
                    list.get_item(row).map_err(|_| refused(BuildError::Row { row, rows }))?;
                part_of(&value, name)
            }
            Self::Bytes(column) => {
                let value = value_at(&column.borrow()?, row).map_err(refused)?;
                Ok(value.map(|value| PyBytes::new(column.py(), value)))
            }
        }
    }
}

/// Key or value.
#[inline]
pub(crate) fn part_of<'py>(
    part: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(Some(bytes.clone()));
    }
    if part.is_none() {
        return Ok(None);
    }
    bytes_of(part).map(Some).map_err(|error| named(part.py(), name, &error))
}

/// An error of a part, with the name of the argument.
#[cold]
fn named(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    PyTypeError::new_err(format!("{name}: {}", error.value(py)))
}

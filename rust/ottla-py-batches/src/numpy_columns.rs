//! Columns of NumPy, borrowed.

use crate::kernels::require_numpy;
use numpy::{Element, PyReadonlyArray1, PyUntypedArrayMethods};
use ottla_kernels::{BinaryColumn, Offsets, Validity};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Deref;

/// An array of NumPy, borrowed. Whether an object is one is known to NumPy alone, which may be missing.
pub struct Array<'py, T: Element>(PyReadonlyArray1<'py, T>);

impl<'a, 'py, T: Element> FromPyObject<'a, 'py> for Array<'py, T> {
    type Error = PyErr;

    fn extract(array: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        require_numpy(array.py(), "Pass records")?;
        Ok(Self(array.extract()?))
    }
}

impl<'py, T: Element> Deref for Array<'py, T> {
    type Target = PyReadonlyArray1<'py, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A column of byte strings, borrowed from NumPy: offsets, data, and which are not null.
pub struct ByteColumn<'py> {
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

impl<'a, 'py> FromPyObject<'a, 'py> for ByteColumn<'py> {
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
        require_numpy(column.py(), "Pass records")?;
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

/// The numbers of a contiguous array.
///
/// # Errors
/// `ValueError` for an array with gaps.
pub fn contiguous<'a, T: Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| {
        let strides = array.strides().first().copied().unwrap_or_default();
        PyValueError::new_err(format!(
            "an array with stride {strides} is not contiguous; pass numpy.ascontiguousarray of it"
        ))
    })
}

impl<'py> ByteColumn<'py> {
    pub(crate) fn py(&self) -> Python<'py> {
        self.data.py()
    }

    /// The column as the kernels take it.
    pub(crate) fn borrow(&self) -> PyResult<BinaryColumn<'_>> {
        Ok(BinaryColumn {
            offsets: match &self.offsets {
                ColumnOffsets::I32(offsets) => Offsets::I32(contiguous(offsets)?),
                ColumnOffsets::I64(offsets) => Offsets::I64(contiguous(offsets)?),
            },
            data: contiguous(&self.data)?,
            validity: match &self.validity {
                ColumnValidity::All => Validity::All,
                ColumnValidity::Bools(bools) => Validity::Bools(contiguous(bools)?),
                ColumnValidity::Bitmap(bits, first_bit) => {
                    Validity::Bitmap { bits: contiguous(bits)?, first_bit: *first_bit }
                }
            },
        })
    }
}

//! Memory of the engine as arrays of NumPy, which take it by address and keep its owner alive.

use crate::kernels::require_numpy;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

/// Numbers of an owner whose memory does not move.
#[pyclass(frozen, module = "ottla._engine")]
pub struct SharedArray {
    _owner: Arc<dyn Send + Sync>,
    address: usize,
    count: usize,
    kind: &'static str,
}

impl SharedArray {
    /// Numbers that belong to the owner, and NumPy's name of their type.
    pub fn of<T, O: Send + Sync + 'static>(
        owner: Arc<O>,
        numbers: &[T],
        kind: &'static str,
    ) -> Self {
        Self::at(owner, numbers.as_ptr() as usize, numbers.len(), kind)
    }

    /// So many numbers of the owner from an address on.
    pub(crate) fn at<O: Send + Sync + 'static>(
        owner: Arc<O>,
        address: usize,
        count: usize,
        kind: &'static str,
    ) -> Self {
        Self { _owner: owner, address, count, kind }
    }

    /// The array, which cannot be written to.
    pub fn array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if ASARRAY.get(py).is_none() {
            require_numpy(py, "Read records")?;
        }
        ASARRAY.import(py, "numpy", "asarray")?.call1((self,))
    }
}

#[pymethods]
impl SharedArray {
    /// NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.count,))?;
        interface.set_item("typestr", self.kind)?;
        interface.set_item("data", (self.address, true))?;
        Ok(interface)
    }
}

/// Numbers of bytes, as they are pickled.
pub fn numbers_of<T, const N: usize>(
    bytes: &Bound<'_, PyBytes>,
    read: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, &'static str> {
    match bytes.as_bytes().as_chunks::<N>() {
        (numbers, []) => Ok(numbers.iter().map(|number| read(*number)).collect()),
        _ => Err("a column that is cut"),
    }
}

/// Numbers as bytes, to pickle them.
pub fn bytes_of<'py, const N: usize, T: Copy>(
    py: Python<'py>,
    numbers: &[T],
    write: impl Fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|&number| write(number)).collect();
    PyBytes::new(py, &bytes)
}

//! Bytes from Python: `bytes` is borrowed, any other bytes-like object is copied once (even memory
//! behind a read-only view may still be written to).

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Below this the GIL is kept: to release it and acquire it again costs about 40 ns, as much as to
/// check a small batch.
pub(crate) const DETACH_BYTES: usize = 4096;

/// The bytes of any bytes-like object.
pub(crate) fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    // `bytes(5)` and `bytes([1])` mean something else: only objects with a buffer are accepted.
    let py = data.py();
    let view = py.get_type::<pyo3::types::PyMemoryView>().call1((data,)).map_err(|_| {
        let hint = if data.is_instance_of::<PyString>() { "; encode it first" } else { "" };
        let found = data.get_type().qualname().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("expected a bytes-like object, found {found}{hint}"))
    })?;
    Ok(py.get_type::<PyBytes>().call1((view,))?.cast_into::<PyBytes>()?)
}

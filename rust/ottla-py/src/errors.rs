//! Errors of the engine as the exceptions of `ottla.errors`.

use ottla_format::error::{Error, Family};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, "ottla.errors", name)
}

/// The exception for an error.
#[cold]
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    static CORRUPT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static TRUNCATED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static INVALID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static COMPRESSION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static LIMIT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let found = match error.kind.family() {
        Family::Corrupt => class(py, &CORRUPT, "CorruptRecordBatchError"),
        Family::Truncated => class(py, &TRUNCATED, "TruncatedBatchError"),
        Family::Invalid => class(py, &INVALID, "InvalidRecordError"),
        Family::Compression => class(py, &COMPRESSION, "UnsupportedCompressionError"),
        Family::Limit => class(py, &LIMIT, "LimitExceededError"),
    };
    match found {
        Ok(class) => PyErr::from_type(
            class.clone(),
            (
                error.to_string(),
                error.kind.name(),
                error.position,
                error.kind.error_code(),
                error.kind.record_index(),
            ),
        ),
        Err(error) => error,
    }
}

//! Errors of the engine as the exceptions of `ottla.errors`.

use ottla_format::error::{Error, Family};
use ottla_format::error_code::ErrorCode;
use ottla_log::sidefiles::snapshot::SnapshotError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, "ottla.errors", name)
}

/// The exception for an error.
#[cold]
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
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

/// The exception for a record set that a leader refuses.
#[cold]
pub(crate) fn refused(
    py: Python<'_>,
    message: &str,
    error: ErrorCode,
    record_errors: Bound<'_, PyTuple>,
) -> PyErr {
    static REFUSED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (code, name) = (error.code(), error.name());
    match class(py, &REFUSED, "RecordsRefusedError") {
        Ok(class) => {
            let said = format!("{name} ({code}): {message}");
            PyErr::from_type(class.clone(), (said, code, name, record_errors.unbind()))
        }
        Err(error) => error,
    }
}

/// The exception for bytes that are no producer snapshot.
#[cold]
pub fn snapshot_error(py: Python<'_>, error: &SnapshotError) -> PyErr {
    static SNAPSHOT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match class(py, &SNAPSHOT, "ProducerSnapshotError") {
        Ok(class) => PyErr::from_type(class.clone(), (error.to_string(), error.name())),
        Err(error) => error,
    }
}

//! The exceptions of a `DataPlane`.

use ottla_plane::{Handle, MalformedFrame, PlaneError, TopicId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A request whose connection is to be closed.
pub(crate) fn malformed(py: Python<'_>, error: &MalformedFrame) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ottla.errors", "MalformedFrameError") {
        Ok(class) => PyErr::from_type(class.clone(), (error.position, error.kind.to_string())),
        Err(error) => error,
    }
}

/// What is not done to a partition.
pub(crate) fn refused(py: Python<'_>, error: &PlaneError) -> PyErr {
    match error {
        PlaneError::Refused { error: code, message } => {
            ottla_py_batches::leader::kafka_error(py, *code, message.clone())
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

/// No partition has the handle.
pub(crate) fn closed(handle: Handle) -> PyErr {
    PyValueError::new_err(PlaneError::Closed { handle }.to_string())
}

/// A topic id, of 16 bytes.
pub(crate) fn topic_id_of(id: &[u8]) -> PyResult<TopicId> {
    TopicId::try_from(id).map_err(|_| {
        let found = id.len();
        PyValueError::new_err(format!("topic_id has {found} bytes, expected 16"))
    })
}

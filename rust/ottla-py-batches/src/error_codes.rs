//! The error codes of Kafka's protocol, for Python.

use ottla_format::error_code::ErrorCode as Code;
use pyo3::prelude::*;

/// An error code of Kafka's protocol.
#[pyclass(frozen, eq, hash, get_all, module = "ottla._engine")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// Its number on the wire.
    code: i16,
    /// Kafka's name, such as ``INVALID_RECORD``.
    name: &'static str,
    /// Whether a client may send the request again.
    is_retriable: bool,
    /// Whether a client refreshes its metadata before it does.
    refreshes_metadata: bool,
}

impl From<Code> for ErrorCode {
    fn from(error: Code) -> Self {
        Self {
            code: error.code(),
            name: error.name(),
            is_retriable: error.is_retriable(),
            refreshes_metadata: error.refreshes_metadata(),
        }
    }
}

#[pymethods]
impl ErrorCode {
    fn __repr__(&self) -> String {
        format!("<ErrorCode {} ({})>", self.name, self.code)
    }
}

/// Returns every error code of Kafka's protocol, ascending.
#[pyfunction]
pub fn error_codes() -> Vec<ErrorCode> {
    Code::ALL.iter().copied().map(ErrorCode::from).collect()
}

/// Returns the error codes that a leader answers with, 0 included, ascending.
#[pyfunction]
pub fn leader_error_codes() -> Vec<ErrorCode> {
    ottla_leader::LEADER_ERRORS.iter().copied().map(ErrorCode::from).collect()
}

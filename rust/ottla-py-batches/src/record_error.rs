//! `RecordError`: a record to blame for a refusal.

use crate::integers::int;
use ottla_format::error_code::ErrorCode;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A record to blame.
#[pyclass(frozen, eq, hash, from_py_object, module = "ottla")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RecordError {
    /// Its position in the batch, from 0.
    #[pyo3(get)]
    batch_index: u32,
    /// What was found and what was expected.
    #[pyo3(get)]
    message: String,
    error: ErrorCode,
}

impl RecordError {
    pub(crate) fn tuple<'py>(
        py: Python<'py>,
        errors: &[ottla_leader::RecordError],
    ) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, errors.iter().map(Self::of))
    }

    pub(crate) fn of(error: &ottla_leader::RecordError) -> Self {
        Self { batch_index: error.batch_index, message: error.message(), error: error.error }
    }
}

#[pymethods]
impl RecordError {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&str, &str, &str) = ("batch_index", "message", "error");

    #[new]
    fn new(
        #[pyo3(from_py_with = int)] batch_index: u32,
        message: String,
        #[pyo3(from_py_with = int)] error: i16,
    ) -> PyResult<Self> {
        Ok(Self { batch_index, message, error: error_of(error)? })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (u32, String, i16)) {
        let Self { batch_index, message, error } = this.get();
        (this.get_type().into_any(), (*batch_index, message.clone(), error.code()))
    }

    /// Kafka's error code of this record.
    #[getter]
    fn error(&self) -> i16 {
        self.error.code()
    }

    /// Kafka's name for the error.
    #[getter]
    fn error_name(&self) -> &'static str {
        self.error.name()
    }

    fn __repr__(&self) -> String {
        let Self { batch_index, message, error } = self;
        let error = error.code();
        format!("RecordError(batch_index={batch_index}, message={message:?}, error={error})")
    }
}

/// The error of a code.
pub(crate) fn error_of(code: i16) -> PyResult<ErrorCode> {
    let unknown =
        || PyValueError::new_err(format!("error is {code}, which no error of Kafka's has"));
    ErrorCode::from_code(code).ok_or_else(unknown)
}

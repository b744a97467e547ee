//! Everything that a verdict says, to compare and to pickle it.

use crate::record_error::{RecordError, error_of};
use ottla_format::error_code::ErrorCode;
use ottla_leader::{Metrics, Refusal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What a refusal says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) error: ErrorCode,
    pub(crate) message: String,
    pub(crate) record_errors: Vec<RecordError>,
    pub(crate) is_request_wide: bool,
    pub(crate) metrics: Metrics,
}

impl Said {
    pub(crate) fn of(refusal: &Refusal) -> Self {
        Self {
            error: refusal.error,
            message: refusal.message(),
            record_errors: refusal.record_errors.iter().map(RecordError::of).collect(),
            is_request_wide: refusal.is_request_wide,
            metrics: refusal.metrics,
        }
    }
}

type SaidFields = (i16, String, Vec<RecordError>, bool, Vec<u64>);

/// Offsets and times, records written anew, flags.
pub(crate) type AppendedFields = ([i64; 5], u64, (bool, bool));

/// The state of a verdict, a tuple in Python.
pub(crate) struct VerdictState<'py> {
    pub(crate) set_bytes: usize,
    pub(crate) log_start_offset: i64,
    pub(crate) stored: Bound<'py, PyBytes>,
    pub(crate) appended: AppendedFields,
    /// Nothing where the set is accepted.
    pub(crate) said: Option<Said>,
}

impl VerdictState<'_> {
    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        let numbers = |state: &Self| (state.set_bytes, state.log_start_offset, state.appended);
        numbers(self) == numbers(other)
            && self.said == other.said
            && self.stored.as_bytes() == other.stored.as_bytes()
    }
}

type StateFields<'py> = (usize, i64, Bound<'py, PyBytes>, AppendedFields, Option<SaidFields>);

impl<'py> IntoPyObject<'py> for VerdictState<'py> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let said = self.said.map(|said| {
            let counts = said.metrics.named().map(|(_, count)| count).to_vec();
            (said.error.code(), said.message, said.record_errors, said.is_request_wide, counts)
        });
        let state = (self.set_bytes, self.log_start_offset, self.stored, self.appended, said);
        Ok(state.into_pyobject(py)?.into_any())
    }
}

impl<'py> FromPyObject<'_, 'py> for VerdictState<'py> {
    type Error = PyErr;

    fn extract(state: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (set_bytes, log_start_offset, stored, appended, said): StateFields<'py> =
            state.extract()?;
        let said = said.map(|(error, message, record_errors, is_request_wide, counts)| {
            let counts =
                counts.try_into().map_err(|_| PyValueError::new_err("not as many counts"))?;
            let (error, metrics) = (error_of(error)?, Metrics::of_counts(counts));
            PyResult::Ok(Said { error, message, record_errors, is_request_wide, metrics })
        });
        Ok(Self { set_bytes, log_start_offset, stored, appended, said: said.transpose()? })
    }
}

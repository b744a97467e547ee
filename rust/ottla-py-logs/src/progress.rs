//! Callbacks into Python that report how far work is, and may stop it.

use ottla_py_batches::calls::called_back;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Why a callback stopped the work.
enum StopReason {
    /// It returned something false.
    Answer,
    /// It raised an exception.
    Raised(PyErr),
}

/// A callback that is called with a number of bytes, if there is one.
pub(crate) struct Progress {
    callback: Option<Py<PyAny>>,
    /// Why it stopped the work, if it did. Never locked during a call into Python.
    stop: Mutex<Option<StopReason>>,
}

impl Progress {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, stop: Mutex::new(None) }
    }

    /// Calls the callback. Returns whether the work goes on.
    pub(crate) fn report(&self, bytes: u64) -> bool {
        let Some(callback) = &self.callback else { return true };
        if self.has_stopped() {
            return false;
        }
        let answer =
            Python::attach(|py| called_back(|| callback.call1(py, (bytes,))?.is_truthy(py)));
        let reason = match answer {
            Ok(true) => return true,
            Ok(false) => StopReason::Answer,
            Err(error) => StopReason::Raised(error),
        };
        if let Ok(mut stop) = self.stop.lock() {
            stop.get_or_insert(reason);
        }
        false
    }

    fn has_stopped(&self) -> bool {
        self.stop.lock().is_ok_and(|stop| stop.is_some())
    }

    /// Returns what to raise if the callback stopped the work: the exception that it raised, or
    /// `AuditCancelledError` with this message.
    pub(crate) fn into_error(self, py: Python<'_>, message: &str) -> Option<PyErr> {
        match self.stop.into_inner().ok().flatten()? {
            StopReason::Raised(error) => Some(error),
            StopReason::Answer => Some(cancelled(py, message)),
        }
    }
}

/// The `AuditCancelledError` with this message.
pub(crate) fn cancelled(py: Python<'_>, message: &str) -> PyErr {
    let error = py
        .import("ottla.errors")
        .and_then(|errors| errors.getattr("AuditCancelledError"))
        .and_then(|class| class.call1((message,)));
    error.map_or_else(|error| error, PyErr::from_value)
}

//! What logs of a `DataPlane` in directories need: jobs for other threads, errors of the system.

use crate::calls::detached;
use ottla_plane::{FlushJob as Job, LoadFailure};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io;
use std::path::Path;

/// What makes a log survive a crash as it was when this was made.
///
/// It holds nothing of the plane: run it on any thread, then hand it to :meth:`DataPlane.flushed`.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct FlushJob {
    pub(crate) job: Job,
}

#[pymethods]
impl FlushJob {
    /// Syncs, without the interpreter's lock.
    ///
    /// Raises:
    ///     OSError: nobody knows what is on the disk: the partition is to be taken offline.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let done = detached(py, || self.job.run())?;
        done.map_err(|error| os_error(py, &error, None))
    }
}

/// The exception for an error of the system.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, path: Option<&Path>) -> PyErr {
    let Some(number) = error.raw_os_error() else { return PyOSError::new_err(error.to_string()) };
    // As Python itself says it, without Rust's number behind the words.
    let said = error.to_string();
    let said = said.rsplit_once(" (os error").map_or(&*said, |(said, _)| said).to_owned();
    match path {
        Some(path) => match path.as_os_str().into_pyobject(py) {
            Ok(path) => PyOSError::new_err((number, said, path.unbind())),
            Err(error) => error.into(),
        },
        None => PyOSError::new_err((number, said)),
    }
}

/// The exception for a directory that cannot be loaded.
pub(crate) fn unloadable(py: Python<'_>, failure: &LoadFailure) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ottla.errors", "LogDirectoryError") {
        Ok(class) => PyErr::from_type(class.clone(), (failure.to_string(),)),
        Err(error) => error,
    }
}

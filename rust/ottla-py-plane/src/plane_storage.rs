//! What logs of a `DataPlane` in directories need: jobs for other threads, errors of the system.

use ottla_plane::{Checkpoint, FlushJob as Job, LoadFailure, LogPlace, NewPartition, OpenError};
use ottla_py_batches::calls::detached;
use ottla_py_batches::leader_options::Keywords;
use ottla_py_batches::request_options::Integer;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io;
use std::path::{Path, PathBuf};

/// Where a log is, as :meth:`DataPlane.open` is told.
pub(crate) struct PlaceOptions {
    directory: PathBuf,
    recovery_point: i64,
    log_start_offset: i64,
    is_clean: bool,
    is_dense: bool,
}

impl PlaceOptions {
    /// Takes the options; `None` of a log in memory.
    pub(crate) fn take(keywords: &Keywords<'_>) -> PyResult<Option<Self>> {
        let directory: Option<PathBuf> = keywords.take("directory", None)?;
        let recovery_point: Integer = keywords.take("recovery_point", Integer::Of(0))?;
        let log_start_offset: Integer = keywords.take("log_start_offset", Integer::Of(0))?;
        let is_clean = keywords.take("is_clean", false)?;
        let is_dense = keywords.take("is_dense", false)?;
        let recovery_point = recovery_point.within("recovery_point", 0, i64::MAX)?;
        let log_start_offset = log_start_offset.within("log_start_offset", 0, i64::MAX)?;
        let made =
            |directory| Self { directory, recovery_point, log_start_offset, is_clean, is_dense };
        Ok(directory.map(made))
    }

    /// The same for the plane.
    pub(crate) fn place(&self) -> LogPlace<'_> {
        LogPlace {
            directory: &self.directory,
            recovery_point: self.recovery_point,
            log_start_offset: self.log_start_offset,
            is_clean: self.is_clean,
            is_dense: self.is_dense,
        }
    }
}

/// A row of :meth:`DataPlane.checkpoints`.
pub(crate) fn checkpoint_row(found: &Checkpoint) -> (String, i32, i64, i64, i64) {
    let topic = String::from_utf8_lossy(&found.topic).into_owned();
    let Checkpoint { index, recovery_point, log_start_offset, high_watermark, .. } = *found;
    (topic, index, recovery_point, log_start_offset, high_watermark)
}

/// Why a partition is not open.
pub(crate) fn unopened(py: Python<'_>, error: &OpenError, new: &NewPartition<'_>) -> PyErr {
    match error {
        OpenError::Io(error) => {
            os_error(py, error, new.place.as_ref().map(|place| place.directory))
        }
        OpenError::Load(LoadFailure::Io { path, error }) => os_error(py, error, Some(path)),
        OpenError::Load(failure) => unloadable(py, failure),
        OpenError::Taken => {
            let topic = String::from_utf8_lossy(new.topic);
            PyValueError::new_err(format!("{topic}-{} {error}", new.index))
        }
    }
}

/// What makes a log survive a crash as it was when this was made.
///
/// It holds nothing of the plane: run it on any thread, then hand it to :meth:`DataPlane.flushed`.
#[pyclass(frozen, module = "ottla._engine")]
pub struct FlushJob {
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
    log_directory_error(py, &failure.to_string())
}

/// The exception for a directory that is not as it should be.
pub(crate) fn log_directory_error(py: Python<'_>, message: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ottla.errors", "LogDirectoryError") {
        Ok(class) => PyErr::from_type(class.clone(), (message.to_owned(),)),
        Err(error) => error,
    }
}

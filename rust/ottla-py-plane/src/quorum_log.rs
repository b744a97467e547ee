//! `QuorumLog`: the log of a KRaft quorum's only voter, and its snapshots.

use crate::plane_storage::{log_directory_error, os_error};
use ottla_log::sidefiles::metadata_snapshot;
use ottla_plane::{QuorumLog as Engine, QuorumLogError, QuorumLogFound};
use ottla_py_batches::bytes::SharedBytes;
use ottla_py_batches::calls::{attached, detached};
use ottla_py_batches::validator::with_validator;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The log of a quorum's only voter in a directory, which is made where there is none.
///
/// Args:
///     path: of the directory, ``__cluster_metadata-0``.
///     segment_bytes: where a segment is full.
///
/// Raises:
///     LogDirectoryError: damage that no crash leaves, or a beginning that is in no snapshot.
///     OSError: the system cannot read or write it.
#[pyclass(frozen, module = "ottla._engine")]
pub struct QuorumLog {
    engine: Mutex<Engine>,
    found: QuorumLogFound,
}

impl QuorumLog {
    fn engine(&self, py: Python<'_>) -> MutexGuard<'_, Engine> {
        self.engine.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl QuorumLog {
    #[new]
    #[pyo3(signature = (path, *, segment_bytes))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
    fn new(py: Python<'_>, path: PathBuf, segment_bytes: i32) -> PyResult<Self> {
        let opened = detached(py, || Engine::open(&path, segment_bytes))?;
        let (engine, found) = opened.map_err(|error| refused(py, &error))?;
        Ok(Self { engine: Mutex::new(engine), found })
    }

    /// Where the next record goes.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).end_offset()
    }

    /// Where the log begins.
    #[getter]
    fn start_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).start_offset()
    }

    /// The newest epoch of a leader that is known; ``None`` for none.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> Option<i32> {
        self.engine(py).epoch()
    }

    /// Where the log goes on behind the newest snapshot, 0 without one.
    #[getter]
    fn snapshot_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).snapshot().map_or(0, |id| id.end_offset)
    }

    /// What a crash has left at the end and was cut off: path, position, bytes behind it.
    #[getter]
    fn torn(&self) -> Option<(PathBuf, u64, u64)> {
        let torn = self.found.torn.as_ref()?;
        Some((torn.path.clone(), torn.position, torn.bytes))
    }

    /// Snapshots that are not whole, newest first, and what is wrong with each.
    #[getter]
    fn faulty_snapshots(&self) -> Vec<(PathBuf, String)> {
        self.found.faulty_snapshots.clone()
    }

    /// Returns the next batches, of which the first begins at an offset; nothing at the end.
    ///
    /// Raises:
    ///     LogDirectoryError: another offset follows than should.
    ///     OSError: the system cannot read it.
    fn read<'py>(&self, py: Python<'py>, offset: i64) -> PyResult<Bound<'py, PyBytes>> {
        let engine = self.engine(py);
        let bytes = attached(py, || engine.read(offset))?;
        drop(engine);
        Ok(PyBytes::new(py, &bytes.map_err(|error| refused(py, &error))?))
    }

    /// Returns the bytes of the newest snapshot; ``None`` without one.
    ///
    /// Raises:
    ///     OSError: the system cannot read it.
    fn read_snapshot<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = self.engine(py).read_snapshot().map_err(|error| refused(py, &error))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Becomes the leader of an epoch: what is appended from now on has it.
    ///
    /// Raises:
    ///     OSError: the system cannot write it.
    fn begin_epoch(&self, py: Python<'_>, epoch: i32) -> PyResult<()> {
        self.engine(py).begin_epoch(epoch).map_err(|error| refused(py, &error))
    }

    /// Appends batches, all of them or none, and syncs them. Their offsets are assigned.
    ///
    /// Raises:
    ///     OSError: the system cannot write it. Where there was no room the log is as it was; behind
    ///         any other error it takes nothing any more.
    fn append(&self, py: Python<'_>, records: &Bound<'_, PyAny>, now_ms: i64) -> PyResult<()> {
        let records = SharedBytes::of(records)?;
        let bytes = records.as_bytes(py);
        let mut engine = self.engine(py);
        let log = &mut *engine;
        let done = detached(py, || with_validator(|v| log.append(bytes, now_ms, v)))?;
        drop(engine);
        done.map_err(|error| refused(py, &error))
    }

    /// Writes a snapshot of all batches that are there: whole, or not at all.
    ///
    /// Raises:
    ///     LogDirectoryError: the bytes are no snapshot.
    ///     OSError: the system cannot write it.
    fn write_snapshot(&self, py: Python<'_>, snapshot: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = snapshot.as_bytes();
        let mut engine = self.engine(py);
        let log = &mut *engine;
        let done = detached(py, || log.write_snapshot(bytes))?;
        drop(engine);
        done.map_err(|error| refused(py, &error))
    }

    /// Deletes the oldest snapshots, as long as log and snapshots together are larger than
    /// ``max_bytes``, and the segments that the next one replaces. The newest stays.
    ///
    /// Raises:
    ///     OSError: the system cannot delete them.
    fn delete_old(&self, py: Python<'_>, max_bytes: u64) -> PyResult<()> {
        self.engine(py).delete_old(max_bytes).map_err(|error| refused(py, &error))
    }

    /// Closes its files; everything is synced already.
    fn close(&self, py: Python<'_>) {
        self.engine(py).close();
    }
}

/// What keeps bytes from being a whole snapshot of the cluster's metadata; ``None`` for nothing.
#[pyfunction]
pub fn metadata_snapshot_fault(data: &[u8]) -> Option<String> {
    metadata_snapshot::check_metadata_snapshot(data).err().map(|fault| fault.to_string())
}

fn refused(py: Python<'_>, error: &QuorumLogError) -> PyErr {
    match error {
        QuorumLogError::Io { path, error } => os_error(py, error, Some(path)),
        QuorumLogError::Refused(message) => log_directory_error(py, message),
    }
}

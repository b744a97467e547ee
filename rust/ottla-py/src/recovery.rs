//! What the next start of a broker makes of a partition's directory, and the side files it builds.

use crate::audit::{open, os_error};
use ottla_core::audit::Source;
use ottla_core::audit::recovery::{
    Config, Directory, Recovery, Restart, SegmentOutcome, predict_recovery as predict,
    rebuild_side_files as rebuild,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A directory of which the caller has listed the regular files.
struct Listed {
    path: PathBuf,
    names: Vec<Vec<u8>>,
}

impl Directory for Listed {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.names.clone())
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        // A name may have become a FIFO since it was listed; that must not block.
        let nonblocking = 0o4000;
        let path = self.path.join(OsStr::from_bytes(name));
        let file: File = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
        Ok(Box::new(file))
    }
}

/// Plays through the start of a broker over the files of one partition's directory.
///
/// Args:
///     directory: its path.
///     names: its regular files.
///     partition: the name Kafka knows it by.
///
/// Raises:
///     OSError: a file cannot be read.
#[pyfunction]
#[pyo3(signature = (directory, names, *, partition, clean, recovery_point, log_start_offset))]
pub(crate) fn predict_recovery<'py>(
    py: Python<'py>,
    directory: &[u8],
    names: Vec<Vec<u8>>,
    partition: &str,
    clean: bool,
    recovery_point: i64,
    log_start_offset: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let listed = Listed { path: PathBuf::from(OsStr::from_bytes(directory)), names };
    let config = Config::default();
    let restart = Restart { stopped_cleanly: clean, recovery_point, log_start_offset, config };
    let recovery = py
        .detach(|| predict(&listed, partition, restart))
        .map_err(|error| os_error(py, &error, directory))?;
    row(py, &recovery)
}

fn row<'py>(py: Python<'py>, recovery: &Recovery) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    let refusal = recovery.refusal.as_ref();
    row.set_item("error", refusal.map(|refusal| refusal.class))?;
    row.set_item("message", refusal.map(|refusal| refusal.message.as_str()))?;
    row.set_item("log_start_offset", recovery.log_start_offset)?;
    row.set_item("log_end_offset", recovery.log_end_offset)?;
    row.set_item("first_undecided_offset", recovery.first_undecided_offset)?;
    row.set_item("is_stray", recovery.is_stray)?;
    let segments = recovery.segments.iter().map(|segment| segment_row(py, segment));
    row.set_item("segments", segments.collect::<PyResult<Vec<_>>>()?)?;
    let producers = recovery.producers.iter().map(|producer| {
        let last_offset = producer.batches().last().map_or(-1, |batch| batch.last_offset);
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence(),
            last_offset,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        )
    });
    row.set_item("producers", producers.collect::<Vec<_>>())?;
    let epochs = recovery.leader_epochs.iter().map(|epoch| (epoch.epoch, epoch.start_offset));
    row.set_item("leader_epochs", epochs.collect::<Vec<_>>())?;
    let bytes = |names: &[Vec<u8>]| PyTuple::new(py, names.iter().map(|n| PyBytes::new(py, n)));
    row.set_item("files_deleted", bytes(&recovery.files_deleted)?)?;
    row.set_item("files_created", bytes(&recovery.files_created)?)?;
    Ok(row)
}

fn segment_row<'py>(py: Python<'py>, segment: &SegmentOutcome) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("file", PyBytes::new(py, &segment.file))?;
    row.set_item("bytes_before", segment.bytes_before)?;
    row.set_item("bytes", segment.bytes)?;
    row.set_item("is_rebuilt", segment.rebuilt.is_some())?;
    let Some(rebuilt) = &segment.rebuilt else { return Ok(row) };
    row.set_item("offset_entries", rebuilt.offset_entries)?;
    row.set_item("time_entries", rebuilt.time_entries)?;
    row.set_item("aborted_count", rebuilt.aborted_count)?;
    let aborted = rebuilt.aborted.iter().map(|entry| {
        (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
    });
    row.set_item("aborted", aborted.collect::<Vec<_>>())?;
    row.set_item("max_timestamp", rebuilt.max_timestamp)?;
    row.set_item("fault", rebuilt.fault.as_deref())?;
    Ok(row)
}

/// Builds what should stand beside a segment.
///
/// Args:
///     path: of the segment file.
///     base_offset: the number in its name.
///     snapshot: the bytes of the producer snapshot before it, if producers were known there.
///
/// Raises:
///     OSError: the file cannot be read.
///     ValueError: Kafka would give up on the segment, or the snapshot is none.
#[pyfunction]
#[pyo3(signature = (path, base_offset, *, snapshot=None, index_interval_bytes=4096))]
pub(crate) fn rebuild_side_files<'py>(
    py: Python<'py>,
    path: &[u8],
    base_offset: i64,
    snapshot: Option<&[u8]>,
    index_interval_bytes: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let file = open(py, path)?;
    let config = Config { index_interval_bytes, ..Config::default() };
    let built = py.detach(|| rebuild(&file, base_offset, snapshot, &config));
    let built = built.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => PyValueError::new_err(error.to_string()),
        _ => os_error(py, &error, path),
    })?;
    let row = PyDict::new(py);
    row.set_item("offset_index", PyBytes::new(py, &built.offset_index))?;
    row.set_item("time_index", PyBytes::new(py, &built.time_index))?;
    row.set_item("transaction_index", PyBytes::new(py, &built.transaction_index))?;
    row.set_item("snapshot", PyBytes::new(py, &built.snapshot))?;
    row.set_item("next_offset", built.next_offset)?;
    row.set_item("valid_bytes", built.valid_bytes)?;
    row.set_item("fault", built.fault)?;
    Ok(row)
}

//! What the next start of a broker makes of a partition's directory, and the side files it builds.

use crate::place::{Opened, Place, os_error};
use crate::progress::Progress;
use ottla_log::recovery::{
    Aborted, Config, Directory, Recovery, Restart, SegmentOutcome, predict_recovery as predict,
    rebuild_side_files as rebuild,
};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use ottla_log::source::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read between two words about them.
const TOLD_BYTES: u64 = 8 << 20;

/// What `AuditCancelledError` says.
const STOPPED: &str = "the prediction was stopped";

/// The regular files of a directory, as the caller has listed them.
struct Listed {
    places: BTreeMap<Vec<u8>, Place>,
    progress: Progress,
    read: AtomicU64,
    /// The name of the file that could not be read.
    failed: Mutex<Option<Vec<u8>>>,
}

/// A file of it; whoever asked for the bytes is told.
struct Watched<'a> {
    file: Opened,
    name: Vec<u8>,
    directory: &'a Listed,
}

impl Directory for Listed {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.places.keys().cloned().collect())
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        let place = self.places.get(name).ok_or(io::ErrorKind::NotFound)?;
        let file = place.open().inspect_err(|_| self.fail(name))?;
        Ok(Box::new(Watched { file, name: name.to_vec(), directory: self }))
    }
}

impl Source for Watched<'_> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(position, buffer);
        let read = read.inspect_err(|_| self.directory.fail(&self.name))?;
        self.directory.advance(read as u64)?;
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size().inspect_err(|_| self.directory.fail(&self.name))
    }
}

impl Listed {
    fn fail(&self, name: &[u8]) {
        if let Ok(mut failed) = self.failed.lock() {
            *failed = Some(name.to_vec());
        }
    }

    /// Tells how far it is, now and then, and stops when the answer says so.
    fn advance(&self, bytes: u64) -> io::Result<()> {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        let read = before.saturating_add(bytes);
        let is_due = before / TOLD_BYTES != read / TOLD_BYTES;
        if is_due && !self.progress.report(read) {
            return Err(io::Error::other(STOPPED));
        }
        Ok(())
    }
}

/// Plays through the start of a broker over the files of one partition's directory.
///
/// Args:
///     files: its regular files by name: the path of each, or an object that reads it, as of
///         :class:`Segment`.
///     partition: the name Kafka knows it by.
///     aborted: producer, first and last offset of its aborted transactions; None finds them by
///         reading every segment.
///     progress: called with the bytes read so far, every 8 MiB; stops by returning false.
///
/// Raises:
///     OSError: a file cannot be read.
///     AuditCancelledError: ``progress`` said so.
#[pyfunction]
#[pyo3(signature = (
    files, *, partition, clean, recovery_point, log_start_offset, aborted, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn predict_recovery<'py>(
    py: Python<'py>,
    files: BTreeMap<Vec<u8>, Place>,
    partition: &str,
    clean: bool,
    recovery_point: i64,
    log_start_offset: i64,
    aborted: Option<Vec<(i64, i64, i64)>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let listed = Listed {
        places: files,
        progress: Progress::new(progress),
        read: AtomicU64::new(0),
        failed: Mutex::new(None),
    };
    let config = Config::default();
    let restart = Restart { stopped_cleanly: clean, recovery_point, log_start_offset, config };
    let known: Option<Vec<_>> = aborted.map(|known| known.into_iter().map(transaction).collect());
    let aborted = known.as_deref().map_or(Aborted::Sought, Aborted::Known);
    let predicted = py.detach(|| predict(&listed, partition, restart, aborted));
    if let Some(error) = listed.progress.into_error(py, STOPPED) {
        return Err(error);
    }
    match predicted {
        Ok(recovery) => row(py, &recovery),
        Err(error) => {
            let failed = listed.failed.into_inner().ok().flatten();
            match failed.and_then(|name| listed.places.get(&name)) {
                Some(place) => Err(place.error(py, &error)),
                None => Err(os_error(py, &error, None)),
            }
        }
    }
}

fn transaction((producer_id, first_offset, last_offset): (i64, i64, i64)) -> AbortedTransaction {
    AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset: 0 }
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
    let exposed = recovery.exposed.iter().map(|t| (t.producer_id, t.first_offset, t.last_offset));
    row.set_item("exposed", exposed.collect::<Vec<_>>())?;
    let bytes = |names: &[Vec<u8>]| PyTuple::new(py, names.iter().map(|n| PyBytes::new(py, n)));
    row.set_item("files_deleted", bytes(&recovery.files_deleted)?)?;
    row.set_item("files_created", bytes(&recovery.files_created)?)?;
    Ok(row)
}

fn entry(entry: &AbortedTransaction) -> (i64, i64, i64, i64) {
    (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
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
    row.set_item("aborted", rebuilt.aborted.iter().map(entry).collect::<Vec<_>>())?;
    row.set_item("max_timestamp", rebuilt.max_timestamp)?;
    row.set_item("fault", rebuilt.fault.as_deref())?;
    Ok(row)
}

/// Builds what should stand beside a segment.
///
/// Args:
///     path: of the segment file, or an object that reads it, as of :class:`Segment`.
///     base_offset: the number in its name.
///     snapshot: the bytes of the producer snapshot before it, if producers were known there.
///     leader_epochs: the bytes of a ``leader-epoch-checkpoint`` of what is before it.
///
/// Raises:
///     OSError: the file cannot be read.
///     ValueError: Kafka would give up on the segment, or the snapshot or checkpoint is none.
#[pyfunction]
#[pyo3(signature = (
    path, base_offset, *, snapshot=None, leader_epochs=None, index_interval_bytes=4096
))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn rebuild_side_files<'py>(
    py: Python<'py>,
    path: Place,
    base_offset: i64,
    snapshot: Option<&[u8]>,
    leader_epochs: Option<&[u8]>,
    index_interval_bytes: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let file = path.open_detached(py)?;
    let config = Config { index_interval_bytes, ..Config::default() };
    let built = py.detach(|| rebuild(&file, base_offset, snapshot, leader_epochs, &config));
    let built = built.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => PyValueError::new_err(error.to_string()),
        _ => path.error(py, &error),
    })?;
    let row = PyDict::new(py);
    row.set_item("offset_index", PyBytes::new(py, &built.offset_index))?;
    row.set_item("time_index", PyBytes::new(py, &built.time_index))?;
    row.set_item("transaction_index", PyBytes::new(py, &built.transaction_index))?;
    row.set_item("snapshot", PyBytes::new(py, &built.snapshot))?;
    row.set_item("next_offset", built.next_offset)?;
    row.set_item("leader_epochs", PyBytes::new(py, &built.leader_epochs))?;
    row.set_item("valid_bytes", built.valid_bytes)?;
    row.set_item("fault", built.fault)?;
    Ok(row)
}

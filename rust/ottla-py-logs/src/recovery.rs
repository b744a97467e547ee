//! What the next start of a broker makes of a partition's directory, and the side files it builds.

use crate::place::{Place, os_error};
use crate::progress::Progress;
use ottla_log::recovery::{
    self, Aborted, Directory, IndexConfig, LoadError, RebuiltIndexes as Rebuilt, Restart, Starts,
};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use ottla_log::source::Source;
use ottla_py_batches::calls::detached;
use ottla_py_batches::request_options::named_release;
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Bytes read between two calls of a callback.
const BYTES_BETWEEN_REPORTS: u64 = 8 << 20;

/// A file's name and its bytes.
type FileSize = (Vec<u8>, u64);

/// Bytes of a partition whose prediction leaves much freed memory.
const MANY_BYTES: u64 = 1 << 20;

/// Id, epoch, last sequence, last offset, last timestamp, coordinator epoch and first offset of the
/// open transaction of a producer.
type Producer = (i64, i16, i32, i64, i64, i32, Option<i64>);

/// Rows of integers, eight bytes of this machine each: as objects of Python they would take eight times
/// as much.
#[derive(Clone, PartialEq)]
struct Packed(Arc<[u8]>);

impl Packed {
    fn of<T, const N: usize>(rows: &[T], numbers: impl Fn(&T) -> [i64; N]) -> Self {
        Self(rows.iter().flat_map(numbers).flat_map(i64::to_ne_bytes).collect())
    }
}

impl<'py> IntoPyObject<'py> for &Packed {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// The regular files of a directory, as the caller has listed them.
struct Listed(BTreeMap<Vec<u8>, Place>);

impl Directory for Listed {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        let place = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(place.open()?))
    }
}

impl Listed {
    /// What Python raises for an error.
    fn error(&self, py: Python<'_>, error: &LoadError, progress: Progress) -> PyErr {
        match error {
            LoadError::Io { file, error } => {
                match file.as_ref().and_then(|file| self.0.get(file)) {
                    Some(place) => place.error(py, error),
                    None => os_error(py, error, None),
                }
            }
            other => progress
                .into_error(py, "the prediction was stopped")
                .unwrap_or_else(|| PyOSError::new_err(other.to_string())),
        }
    }
}

/// The indexes of a segment that a start reads from its beginning.
#[pyclass(frozen, get_all, module = "ottla._engine")]
#[derive(Clone, PartialEq)]
pub struct RebuiltIndexes {
    offset_entries: u64,
    time_entries: u64,
    aborted_count: u64,
    aborted: Packed,
    max_timestamp: i64,
    fault: Option<String>,
}

impl From<Rebuilt> for RebuiltIndexes {
    fn from(rebuilt: Rebuilt) -> Self {
        Self {
            offset_entries: rebuilt.offset_entries,
            time_entries: rebuilt.time_entries,
            aborted_count: rebuilt.aborted_count,
            aborted: Packed::of(&rebuilt.aborted, |entry| {
                let AbortedTransaction { producer_id, first_offset, .. } = *entry;
                [producer_id, first_offset, entry.last_offset, entry.last_stable_offset]
            }),
            max_timestamp: rebuilt.max_timestamp,
            fault: rebuilt.fault,
        }
    }
}

/// What a start makes of a directory.
#[pyclass(frozen, eq, module = "ottla._engine")]
#[derive(Clone, PartialEq)]
pub struct Recovery {
    #[pyo3(get)]
    error: Option<&'static str>,
    #[pyo3(get)]
    message: Option<String>,
    #[pyo3(get)]
    is_stray: bool,
    #[pyo3(get)]
    log_start_offset: i64,
    #[pyo3(get)]
    log_end_offset: i64,
    #[pyo3(get)]
    first_undecided_offset: Option<i64>,
    #[pyo3(get)]
    segments: Vec<FileSize>,
    #[pyo3(get)]
    bytes_before: Vec<FileSize>,
    #[pyo3(get)]
    bytes_cut: u64,
    #[pyo3(get)]
    rebuilt: Vec<(Vec<u8>, RebuiltIndexes)>,
    #[pyo3(get)]
    producer_count: usize,
    #[pyo3(get)]
    leader_epochs: Vec<(i32, i64)>,
    #[pyo3(get)]
    exposed: Packed,
    #[pyo3(get)]
    files_deleted: Vec<Vec<u8>>,
    #[pyo3(get)]
    files_created: Vec<Vec<u8>>,
    #[pyo3(get)]
    snapshots_rewritten: Vec<Vec<u8>>,
    /// By id; as objects of Python they would take four times as much.
    producers: Arc<Vec<SnapshotEntry>>,
}

#[pymethods]
impl Recovery {
    /// What the partition knows of a producer, by its number in the order of ids.
    ///
    /// Raises:
    ///     IndexError: there are not so many.
    fn producer(&self, number: usize) -> PyResult<Producer> {
        let producer = self.producers.get(number);
        let producer = producer.ok_or_else(|| PyIndexError::new_err("no such producer"))?;
        Ok((
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        ))
    }

    /// The ids of the producers that the partition knows, eight bytes each.
    fn producer_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let ids = self.producers.iter().flat_map(|known| known.producer_id.to_be_bytes());
        PyBytes::new(py, &ids.collect::<Vec<_>>())
    }

    /// Whether the partition knows all producers that another start does, by its ``producer_ids``.
    fn knows_producers(&self, ids: &[u8]) -> bool {
        let mut known = self.producers.iter().map(|known| known.producer_id.to_be_bytes());
        // Both are sorted.
        ids.chunks_exact(8).all(|id| known.any(|known| known == id))
    }
}

impl From<recovery::Recovery> for Recovery {
    fn from(recovery: recovery::Recovery) -> Self {
        let bytes_cut = recovery.bytes_cut();
        let (error, message) =
            recovery.refusal.map(|refusal| (refusal.class, refusal.message)).unzip();
        let epochs = recovery.leader_epochs.iter().map(|epoch| (epoch.epoch, epoch.start_offset));
        let segments =
            recovery.segments.iter().map(|segment| (segment.file.clone(), segment.bytes));
        Self {
            error,
            message,
            is_stray: recovery.is_stray,
            log_start_offset: recovery.log_start_offset,
            log_end_offset: recovery.log_end_offset,
            first_undecided_offset: recovery.first_undecided_offset,
            segments: segments.collect(),
            bytes_before: recovery.bytes_before.into_iter().collect(),
            bytes_cut,
            producer_count: recovery.producers.len(),
            leader_epochs: epochs.collect(),
            exposed: Packed::of(&recovery.exposed, |exposed| {
                [exposed.producer_id, exposed.first_offset, exposed.last_offset]
            }),
            producers: Arc::new(recovery.producers),
            files_deleted: recovery.files_deleted,
            files_created: recovery.files_created,
            snapshots_rewritten: recovery.snapshots_rewritten,
            rebuilt: recovery
                .segments
                .into_iter()
                .filter_map(|segment| Some((segment.file, segment.rebuilt?.into())))
                .collect(),
        }
    }
}

/// One start over a partition, with what to do before.
#[pyclass(frozen, get_all, module = "ottla._engine")]
#[derive(Clone)]
pub struct Start {
    clean: bool,
    is_next: bool,
    outcome: &'static str,
    offsets_lost: u64,
    action: &'static str,
    after: Recovery,
}

impl From<recovery::Start> for Start {
    fn from(start: recovery::Start) -> Self {
        Self {
            clean: start.stopped_cleanly,
            is_next: start.is_next,
            outcome: start.outcome.name(),
            offsets_lost: start.offsets_lost,
            action: start.action,
            after: start.after.into(),
        }
    }
}

/// Predicts over listed files without the interpreter's lock.
fn predict<T: Send>(
    py: Python<'_>,
    listed: &Listed,
    aborted: Option<&[u8]>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Listed, Aborted<'_>, &dyn Fn(u64) -> bool) -> Result<T, LoadError> + Send,
) -> PyResult<T> {
    let known: Option<Vec<_>> = aborted.map(|known| transactions(known).collect());
    let progress = Progress::new(progress);
    let predicted = detached(py, || {
        let reports = Cell::new(0);
        let bytes_read = Cell::new(0);
        let report = |read: u64| {
            bytes_read.set(read);
            let due = read / BYTES_BETWEEN_REPORTS;
            due == reports.replace(due) || progress.report(read)
        };
        let result =
            work(listed, known.as_deref().map_or(Aborted::Sought, Aborted::Known), &report);
        if bytes_read.get() >= MANY_BYTES {
            // What a table of many producers has taken is not held beside what comes next.
            ottla_kernels::release_freed_memory();
        }
        result
    })?;
    predicted.map_err(|error| listed.error(py, &error, progress))
}

/// The aborted transactions of numbers packed by Python.
fn transactions(packed: &[u8]) -> impl Iterator<Item = AbortedTransaction> {
    let (numbers, _) = packed.as_chunks::<8>();
    let (transactions, _) = numbers.as_chunks::<3>();
    transactions.iter().map(|numbers| {
        let [producer_id, first_offset, last_offset] = numbers.map(i64::from_ne_bytes);
        AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset: 0 }
    })
}

/// Plays through the start of a broker over the files of one partition's directory.
///
/// Args:
///     files: its regular files by name: the path of each, or an object that reads it, see
///         :class:`Segment`.
///     partition: the name Kafka knows it by.
///     clean: the log directory holds ``.kafka_cleanshutdown``.
///     recovery_point, log_start_offset: from the checkpoints of the log directory.
///     aborted: producer, first and last offset of its aborted transactions, each number in eight
///         bytes of this machine; None finds them by reading every segment.
///     kafka_version: the release of the broker; see :func:`validate`. Those that are known start
///         alike.
///     progress: called with the bytes read so far, every 8 MiB; stops by returning false.
///
/// Raises:
///     ValueError: a release that is not known.
///     OSError: a file cannot be read.
///     AuditCancelledError: ``progress`` said so.
#[pyfunction]
#[pyo3(signature = (
    files, *, partition, clean, recovery_point, log_start_offset, aborted, kafka_version=None,
    progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn predict_recovery(
    py: Python<'_>,
    files: BTreeMap<Vec<u8>, Place>,
    partition: &str,
    clean: bool,
    recovery_point: i64,
    log_start_offset: i64,
    aborted: Option<&[u8]>,
    kafka_version: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Recovery> {
    named_release(kafka_version)?;
    let stopped_cleanly = clean;
    let restart =
        Restart { stopped_cleanly, recovery_point, log_start_offset, ..Restart::default() };
    let recovery = predict(py, &Listed(files), aborted, progress, |listed, aborted, report| {
        recovery::predict_recovery(listed, partition, &restart, aborted, report)
    })?;
    Ok(recovery.into())
}

/// Predicts the next start over one partition, first, and the one after the other kind of stop, if
/// that makes a difference.
///
/// Args:
///     files, partition, aborted, progress: those of :func:`predict_recovery`.
///     stopped_cleanly: the log directory holds ``.kafka_cleanshutdown``.
///     recovery_point, log_start_offset: the partition's entries in the checkpoints of the log
///         directory.
///     log_end_offset: where the log ends by its batches, if that is known.
///     needs_topic_id: the broker misses a ``partition.metadata``.
///
/// Raises:
///     OSError: a file cannot be read.
///     AuditCancelledError: ``progress`` said so.
#[pyfunction]
#[pyo3(signature = (
    files, *, partition, stopped_cleanly, recovery_point, log_start_offset, log_end_offset,
    needs_topic_id, aborted, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn predict_starts(
    py: Python<'_>,
    files: BTreeMap<Vec<u8>, Place>,
    partition: &str,
    stopped_cleanly: bool,
    recovery_point: Option<i64>,
    log_start_offset: Option<i64>,
    log_end_offset: Option<i64>,
    needs_topic_id: bool,
    aborted: Option<&[u8]>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Start>> {
    let starts = Starts {
        stopped_cleanly,
        recovery_point,
        log_start_offset,
        log_end_offset,
        needs_topic_id,
        config: IndexConfig::default(),
    };
    let starts = predict(py, &Listed(files), aborted, progress, |listed, aborted, report| {
        recovery::predict_starts(listed, partition, &starts, aborted, report)
    })?;
    Ok(starts.into_iter().map(Start::from).collect())
}

/// What should stand beside a segment.
#[pyclass(frozen, get_all, eq, module = "ottla._engine")]
#[derive(Clone, PartialEq)]
pub struct SideFiles {
    offset_index: Vec<u8>,
    time_index: Vec<u8>,
    transaction_index: Vec<u8>,
    snapshot: Vec<u8>,
    next_offset: i64,
    valid_bytes: u64,
    fault: Option<String>,
}

/// Builds what should stand beside the segments of a log, one after the other.
///
/// Args:
///     snapshot: the bytes of the producer snapshot before the first segment, if producers were known
///         there.
///     index_interval_bytes: bytes of batches between two entries of an index.
///
/// Raises:
///     ValueError: the snapshot is none.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Rebuild {
    /// Taken out while a segment is built.
    inner: Mutex<Option<recovery::Rebuild>>,
}

#[pymethods]
impl Rebuild {
    #[new]
    #[pyo3(signature = (snapshot=None, *, index_interval_bytes=4096))]
    fn new(snapshot: Option<&[u8]>, index_interval_bytes: u64) -> PyResult<Self> {
        let config = IndexConfig { index_interval_bytes, ..IndexConfig::default() };
        let inner = recovery::Rebuild::new(snapshot, None, config)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { inner: Mutex::new(Some(inner)) })
    }

    /// Builds what should stand beside the next segment.
    ///
    /// Args:
    ///     path: of the segment file, or an object that reads it, see :class:`Segment`.
    ///     base_offset: the number in its name.
    ///
    /// Raises:
    ///     OSError: the file cannot be read.
    ///     ValueError: Kafka would give up on the segment; nothing but :meth:`leader_epochs` is of use
    ///         then.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
    fn segment(&self, py: Python<'_>, path: Place, base_offset: i64) -> PyResult<SideFiles> {
        let file = path.open_detached(py)?;
        let Some(mut rebuild) = self.take() else {
            return Err(PyValueError::new_err("another segment is being built"));
        };
        let built = detached(py, || {
            let built = rebuild.segment(&file, base_offset);
            (rebuild, built)
        })?;
        let (rebuild, built) = built;
        if let Ok(mut inner) = self.inner.lock() {
            *inner = Some(rebuild);
        }
        let built = built.map_err(|error| match error {
            LoadError::Io { error, .. } => path.error(py, &error),
            LoadError::Refused(_) | LoadError::Snapshot(_) => {
                PyValueError::new_err(error.to_string())
            }
            LoadError::Limit(_) | LoadError::Stopped => PyOSError::new_err(error.to_string()),
        })?;
        Ok(SideFiles::from(built))
    }

    /// Returns the bytes of ``leader-epoch-checkpoint`` after the segments so far.
    ///
    /// Raises:
    ///     ValueError: one is being built.
    fn leader_epochs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.inner.lock();
        let bytes =
            inner.ok().and_then(|inner| inner.as_ref().map(recovery::Rebuild::leader_epochs));
        let bytes = bytes.ok_or_else(|| PyValueError::new_err("a segment is being built"))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Rebuild {
    fn take(&self) -> Option<recovery::Rebuild> {
        self.inner.lock().ok()?.take()
    }
}

impl From<recovery::SideFiles> for SideFiles {
    fn from(built: recovery::SideFiles) -> Self {
        let recovery::SideFiles {
            offset_index,
            time_index,
            transaction_index,
            snapshot,
            next_offset,
            valid_bytes,
            fault,
        } = built;
        Self {
            offset_index,
            time_index,
            transaction_index,
            snapshot,
            next_offset,
            valid_bytes,
            fault,
        }
    }
}

//! Compaction of logs of a `DataPlane`: jobs for other threads, and what they did.

use ottla_format::error_code::ErrorCode;
use ottla_plane::{CompactJob as Job, Compaction as Done, CompactionError, CompactionSettings};
use ottla_py_batches::calls::{attached, detached};
use ottla_py_batches::leader::kafka_error;
use ottla_py_batches::leader_options::Keywords;
use ottla_py_batches::validator::with_validator;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The settings of a compaction, by Kafka's names.
pub(crate) fn settings_of(keywords: &Keywords<'_>) -> PyResult<CompactionSettings> {
    let default = CompactionSettings::default();
    let ratio = default.min_cleanable_dirty_ratio;
    Ok(CompactionSettings {
        min_cleanable_dirty_ratio: keywords.take("min_cleanable_dirty_ratio", ratio)?,
        min_compaction_lag_ms: keywords
            .take("min_compaction_lag_ms", default.min_compaction_lag_ms)?,
        max_compaction_lag_ms: keywords
            .take("max_compaction_lag_ms", default.max_compaction_lag_ms)?,
        delete_retention_ms: keywords.take("delete_retention_ms", default.delete_retention_ms)?,
        dedupe_buffer_size: keywords.take("dedupe_buffer_size", default.dedupe_buffer_size)?,
    })
}

/// The exception for a log that cannot be compacted.
pub(crate) fn uncleanable(py: Python<'_>, error: &CompactionError) -> PyErr {
    let code =
        if error.may_pass() { ErrorCode::KafkaStorageError } else { ErrorCode::CorruptMessage };
    kafka_error(py, code, error.to_string())
}

/// A compaction of a log as it was when this was made.
///
/// It holds nothing of the plane: run it on any thread, then hand it to
/// :meth:`DataPlane.compacted`.
#[pyclass(frozen, module = "ottla._engine")]
pub struct CompactJob {
    job: Mutex<Option<Job>>,
    stop: Arc<AtomicBool>,
}

impl CompactJob {
    pub(crate) fn new(job: Job) -> Self {
        Self { stop: job.stop(), job: Mutex::new(Some(job)) }
    }

    /// The job, once.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Option<Job>> {
        attached(py, || self.job.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

#[pymethods]
impl CompactJob {
    /// Compacts, without the interpreter's lock.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(job) = job.as_mut() {
                with_validator(|validator| job.run(validator.codecs()));
            }
        })
    }

    /// Has it end early, by any thread, so that nobody waits for a long one: its log stays as it was.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What a compaction did.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Compaction {
    done: Done,
}

impl Compaction {
    pub(crate) fn new(done: Done) -> Self {
        Self { done }
    }
}

#[pymethods]
impl Compaction {
    /// Bytes of all segments before.
    #[getter]
    fn bytes_before(&self) -> u64 {
        self.done.bytes_before
    }

    /// Bytes of all segments behind it.
    #[getter]
    fn bytes_after(&self) -> u64 {
        self.done.bytes_after
    }

    /// Records that were looked at, markers included.
    #[getter]
    fn records_read(&self) -> u64 {
        self.done.records.read
    }

    /// Those of them that stay.
    #[getter]
    fn records_kept(&self) -> u64 {
        self.done.records.kept
    }

    /// Those without a key, which are gone.
    #[getter]
    fn records_without_key(&self) -> u64 {
        self.done.records.without_key
    }

    /// Where the next compaction begins.
    #[getter]
    fn first_dirty_offset(&self) -> i64 {
        self.done.first_dirty_offset
    }

    /// Whether there was room for all keys; if not, another compaction goes on there.
    #[getter]
    fn is_whole(&self) -> bool {
        self.done.is_whole
    }
}

/// A row of :meth:`DataPlane.cleaner_offsets`.
pub(crate) fn cleaner_row((topic, index, offset): (&[u8], i32, i64)) -> (String, i32, i64) {
    (String::from_utf8_lossy(topic).into_owned(), index, offset)
}

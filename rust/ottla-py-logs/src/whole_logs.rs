//! Whole logs judged many at a time: the common case.

use crate::packed_log::PackedLog;
use crate::partition::PartitionScan;
use crate::place::open_file;
use crate::placed::PlacedFindings;
use crate::progress::Progress;
use crate::scanners::with_scanner;
use ottla_audit::partition::whole::{self, JudgedLog, LogFiles, WholeLog};
use ottla_audit::{PartitionContext, Scanner, SegmentContext};
use ottla_log::names::{CONSUMER_OFFSETS, PartitionState};
use ottla_log::source::Source;
use ottla_py_batches::calls::detached;
use ottla_py_batches::check::level_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// Nobody who waits for progress, or for an end, waits longer than for this and one more log.
const REPORTED_EVERY: Duration = Duration::from_millis(20);

/// The files of a directory of this machine.
struct Directory<'a> {
    path: &'a [u8],
}

impl LogFiles for Directory<'_> {
    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(open_file(&[self.path, name].join(&b'/'))?))
    }
}

/// A partition as it was listed.
#[derive(FromPyObject)]
pub struct ListedPartition<'py> {
    directory: Bound<'py, PyBytes>,
    topic: String,
    state: String,
    names: Vec<Bound<'py, PyBytes>>,
    sizes: Vec<u64>,
    stopped_cleanly: bool,
}

/// What is known of the configuration of a topic.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub struct KnownSettings {
    cleanup_policy: Option<String>,
    remote_storage: Option<bool>,
    max_message_bytes: Option<u64>,
    is_preallocated: Option<bool>,
}

/// What checkpoints know of a partition: recovery point, start of the log, high watermark, and the first
/// offset that the cleaner has not cleaned.
type Offsets = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);

/// A log to judge.
struct Log<'a> {
    directory: &'a [u8],
    names: Vec<&'a [u8]>,
    sizes: &'a [u64],
    state: PartitionState,
    segment: SegmentContext,
    partition: PartitionContext,
}

/// What a log adds to tables, the topic's id, and its findings, if there are any.
type Judged = (PackedLog, Option<String>, Option<PlacedFindings>);

/// Judges all live segments of partitions and the files beside them, without the interpreter's lock.
/// Returns for each partition its packed log, the topic's id and its findings; ``None`` for one of which
/// anything cannot be read, or is not as ever, as a log that ends before its offsets by checkpoints: then
/// the long way tells what.
///
/// Args:
///     partitions: with the attributes of :class:`ottla.logs.inventory.Partition`, all files regular and
///         on this machine; each with its offsets by checkpoints: recovery point, log start offset, high
///         watermark, and the first that is not cleaned.
///     settings: what is known of the configuration of topics, see :func:`merge_partition`.
///     level, now_ms: see :class:`Segment`.
///     progress: called several times a second, and at the end, with the bytes of the logs judged so
///         far; returns whether to continue.
///
/// Raises:
///     ValueError: there is no such state or level.
///     AuditCancelledError: ``progress`` stopped it.
#[pyfunction]
#[pyo3(signature = (partitions, *, settings, level, now_ms, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn judge_whole_logs(
    py: Python<'_>,
    partitions: Vec<(ListedPartition<'_>, Offsets)>,
    settings: HashMap<String, KnownSettings>,
    level: &str,
    now_ms: i64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Option<Judged>>> {
    let level = level_of(level)?;
    let logs = partitions
        .iter()
        .map(|(partition, offsets)| Log::of(partition, *offsets, &settings, now_ms))
        .collect::<PyResult<Vec<_>>>()?;
    let progress = Progress::new(progress);
    let judged =
        detached(py, || with_scanner(level, |scanner| judge_all(logs, scanner, &progress)))?;
    if let Some(error) = progress.into_error(py, "the audit was stopped") {
        return Err(error);
    }
    let told = |(log, (partition, _)): (Option<PackedWhole>, &(ListedPartition<'_>, _))| {
        log.map(|log| log.told(&partition.directory))
    };
    Ok(judged.into_iter().zip(&partitions).map(told).collect())
}

/// A log that was judged.
struct PackedWhole {
    packed: PackedLog,
    topic_id: Option<String>,
    /// What was found, and the paths of the segments; most logs have nothing.
    found: Option<(PartitionScan, Vec<Vec<u8>>)>,
}

impl PackedWhole {
    fn told(self, directory: &Bound<'_, PyBytes>) -> Judged {
        let findings = self.found.map(|(merged, paths)| {
            let paths = paths.iter().map(|path| PyBytes::new(directory.py(), path));
            merged.into_placed(&paths.collect::<Vec<_>>(), directory)
        });
        (self.packed, self.topic_id, findings)
    }
}

/// Judges logs one after the other until `progress` stops it.
fn judge_all(
    logs: Vec<Log<'_>>,
    scanner: &mut Scanner,
    progress: &Progress,
) -> Vec<Option<PackedWhole>> {
    let mut judged = Vec::with_capacity(logs.len());
    let mut bytes: u64 = 0;
    let mut reported: Option<Instant> = None;
    for log in logs {
        let found = log.judge(scanner);
        bytes = bytes.saturating_add(found.as_ref().map_or(0, |log| log.packed.bytes()));
        judged.push(found);
        if reported.is_none_or(|at| at.elapsed() >= REPORTED_EVERY) {
            if !progress.report(bytes) {
                return judged;
            }
            reported = Some(Instant::now());
        }
    }
    progress.report(bytes);
    judged
}

impl<'a> Log<'a> {
    fn of(
        partition: &'a ListedPartition<'_>,
        offsets: Offsets,
        settings: &HashMap<String, KnownSettings>,
        now_ms: i64,
    ) -> PyResult<Self> {
        let ListedPartition { directory, topic, state, names, sizes, stopped_cleanly } = partition;
        let state = PartitionState::from_name(state)
            .ok_or_else(|| PyValueError::new_err(format!("{state} is no state of a partition")))?;
        let is_consumer_offsets = topic == CONSUMER_OFFSETS;
        let settings = settings.get(topic).cloned().unwrap_or_default();
        let (recovery_point, log_start_offset, high_watermark, first_dirty_offset) = offsets;
        // Both are about the end of the live log.
        let is_live = state == PartitionState::Live;
        Ok(Self {
            directory: directory.as_bytes(),
            names: names.iter().map(PyBytesMethods::as_bytes).collect(),
            sizes,
            state,
            segment: SegmentContext {
                stopped_cleanly: *stopped_cleanly,
                is_consumer_offsets,
                now_ms,
                ..SegmentContext::default()
            },
            partition: PartitionContext {
                topic: Some(topic.clone()),
                log_start_offset,
                recovery_point: recovery_point.filter(|_| is_live),
                high_watermark: high_watermark.filter(|_| is_live),
                max_message_bytes: settings.max_message_bytes,
                is_preallocated: settings.is_preallocated,
                first_dirty_offset,
                cleanup_policy: settings.cleanup_policy,
                remote_storage: settings.remote_storage,
                is_head: true,
                is_consumer_offsets,
                ..PartitionContext::default()
            },
        })
    }

    fn judge(self, scanner: &mut Scanner) -> Option<PackedWhole> {
        let log = WholeLog {
            names: &self.names,
            sizes: self.sizes,
            state: self.state,
            segment: self.segment,
            files: &Directory { path: self.directory },
        };
        let JudgedLog { names, scans, merged, context, topic_id } =
            whole::judge(&log, self.partition, scanner)?;
        let path_of = |name: &&[u8]| [self.directory, name].join(&b'/');
        let paths = || names.iter().map(path_of).collect();
        let files = (0..).take(scans.len()).collect();
        let merged = PartitionScan { inner: merged, context, files };
        Some(PackedWhole {
            packed: PackedLog::of((0..).zip(&scans), &[&merged]),
            topic_id,
            found: merged.inner.has_findings().then(paths).map(|paths| (merged, paths)),
        })
    }
}

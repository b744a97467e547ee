//! A whole log judged in one call, where nothing is found: the common case.

use crate::calls::detached;
use crate::check::level_of;
use crate::packed_log::PackedLog;
use crate::partition::PartitionScan;
use crate::place::open_file;
use crate::scanners::with_scanner;
use ottla_audit::partition::clean::{self, LogFiles, WholeLog};
use ottla_audit::{PartitionContext, SegmentContext};
use ottla_log::names::PartitionState;
use ottla_log::source::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::io;

/// The files of a directory of this machine.
struct Directory {
    path: Vec<u8>,
}

impl LogFiles for Directory {
    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source>> {
        let mut path = self.path.clone();
        path.push(b'/');
        path.extend_from_slice(name);
        Ok(Box::new(open_file(&path)?))
    }
}

/// The packed log, the topic's id, and where the log begins and ends.
type Judged = (PackedLog, Option<String>, (i64, i64));

/// Judges all live segments of a partition and the files beside them, without the interpreter's lock.
/// ``None`` if anything is found, cannot be read, or is not as ever: then only the long way tells what.
///
/// Args:
///     directory: of the partition, on this machine.
///     names, sizes: of its files as they were listed, each a regular file or a link to one.
///     state: of the partition.
///     level, now_ms, stopped_cleanly, is_consumer_offsets: see :class:`Segment`.
///     topic, log_start_offset, recovery_point, high_watermark, first_dirty_offset, cleanup_policy,
///         remote_storage, max_message_bytes, is_preallocated: see :func:`merge_partition`.
///
/// Raises:
///     ValueError: there is no such state or level.
#[pyfunction]
#[pyo3(signature = (
    directory, names, sizes, *, state, level, now_ms, stopped_cleanly, is_consumer_offsets, topic,
    log_start_offset, recovery_point, high_watermark, first_dirty_offset, cleanup_policy=None,
    remote_storage=None, max_message_bytes=None, is_preallocated=None
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn judge_clean(
    py: Python<'_>,
    directory: Vec<u8>,
    names: Bound<'_, PyTuple>,
    sizes: Vec<u64>,
    state: &str,
    level: &str,
    now_ms: i64,
    stopped_cleanly: bool,
    is_consumer_offsets: bool,
    topic: String,
    log_start_offset: Option<i64>,
    recovery_point: Option<i64>,
    high_watermark: Option<i64>,
    first_dirty_offset: Option<i64>,
    cleanup_policy: Option<String>,
    remote_storage: Option<bool>,
    max_message_bytes: Option<u64>,
    is_preallocated: Option<bool>,
) -> PyResult<Option<Judged>> {
    let level = level_of(level)?;
    let state = PartitionState::from_name(state)
        .ok_or_else(|| PyValueError::new_err(format!("{state} is no state of a partition")))?;
    let names: Vec<Bound<'_, PyBytes>> =
        names.iter().map(|name| Ok(name.cast_into::<PyBytes>()?)).collect::<PyResult<_>>()?;
    let names: Vec<&[u8]> = names.iter().map(PyBytesMethods::as_bytes).collect();
    let segment = SegmentContext {
        stopped_cleanly,
        is_consumer_offsets,
        now_ms,
        ..SegmentContext::default()
    };
    let context = PartitionContext {
        topic: Some(topic),
        log_start_offset,
        recovery_point,
        high_watermark,
        max_message_bytes,
        is_preallocated,
        first_dirty_offset,
        cleanup_policy,
        remote_storage,
        is_head: true,
        is_consumer_offsets,
        ..PartitionContext::default()
    };
    let log = WholeLog {
        names: &names,
        sizes: &sizes,
        state,
        segment,
        files: &Directory { path: directory },
    };
    detached(py, || {
        let clean = with_scanner(level, |scanner| clean::judge(&log, context, scanner))?;
        let scans = &clean.scans;
        let merged = PartitionScan {
            files: (0..).take(scans.len()).collect(),
            inner: clean.merged,
            context: clean.context,
        };
        let extent = (merged.inner.log_start_offset, merged.inner.log_end_offset);
        let packed = PackedLog::of((0..).zip(scans), &[&merged]);
        Some((packed, clean.topic_id, extent))
    })
}

//! What the names and the small files of log directories and partitions show.

use crate::findings::Finding;
use ottla_audit::PartitionContext;
use ottla_audit::partition::log_end;
use ottla_audit::partition::side_check::{self, DirectoryEntry};
use ottla_log::names::PartitionState;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

/// What the names of the files in a partition's directory show. Each finding comes with the number of
/// its entry.
///
/// Args:
///     entries: names, and whether each is a directory.
///     state: of the partition, ``live``, ``delete``, ``future`` or ``stray``.
///     is_whole: whether all files of the partition are there.
///
/// Raises:
///     ValueError: there is no such state.
#[pyfunction]
#[pyo3(signature = (entries, *, state, is_whole))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn check_names(
    entries: Vec<(Bound<'_, PyBytes>, bool)>,
    state: &str,
    is_whole: bool,
) -> PyResult<Vec<(usize, Finding)>> {
    let state = PartitionState::from_name(state)
        .ok_or_else(|| PyValueError::new_err(format!("{state} is no state of a partition")))?;
    let entries: Vec<DirectoryEntry<'_>> = entries
        .iter()
        .map(|&(ref name, is_directory)| DirectoryEntry { name: name.as_bytes(), is_directory })
        .collect();
    let found = side_check::check_names(&entries, state, is_whole);
    Ok(found.into_iter().map(|(index, finding)| (index, Finding::from(finding))).collect())
}

/// Returns the base offsets of live indexes whose segment is not there, in order.
///
/// Args:
///     names: of the files in a partition's directory.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn orphaned_indexes(names: Vec<PyBackedBytes>) -> Vec<i64> {
    side_check::orphaned_indexes(names.iter().map(|name| &**name))
}

/// Findings about the offsets of a checkpoint of a log directory that lie beyond the ends of their logs,
/// each with its number.
///
/// Args:
///     file_name: of the checkpoint.
///     partitions: topic, partition, its offset in the checkpoint, and where its log ends.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn offsets_beyond_end(
    file_name: &[u8],
    partitions: Vec<(PyBackedStr, i32, i64, i64)>,
) -> Vec<(usize, Finding)> {
    let found = |(topic, partition, offset, end): &(PyBackedStr, i32, i64, i64)| {
        side_check::offset_beyond_end(file_name, topic, *partition, *offset, *end)
    };
    let numbered = partitions.iter().map(found).enumerate();
    numbered.filter_map(|(index, finding)| Some((index, finding?.into()))).collect()
}

/// The finding about partitions of which a checkpoint has an offset and the log directory nothing.
///
/// Args:
///     file_name: of the checkpoint.
///     partitions: topic, partition and offset of each.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn partitions_without_directory(
    file_name: &[u8],
    partitions: Vec<(String, i32, i64)>,
) -> Option<Finding> {
    side_check::partitions_without_directory(file_name, &partitions).map(Finding::from)
}

/// The finding about a partition without a segment.
///
/// Args:
///     log_start_offset, recovery_point, high_watermark: of the checkpoints of those names.
///     orphans: base offsets of index files.
///     snapshots: offsets of producer snapshots, in order.
#[pyfunction]
#[pyo3(signature = (*, log_start_offset, recovery_point, high_watermark, orphans, snapshots))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn missing_log(
    log_start_offset: Option<i64>,
    recovery_point: Option<i64>,
    high_watermark: Option<i64>,
    orphans: Vec<i64>,
    snapshots: Vec<i64>,
) -> Finding {
    let context = PartitionContext {
        log_start_offset,
        recovery_point,
        high_watermark,
        orphans,
        ..PartitionContext::default()
    };
    log_end::missing_log(&context, &snapshots).into()
}

/// What proves that a log went on behind its end: an error with the offsets lost, ``None`` if nothing
/// does.
///
/// Args:
///     log_end_offset: of the log.
///     witnesses: each in words, with where the log ended at least.
#[pyfunction]
pub fn proved_end(log_end_offset: i64, witnesses: Vec<(String, i64)>) -> Option<Finding> {
    log_end::proved_by_others(log_end_offset, witnesses).map(Finding::from)
}

/// The finding about the last entry of ``leader-epoch-checkpoint``, if it starts beyond the end of the
/// log.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn epoch_beyond_end(entries: Vec<(i32, i64)>, log_end_offset: i64) -> Option<Finding> {
    side_check::epoch_beyond_end(&entries, log_end_offset).map(Finding::from)
}

/// The finding about a text file that cannot be read, or does not hold what it should.
#[pyfunction]
pub fn unreadable_text_file(file_name: &[u8], fault: &str, expected: &str, found: &str) -> Finding {
    side_check::unreadable_text_file(file_name, fault, expected, found).into()
}

/// Findings about those of a topic's partitions whose topic id is not the one that most of them have,
/// each with its number.
///
/// Args:
///     partitions: topic ids, and the file that each is from.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn foreign_topic_ids(partitions: Vec<(String, String)>) -> Vec<(usize, Finding)> {
    let found = side_check::foreign_topic_ids(&partitions);
    found.into_iter().map(|(index, finding)| (index, Finding::from(finding))).collect()
}

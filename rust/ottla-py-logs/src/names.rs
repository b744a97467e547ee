//! Kafka's names: of files, of partitions' directories, and what a directory is by its files.

use ottla_log::names::{self, DirectoryKind, FileKind, FileName, PartitionName, PartitionState};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Kind, state and base offset that a file's name says.
#[pyfunction]
pub fn parse_file_name<'py>(
    py: Python<'py>,
    name: &[u8],
) -> (Bound<'py, PyString>, Bound<'py, PyString>, Option<i64>) {
    let FileName { kind, state, base_offset } = FileName::parse(name);
    (PyString::intern(py, kind.name()), PyString::intern(py, state.name()), base_offset)
}

/// Topic, partition and state.
pub type Said<'py> = (Bound<'py, PyBytes>, i32, Bound<'py, PyString>);

/// Topic, partition and state that a directory's name says; None when it is no partition's.
#[pyfunction]
pub fn parse_partition_name<'py>(py: Python<'py>, name: &[u8]) -> Option<Said<'py>> {
    let name = PartitionName::parse(name)?;
    let state = PyString::intern(py, name.state.name());
    Some((PyBytes::new(py, name.topic), name.partition, state))
}

/// The name under which the directory of a partition is put aside as that of no topic; None when the
/// name is no partition's.
#[pyfunction]
pub fn stray_name<'py>(
    py: Python<'py>,
    name: &[u8],
    unique_id: [u8; 16],
) -> Option<Bound<'py, PyBytes>> {
    let name = PartitionName::parse(name)?;
    Some(PyBytes::new(py, &name.renamed(PartitionState::Stray, unique_id)))
}

/// What a directory is by the names of its files: ``log-directory``, ``partition`` or ``unknown``.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn directory_kind(names: Vec<Bound<'_, PyBytes>>) -> &'static str {
    DirectoryKind::of(names.iter().map(PyBytesMethods::as_bytes)).name()
}

/// The order in which files of these names are listed, as their indexes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn listed_order(names: Vec<Bound<'_, PyBytes>>) -> Vec<usize> {
    let names: Vec<&[u8]> = names.iter().map(PyBytesMethods::as_bytes).collect();
    names::listed_order(&names)
}

/// The base offsets of the live segments among files of these names, in order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn live_base_offsets(names: Vec<Bound<'_, PyBytes>>) -> Vec<i64> {
    names::live_base_offsets(names.iter().map(PyBytesMethods::as_bytes))
}

/// Whether a start is refused at a file of this name, for want of an offset in it.
#[pyfunction]
pub fn lacks_offset(name: &[u8]) -> bool {
    names::lacks_offset(name)
}

/// Whether a broker does not start over a log directory that has a directory of this name.
#[pyfunction]
pub fn refuses_start(name: &[u8]) -> bool {
    names::refuses_start(name)
}

/// The name of a file of a segment, or of a snapshot of producers.
///
/// Raises:
///     ValueError: files of this kind are not named by an offset.
#[pyfunction]
pub fn file_name<'py>(py: Python<'py>, kind: &str, offset: i64) -> PyResult<Bound<'py, PyBytes>> {
    let suffix = FileKind::from_name(kind).and_then(FileKind::suffix).ok_or_else(|| {
        PyValueError::new_err(format!("files of kind {kind} are not named by an offset"))
    })?;
    Ok(PyBytes::new(py, &names::file_name(offset, suffix)))
}

/// Adds the names that are fixed as constants of the module.
pub fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (constant, name) in [
        ("RECOVERY_POINTS", names::RECOVERY_POINTS),
        ("LOG_START_OFFSETS", names::LOG_START_OFFSETS),
        ("HIGH_WATERMARKS", names::HIGH_WATERMARKS),
        ("CLEANER_OFFSETS", names::CLEANER_OFFSETS),
        ("META_PROPERTIES", names::META_PROPERTIES),
        ("BOOTSTRAP_CHECKPOINT", names::BOOTSTRAP_CHECKPOINT),
        ("CLEAN_SHUTDOWN", names::CLEAN_SHUTDOWN),
        ("LEADER_EPOCHS", names::LEADER_EPOCHS),
        ("PARTITION_METADATA", names::PARTITION_METADATA),
        ("SEGMENT_SUFFIX", names::LOG),
    ] {
        module.add(constant, PyBytes::new(module.py(), name))?;
    }
    module.add("CONSUMER_OFFSETS", names::CONSUMER_OFFSETS)?;
    module.add("SHARE_GROUP_STATE", names::SHARE_GROUP_STATE)?;
    module.add("TRANSACTION_STATE", names::TRANSACTION_STATE)?;
    module.add("CLUSTER_METADATA", names::CLUSTER_METADATA)
}

//! The text files beside the segments, parsed; what keeps one from being read comes as
//! `(message, expected, found)`.

use ottla_log::sidefiles::checkpoint::{
    OffsetCheckpoint, check_order, read_leader_epochs, read_offset_checkpoint,
    write_offset_checkpoint as write_offsets,
};
use ottla_log::sidefiles::meta_properties::{self, Release, read_meta_properties};
use ottla_log::sidefiles::metadata::read_partition_metadata;
use ottla_log::sidefiles::text::TextError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeMap;

type FaultText = (String, String, String);

fn fault_text(error: &TextError) -> FaultText {
    (error.to_string(), error.expected.clone(), error.found.clone())
}

/// The offset that a checkpoint has for a topic and a partition.
type OffsetEntry<'py> = ((Bound<'py, PyString>, i32), i64);

/// The entries of an offset checkpoint as ``((topic, partition), offset)``, or what is wrong with it.
#[pyfunction]
pub fn parse_offset_checkpoint<'py>(
    py: Python<'py>,
    data: &[u8],
) -> (Vec<OffsetEntry<'py>>, Option<FaultText>) {
    let entries = match read_offset_checkpoint(data) {
        Ok(entries) => entries,
        Err(error) => return (Vec::new(), Some(fault_text(&error))),
    };
    let mut told: Vec<OffsetEntry<'py>> = Vec::with_capacity(entries.len());
    let mut before = None;
    for OffsetCheckpoint { topic, partition, offset } in &entries {
        // Entries of a topic are mostly together, and share a string.
        let shared = told.last().filter(|_| before == Some(topic));
        let shared = shared.map_or_else(|| PyString::intern(py, topic), |((t, _), _)| t.clone());
        told.push(((shared, *partition), *offset));
        before = Some(topic);
    }
    (told, None)
}

/// The bytes of an offset checkpoint of these topics, partitions and offsets.
#[pyfunction]
pub fn write_offset_checkpoint(
    py: Python<'_>,
    entries: Vec<(String, i32, i64)>,
) -> Bound<'_, PyBytes> {
    let entry = |(topic, partition, offset)| OffsetCheckpoint { topic, partition, offset };
    let entries: Vec<_> = entries.into_iter().map(entry).collect();
    PyBytes::new(py, &write_offsets(&entries))
}

/// The entries of a leader-epoch checkpoint as ``(epoch, start_offset)``, and what is wrong with it:
/// entries that do not increase are given all the same.
#[pyfunction]
pub fn parse_leader_epochs(data: &[u8]) -> (Vec<(i32, i64)>, Option<FaultText>) {
    match read_leader_epochs(data) {
        Ok(epochs) => {
            let fault = check_order(&epochs).err().map(|error| fault_text(&error));
            (epochs.iter().map(|e| (e.epoch, e.start_offset)).collect(), fault)
        }
        Err(error) => (Vec::new(), Some(fault_text(&error))),
    }
}

/// The topic id of a ``partition.metadata``, or what is wrong with it.
#[pyfunction]
pub fn parse_partition_metadata(data: &[u8]) -> (Option<String>, Option<FaultText>) {
    match read_partition_metadata(data) {
        Ok(topic_id) => (Some(topic_id.to_owned()), None),
        Err(error) => (None, Some(fault_text(&error))),
    }
}

/// The properties of a ``meta.properties`` by name, and what is wrong with it, if anything.
#[pyfunction]
pub fn parse_meta_properties(data: &[u8]) -> (BTreeMap<&str, &str>, Option<FaultText>) {
    match read_meta_properties(data) {
        Ok(properties) => (properties, None),
        Err(error) => (BTreeMap::new(), Some(fault_text(&error))),
    }
}

/// The first release of Kafka that may have written a `meta.properties`, major and minor, and the first
/// after the last one; ``None`` where its properties leave it open, as those of an unreadable one do.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn release_bounds(properties: BTreeMap<String, String>) -> (Option<Release>, Option<Release>) {
    let named = properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    meta_properties::release_bounds(&named)
}

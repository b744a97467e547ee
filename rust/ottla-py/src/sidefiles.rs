//! The text files beside the segments, parsed; what keeps one from being read comes as
//! `(message, expected, found)`.

use ottla_log::sidefiles::checkpoint::{check_order, read_leader_epochs, read_offset_checkpoint};
use ottla_log::sidefiles::metadata::read_partition_metadata;
use ottla_log::sidefiles::text::TextError;
use pyo3::prelude::*;

type Fault = (String, String, String);

fn told(error: &TextError) -> Fault {
    (error.to_string(), error.expected.clone(), error.found.clone())
}

/// The entries of an offset checkpoint as ``(topic, partition, offset)``, or what is wrong with it.
#[pyfunction]
pub(crate) fn parse_offset_checkpoint(data: &[u8]) -> (Vec<(String, i32, i64)>, Option<Fault>) {
    match read_offset_checkpoint(data) {
        Ok(entries) => {
            (entries.into_iter().map(|e| (e.topic, e.partition, e.offset)).collect(), None)
        }
        Err(error) => (Vec::new(), Some(told(&error))),
    }
}

/// The entries of a leader-epoch checkpoint as ``(epoch, start_offset)``, and what is wrong with it:
/// entries that do not increase are given all the same.
#[pyfunction]
pub(crate) fn parse_leader_epochs(data: &[u8]) -> (Vec<(i32, i64)>, Option<Fault>) {
    match read_leader_epochs(data) {
        Ok(epochs) => {
            let fault = check_order(&epochs).err().map(|error| told(&error));
            (epochs.iter().map(|e| (e.epoch, e.start_offset)).collect(), fault)
        }
        Err(error) => (Vec::new(), Some(told(&error))),
    }
}

/// The topic id of a ``partition.metadata``, or what is wrong with it.
#[pyfunction]
pub(crate) fn parse_partition_metadata(data: &[u8]) -> (Option<String>, Option<Fault>) {
    match read_partition_metadata(data) {
        Ok(topic_id) => (Some(topic_id.to_owned()), None),
        Err(error) => (None, Some(told(&error))),
    }
}

//! What the names of the files in a partition's directory show: files that Kafka does not put there,
//! leftovers, and segments without their indexes.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use ottla_log::names::{FileKind, FileName, FileState, INDEX, LOG, PartitionState, TIME_INDEX};
use std::collections::{BTreeSet, HashSet};

/// A file or directory inside the directory of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// Returns what the names in a partition's directory show, each finding with the index of its entry.
/// Without `is_whole` only some of its files are known.
pub fn check_names(
    entries: &[DirectoryEntry<'_>],
    state: PartitionState,
    is_whole: bool,
) -> Vec<(usize, Finding)> {
    let names: HashSet<&[u8]> = entries.iter().map(|entry| entry.name).collect();
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let name = FileName::parse(entry.name);
        let finding = if entry.is_directory || name.kind == FileKind::Unknown {
            Some(Finding::new(FindingKind::UnknownFile, "Kafka does not put such a file here"))
        } else if name.state != FileState::Live {
            let state = name.state.name();
            let message = format!("a {state} file of an operation that was not completed");
            Some(Finding::new(FindingKind::LeftoverFile, message))
        } else if name.kind == FileKind::Segment && is_whole && state != PartitionState::Delete {
            missing_indexes(entry.name, &names)
        } else {
            None
        };
        found.extend(finding.map(|finding| (index, finding)));
    }
    found
}

/// Base offsets of live indexes whose segment is not there, in order, by the names of a partition's files.
/// Of a segment that a broker deletes, the log is renamed first: its indexes are none of these.
pub fn orphaned_indexes<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Vec<i64> {
    let (mut indexed, mut segments) = (BTreeSet::new(), BTreeSet::new());
    for name in names.into_iter().map(FileName::parse) {
        let of_kind = match (name.kind, name.state) {
            (
                FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TransactionIndex,
                FileState::Live,
            ) => &mut indexed,
            (FileKind::Segment, FileState::Live | FileState::Deleted) => &mut segments,
            _ => continue,
        };
        of_kind.extend(name.base_offset);
    }
    indexed.difference(&segments).copied().collect()
}

fn missing_indexes(segment: &[u8], names: &HashSet<&[u8]>) -> Option<Finding> {
    let stem = segment.strip_suffix(LOG).unwrap_or(segment);
    let missing: Vec<_> = [INDEX, TIME_INDEX]
        .into_iter()
        .filter(|suffix| !names.contains([stem, suffix].concat().as_slice()))
        .map(String::from_utf8_lossy)
        .collect();
    let message = format!("the segment has no {}", missing.join(" and no "));
    (!missing.is_empty())
        .then(|| Finding::new(FindingKind::IndexMissing, message).graded(Severity::Info))
}

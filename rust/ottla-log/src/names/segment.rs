//! The names of a segment's files.

use super::constants::{INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX};
use super::offset::file_name;

/// The names of a segment's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentNames {
    /// The offset in them.
    pub base_offset: i64,
    /// The batches.
    pub log: Vec<u8>,
    /// The offset index.
    pub index: Vec<u8>,
    /// The time index.
    pub time_index: Vec<u8>,
    /// The transaction index.
    pub transaction_index: Vec<u8>,
}

impl SegmentNames {
    /// Those of a segment in use.
    pub fn of(base_offset: i64) -> Self {
        Self::with_suffix(base_offset, b"")
    }

    /// Those of a segment of an operation under way, such as [`SWAP`](super::SWAP).
    pub fn with_suffix(base_offset: i64, suffix: &[u8]) -> Self {
        let name = |kind: &[u8]| file_name(base_offset, &[kind, suffix].concat());
        Self {
            base_offset,
            log: name(LOG),
            index: name(INDEX),
            time_index: name(TIME_INDEX),
            transaction_index: name(TRANSACTION_INDEX),
        }
    }

    /// All four.
    pub fn all(&self) -> [&Vec<u8>; 4] {
        [&self.log, &self.index, &self.time_index, &self.transaction_index]
    }
}

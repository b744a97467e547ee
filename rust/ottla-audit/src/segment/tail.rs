//! What a segment has behind its last batch, and what its `.index` says of it.

use serde::{Deserialize, Serialize};

/// Bytes behind the last batch of a segment that are no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Where they begin.
    pub position: u64,
    /// How many there are up to the zeros at the end of the file; 0 if there are only zeros.
    pub written_bytes: u64,
}

/// An entry of the `.index` for a batch that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEntry {
    /// The offset in it.
    pub offset: i64,
    /// The position in it, behind the last valid batch.
    pub position: u64,
}

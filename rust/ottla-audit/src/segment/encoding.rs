//! Scans and chunks as bytes: a version, then the value as postcard writes it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// The first byte of a chunk; other numbers are other formats.
pub(crate) const CHUNK_VERSION: u8 = 7;

/// The first byte of a scan.
pub(crate) const SCAN_VERSION: u8 = 135;

/// Why bytes are no chunk or scan, or two chunks do not follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// The bytes were not written by [`crate::Chunk::to_bytes`] or
    /// [`crate::SegmentScan::to_bytes`], or by another version of it.
    Malformed,
    /// The chunks are of different segments, or were scanned at different levels.
    Foreign,
    /// The right one does not begin where the left one ends.
    NotAdjacent {
        /// Where the left one ends.
        stop: u64,
        /// Where the right one begins.
        start: u64,
    },
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str(
                "these bytes are no chunk or scan of this version: scan again with this version",
            ),
            Self::Foreign => f.write_str(
                "the chunks are of different segments, or were scanned at different levels",
            ),
            Self::NotAdjacent { stop, start } => write!(
                f,
                "the left chunk ends at position {stop}, the right one begins at {start}: only neighbours merge"
            ),
        }
    }
}

impl std::error::Error for ChunkError {}

pub(crate) fn to_bytes(value: &impl Serialize, version: u8) -> Vec<u8> {
    // Writing to memory fails only for a sequence of unknown length, and there is none here. If it
    // did fail, `from_bytes` would refuse a version without a value.
    let written = postcard::to_extend(value, vec![version]);
    written.unwrap_or_else(|_| vec![version])
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8], version: u8) -> Result<T, ChunkError> {
    let Some((first, rest)) = bytes.split_first() else { return Err(ChunkError::Malformed) };
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) if *first == version => Ok(value),
        _ => Err(ChunkError::Malformed),
    }
}

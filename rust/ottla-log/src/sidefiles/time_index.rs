//! `.timeindex`: timestamps of a segment and the offsets that first reached them (`TimeIndex`).
//!
//! ```text
//! 0           8                 12
//! │ timestamp │ relative offset │       timestamps above this one occur after this offset only
//! ```
//!
//! As with `.index`, zeros follow the entries while the file is in use.

use ottla_format::header::{read_i32, read_i64};

/// Bytes of one entry.
pub const TIME_ENTRY_BYTES: usize = 12;

/// An entry of a time index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeEntry {
    /// The greatest timestamp so far, in milliseconds.
    pub timestamp: i64,
    /// Last offset of the batch that reached it, less the base offset of the segment.
    pub relative_offset: i32,
}

impl TimeEntry {
    /// The entry as it stands in the file.
    pub fn to_bytes(&self) -> [u8; TIME_ENTRY_BYTES] {
        let mut out = [0; TIME_ENTRY_BYTES];
        out[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..].copy_from_slice(&self.relative_offset.to_be_bytes());
        out
    }

    /// Reads the entry of this number; `None` beyond the last whole one.
    pub fn read(data: &[u8], number: usize) -> Option<Self> {
        let at = number.checked_mul(TIME_ENTRY_BYTES)?;
        Some(Self {
            timestamp: read_i64(data, at)?,
            relative_offset: read_i32(data, at.checked_add(8)?)?,
        })
    }

    /// Its offset in a segment of this base offset.
    pub fn offset(&self, base_offset: i64) -> i64 {
        base_offset.wrapping_add(i64::from(self.relative_offset))
    }

    /// Whether the entries end before this one, which has this number: an entry of zeros can only be
    /// the first.
    pub fn is_unused(&self, number: usize) -> bool {
        number > 0 && self.timestamp == 0 && self.relative_offset == 0
    }
}

/// The whole entries of a file or of a piece of one, unused ones included.
pub fn entries(data: &[u8]) -> impl DoubleEndedIterator<Item = TimeEntry> {
    data.chunks_exact(TIME_ENTRY_BYTES).filter_map(|entry| TimeEntry::read(entry, 0))
}

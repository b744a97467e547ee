//! `.index`: offsets of a segment and where in the file their batches are (`OffsetIndex`).
//!
//! ```text
//! 0                 4          8
//! │ relative offset │ position │        offset = base offset of the segment + relative offset
//! ```
//!
//! The file has no header, no checksum and no length: in use it is preallocated, and zeros follow
//! the entries.

use ottla_format::header::read_i32;

/// Bytes of one entry.
pub const OFFSET_ENTRY_BYTES: usize = 8;

/// An entry of an offset index: the batch with this offset begins at this position or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Offset less the base offset of the segment. Kafka writes none below zero.
    pub relative_offset: i32,
    /// Position in the segment file. Kafka writes none below zero.
    pub position: i32,
}

impl OffsetEntry {
    /// The entry as it stands in the file.
    pub fn to_bytes(&self) -> [u8; OFFSET_ENTRY_BYTES] {
        let mut out = [0; OFFSET_ENTRY_BYTES];
        out[..4].copy_from_slice(&self.relative_offset.to_be_bytes());
        out[4..].copy_from_slice(&self.position.to_be_bytes());
        out
    }

    /// Reads the entry of this number; `None` beyond the last whole one.
    pub fn read(data: &[u8], number: usize) -> Option<Self> {
        let at = number.checked_mul(OFFSET_ENTRY_BYTES)?;
        Some(Self {
            relative_offset: read_i32(data, at)?,
            position: read_i32(data, at.checked_add(4)?)?,
        })
    }

    /// Its offset in a segment of this base offset.
    pub fn offset(&self, base_offset: i64) -> i64 {
        base_offset.wrapping_add(i64::from(self.relative_offset))
    }

    /// Whether the entries end before this one, which has this number: offsets increase, so only the
    /// first may have the base offset itself.
    pub fn is_unused(&self, number: usize) -> bool {
        number > 0 && self.relative_offset == 0
    }
}

/// Whole entries of a file of so many bytes.
#[allow(clippy::arithmetic_side_effects, reason = "divides by a constant")]
pub fn whole_entries(bytes: u64) -> u64 {
    bytes / OFFSET_ENTRY_BYTES as u64
}

/// Whether the indexes of a segment can hold an offset: relative offsets are not below zero, and have
/// 31 bits.
pub fn is_in_reach(base_offset: i64, offset: i64) -> bool {
    (0..=i64::from(i32::MAX)).contains(&offset.wrapping_sub(base_offset))
}

/// The whole entries of a file or of a piece of one, unused ones included.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::offset_index::{OffsetEntry, entries};
///
/// let entry = OffsetEntry { relative_offset: 7, position: 4100 };
/// assert_eq!(entries(&entry.to_bytes()).collect::<Vec<_>>(), [entry]);
/// ```
pub fn entries(data: &[u8]) -> impl DoubleEndedIterator<Item = OffsetEntry> {
    data.chunks_exact(OFFSET_ENTRY_BYTES).filter_map(|entry| OffsetEntry::read(entry, 0))
}

//! The names of snapshots of the cluster's metadata (KIP-630).

use super::constants::CHECKPOINT;
use super::digits::{EPOCH_DIGITS, OFFSET_DIGITS};
use super::offset::file_name;

/// What the name of a snapshot of the cluster's metadata says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetadataSnapshotId {
    /// Where the log goes on behind what it holds.
    pub end_offset: i64,
    /// The epoch of the last batch that it holds.
    pub epoch: i32,
}

impl MetadataSnapshotId {
    /// Reads the name of a snapshot in use, with all its digits.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::names::MetadataSnapshotId;
    ///
    /// let id = MetadataSnapshotId { end_offset: 335, epoch: 1 };
    /// assert_eq!(id.name(), b"00000000000000000335-0000000001.checkpoint");
    /// assert_eq!(MetadataSnapshotId::parse(&id.name()), Some(id));
    /// assert_eq!(MetadataSnapshotId::parse(b"335-1.checkpoint"), None);
    /// ```
    pub fn parse(name: &[u8]) -> Option<Self> {
        let stem = std::str::from_utf8(name.strip_suffix(CHECKPOINT)?).ok()?;
        let (end_offset, epoch) = stem.split_once('-')?;
        let has_digits =
            |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
        if !has_digits(end_offset, OFFSET_DIGITS) || !has_digits(epoch, EPOCH_DIGITS) {
            return None;
        }
        Some(Self { end_offset: end_offset.parse().ok()?, epoch: epoch.parse().ok()? })
    }

    /// Its name.
    pub fn name(&self) -> Vec<u8> {
        let mut suffix = format!("-{:010}", self.epoch.max(0)).into_bytes();
        suffix.extend_from_slice(CHECKPOINT);
        file_name(self.end_offset, &suffix)
    }
}

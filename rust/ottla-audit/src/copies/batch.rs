//! A batch of a copy that was read again.

use crate::segment::fingerprint::{LogPosition, key};
use ottla_format::batch::BatchInfo;

/// A batch of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedBatch {
    pub(crate) info: BatchInfo,
    pub(crate) segment: u32,
}

impl ListedBatch {
    pub(crate) fn place(&self) -> LogPosition {
        LogPosition { segment: self.segment, position: self.info.position }
    }

    /// Whether offsets, bytes and leader epoch are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.has_same_bytes(other)
            && self.info.partition_leader_epoch == other.info.partition_leader_epoch
    }

    /// Whether the offsets and everything that the CRC covers are the same.
    pub(crate) fn has_same_bytes(&self, other: &Self) -> bool {
        let what = |info: &BatchInfo| (key(info), info.last_offset, info.crc);
        what(&self.info) == what(&other.info)
    }

    /// Whether the log cleaner may have rewritten it, with other bytes than it found.
    pub(crate) fn is_cleaned(&self) -> bool {
        let info = &self.info;
        let span = info.last_offset.saturating_sub(info.base_offset).saturating_add(1);
        info.magic < 2
            || info.delete_horizon_ms().is_some()
            || info.record_count.is_some_and(|count| i64::from(count) < span)
    }
}

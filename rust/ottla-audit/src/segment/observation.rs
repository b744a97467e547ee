//! A valid batch as a scan observes it.

use crate::partition::gaps::span;
use ottla_format::batch::BatchInfo;
use ottla_format::control_record::ControlRecord;
use ottla_kernels::BatchHeader;
use serde::{Deserialize, Serialize};

/// Takes every batch that is framed correctly, and whether its CRC is correct.
pub type OnBatch<'a> = dyn FnMut(&BatchInfo, bool) + 'a;

/// A batch with a correct CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchObservation {
    pub(crate) info: BatchInfo,
    /// Records that could be read; at level `crc` what the header says.
    pub(crate) records: u64,
    pub(crate) control: Option<ControlRecord>,
    /// Whether the base offset is known. It is not for a legacy wrapper that was not inflated.
    pub(crate) has_base_offset: bool,
    /// Whether every record could be read.
    pub(crate) is_readable: bool,
    /// The earliest timestamp of a record, where it is known: records were looked at, and have
    /// timestamps of their own.
    pub(crate) earliest_timestamp: Option<i64>,
}

impl BatchObservation {
    /// A batch of magic 2 that the kernels have verified; `base` is the position of their buffer in
    /// the file.
    pub(crate) fn of_header(header: &BatchHeader, base: u64) -> Self {
        Self {
            info: BatchInfo::from_kernel(header, base),
            records: u64::try_from(header.record_count).unwrap_or(0),
            control: None,
            has_base_offset: true,
            is_readable: true,
            earliest_timestamp: None,
        }
    }

    /// The base offset; where only the last offset is known, all that `lowest_unseen` leaves to it.
    pub(crate) fn base_offset(&self, lowest_unseen: i64) -> i64 {
        if self.has_base_offset {
            self.info.base_offset
        } else {
            self.info.last_offset.min(lowest_unseen)
        }
    }

    /// Whether offsets inside the batch have no record: compaction removed it.
    pub(crate) fn is_thin(&self) -> bool {
        let info = &self.info;
        self.record_count()
            .is_some_and(|count| count > 0 && count <= info.last_offset.abs_diff(info.base_offset))
    }

    /// Records of the batch, where they are known: magic 2 has them in the header, the older formats
    /// show them in the records.
    fn record_count(&self) -> Option<u64> {
        match self.info.record_count {
            Some(count) => Some(u64::from(count.max(0) as u32)),
            None => (self.has_base_offset && self.is_readable).then_some(self.records),
        }
    }

    /// Offsets of the batch, from `base_offset` on, that have no record.
    pub(crate) fn removed_offsets(&self, base_offset: i64) -> u64 {
        let count = self.record_count().unwrap_or(u64::MAX);
        span(base_offset, self.info.last_offset).saturating_sub(count)
    }
}

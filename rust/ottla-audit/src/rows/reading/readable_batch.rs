//! A batch of which a consumer gets records.

use ottla_format::batch::BatchInfo;

/// A batch of which a consumer gets records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadableBatch {
    /// Index of its segment.
    pub segment: usize,
    /// The batch.
    pub info: BatchInfo,
    /// Records before this offset, if there are any, were returned before or not asked for.
    pub first_offset: i64,
    /// Records from this offset on are not asked for.
    pub end_offset: i64,
}

/// What becomes of a record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// It is returned.
    Wanted,
    /// It was returned before, or was not asked for.
    Unwanted,
    /// Its offset is not in the batch, or not behind the one before.
    Wrong,
}

impl ReadableBatch {
    /// Returns what becomes of a record, where `next_offset` is behind the one before it. A consumer
    /// passes over offsets that go back, and would lose what follows one that is too high.
    pub fn place(&self, offset: i64, next_offset: i64) -> RecordPlace {
        if offset >= next_offset && offset <= self.info.last_offset {
            return if offset < self.end_offset {
                RecordPlace::Wanted
            } else {
                RecordPlace::Unwanted
            };
        }
        let is_before = offset < self.first_offset && next_offset <= self.first_offset;
        if is_before { RecordPlace::Unwanted } else { RecordPlace::Wrong }
    }
}

//! When the batches of a segment get entries in its indexes, and which (`LogSegment.append`,
//! `docs/kafka/log-dir.md` §3.1, §3.2).

use super::time_index::TimeEntry;

/// The indexes of a segment as its batches fill them.
#[derive(Clone, Copy, Debug)]
pub struct IndexFill {
    base_offset: i64,
    /// The greatest timestamp, −1 for none.
    pub max_timestamp: i64,
    /// Last offset of the batch that reached it first.
    pub max_timestamp_offset: i64,
    /// The greatest timestamp that the time index has, −1 for none.
    pub indexed_timestamp: i64,
    /// Position of the batch of the last entries.
    pub last_entry: u64,
}

impl IndexFill {
    /// Without a batch.
    pub fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            max_timestamp: -1,
            max_timestamp_offset: base_offset,
            indexed_timestamp: -1,
            last_entry: 0,
        }
    }

    /// Counts a batch by its timestamps alone.
    pub fn count(&mut self, last_offset: i64, max_timestamp: i64) {
        if max_timestamp > self.max_timestamp {
            (self.max_timestamp, self.max_timestamp_offset) = (max_timestamp, last_offset);
        }
    }

    /// Counts a batch at a position. Returns whether it gets an entry in the offset index, with its
    /// last offset, and then the time index one where [`time_entry`](Self::time_entry) has it: once
    /// more than `index.interval.bytes` lie between it and the last that got one. So the first batch
    /// of a segment gets none.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::sidefiles::fill::IndexFill;
    ///
    /// let mut fill = IndexFill::new(100);
    /// assert!(!fill.add(0, 109, 5000, 4096));
    /// assert!(!fill.add(4096, 119, 6000, 4096));
    /// assert!(fill.add(4097, 129, 5500, 4096));
    /// let entry = fill.time_entry().expect("a timestamp that the index lacks");
    /// assert_eq!((entry.timestamp, entry.offset(100)), (6000, 119));
    /// ```
    pub fn add(
        &mut self,
        position: u64,
        last_offset: i64,
        max_timestamp: i64,
        index_interval_bytes: u64,
    ) -> bool {
        self.count(last_offset, max_timestamp);
        let is_due = position.saturating_sub(self.last_entry) > index_interval_bytes;
        if is_due {
            self.last_entry = position;
        }
        is_due
    }

    /// The entry of the greatest timestamp, where the time index lacks it: with each entry of the
    /// offset index, and at the end of a segment.
    pub fn time_entry(&mut self) -> Option<TimeEntry> {
        if self.max_timestamp <= self.indexed_timestamp {
            return None;
        }
        self.indexed_timestamp = self.max_timestamp;
        let relative_offset = self.max_timestamp_offset.wrapping_sub(self.base_offset) as i32;
        Some(TimeEntry { timestamp: self.max_timestamp, relative_offset })
    }
}

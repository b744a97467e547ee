//! The indexes of a segment as its batches fill them, entry by entry (`LogSegment.recover`).

use super::interruption::Interruption;
use super::segment_file::SegmentFile;
use crate::sidefiles::fill::IndexFill;
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use crate::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};
use crate::sidefiles::transaction_index::AbortedTransaction;

/// What a topic's configuration says of its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// `index.interval.bytes`: bytes between two entries of an index.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: bytes of the largest index.
    pub segment_index_bytes: u64,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self { index_interval_bytes: 4096, segment_index_bytes: 10 << 20 }
    }
}

#[allow(clippy::arithmetic_side_effects, reason = "divides by the size of an entry")]
impl IndexConfig {
    /// Entries of the largest offset index.
    pub(super) fn max_offset_entries(&self) -> u64 {
        self.segment_index_bytes / OFFSET_ENTRY_BYTES as u64
    }

    /// Entries of the largest time index.
    fn max_time_entries(&self) -> u64 {
        self.segment_index_bytes / TIME_ENTRY_BYTES as u64
    }
}

/// The indexes of a segment, as far as it was read.
#[derive(Clone, Debug)]
pub(super) struct IndexBuilder {
    pub(super) base_offset: i64,
    pub(super) index: Vec<OffsetEntry>,
    pub(super) time_index: Vec<TimeEntry>,
    pub(super) aborted: Vec<AbortedTransaction>,
    fill: IndexFill,
    /// Bytes of the batches that were added.
    pub(super) valid_bytes: u64,
    last_indexed: i64,
}

impl IndexBuilder {
    pub(super) fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            index: Vec::new(),
            time_index: Vec::new(),
            aborted: Vec::new(),
            fill: IndexFill::new(base_offset),
            valid_bytes: 0,
            last_indexed: base_offset,
        }
    }

    fn relative(&self, offset: i64) -> i32 {
        offset.wrapping_sub(self.base_offset) as i32
    }

    /// Adds a batch: both indexes get an entry where one is due.
    pub(super) fn add(
        &mut self,
        last_offset: i64,
        max_timestamp: i64,
        config: &IndexConfig,
    ) -> Result<(), Interruption> {
        let interval = config.index_interval_bytes;
        if self.fill.add(self.valid_bytes, last_offset, max_timestamp, interval) {
            self.add_offset(last_offset, config)?;
            self.add_timestamp(Some(config))?;
        }
        Ok(())
    }

    /// The greatest timestamp, −1 for none.
    pub(super) fn max_timestamp(&self) -> i64 {
        self.fill.max_timestamp
    }

    fn add_offset(&mut self, last_offset: i64, config: &IndexConfig) -> Result<(), Interruption> {
        let count = self.index.len();
        if count as u64 >= config.max_offset_entries() {
            let message = format!("Attempt to append to a full index (size = {count}).");
            return Err(Interruption::illegal_argument(message));
        }
        if count > 0 && last_offset <= self.last_indexed {
            return Err(Interruption::InvalidOffset(format!(
                "Attempt to append an offset {last_offset} to position {count} no larger than the \
                 last offset appended ({})",
                self.last_indexed
            )));
        }
        let relative_offset = self.relative(last_offset);
        self.index.push(OffsetEntry { relative_offset, position: self.valid_bytes as i32 });
        self.last_indexed = last_offset;
        Ok(())
    }

    /// Adds the greatest timestamp so far; at the end of a segment even to a full index.
    fn add_timestamp(&mut self, config: Option<&IndexConfig>) -> Result<(), Interruption> {
        let count = self.time_index.len();
        let next = (count as u64).saturating_add(1);
        if config.is_some_and(|config| next >= config.max_time_entries()) {
            let message = format!("Attempt to append to a full time index (size = {count}).");
            return Err(Interruption::illegal_argument(message));
        }
        let offset = self.fill.max_timestamp_offset;
        let last = self.time_index.last();
        if let Some(last) = last.map(|entry| entry.offset(self.base_offset))
            && offset < last
        {
            return Err(Interruption::InvalidOffset(format!(
                "Attempt to append an offset ({offset}) to slot {count} no larger than the last \
                 offset appended ({last})"
            )));
        }
        self.time_index.extend(self.fill.time_entry());
        Ok(())
    }

    /// The pass is over: the greatest timestamp goes into the time index, full or not.
    pub(super) fn finish(&mut self) -> Result<(), Interruption> {
        self.add_timestamp(None)
    }

    /// Adds a transaction that a marker has aborted.
    pub(super) fn add_aborted(&mut self, entry: AbortedTransaction) -> Result<(), Interruption> {
        if let Some(last) = self.aborted.last()
            && last.last_offset >= entry.last_offset
        {
            return Err(Interruption::illegal_argument(format!(
                "The last offset of appended transactions must increase sequentially, but {} is \
                 not greater than current last offset {}",
                entry.last_offset, last.last_offset
            )));
        }
        self.aborted.push(entry);
        Ok(())
    }
}

/// The indexes of a segment that was read before, but for its transactions.
pub(super) fn build_indexes(
    log: &mut SegmentFile<'_>,
    base_offset: i64,
    config: &IndexConfig,
) -> Result<IndexBuilder, Interruption> {
    let mut built = IndexBuilder::new(base_offset);
    while let Some(frame) = log.next(built.valid_bytes, log.size())? {
        let info = log.info(&frame)?;
        built.add(info.last_offset, info.max_timestamp, config)?;
        built.valid_bytes = frame.end();
    }
    built.finish()?;
    Ok(built)
}

/// The entries of an offset index over a part of a segment that was read before.
pub(super) fn build_offset_index(
    log: &mut SegmentFile<'_>,
    base_offset: i64,
    valid_bytes: u64,
    config: &IndexConfig,
) -> Result<Vec<OffsetEntry>, Interruption> {
    let mut built = IndexBuilder::new(base_offset);
    while let Some(frame) = log.next(built.valid_bytes, valid_bytes)? {
        built.add(log.last_offset(&frame)?, -1, config)?;
        built.valid_bytes = frame.end();
    }
    Ok(built.index)
}

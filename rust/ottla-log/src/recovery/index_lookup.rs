//! An offset index as Kafka searches it (`OffsetIndex.lookup`), whatever its entries are.

use super::interruption::LoadError;
use super::open_file::OpenFile;
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use std::cmp::Ordering;
use std::rc::Rc;

/// Entries at the end of an index that Kafka searches first.
const WARM_ENTRIES: u64 = 8192 / OFFSET_ENTRY_BYTES as u64;

/// Where the entries of an index are.
pub(super) enum IndexEntries<'d> {
    Disk { file: OpenFile<'d>, count: u64 },
    Zeros(u64),
    New(Rc<[OffsetEntry]>),
}

/// An offset index that is open.
pub(super) struct OpenIndex<'d> {
    pub(super) entries: IndexEntries<'d>,
    pub(super) base_offset: i64,
}

impl OpenIndex<'_> {
    fn count(&self) -> u64 {
        match &self.entries {
            IndexEntries::Disk { count, .. } | IndexEntries::Zeros(count) => *count,
            IndexEntries::New(entries) => entries.len() as u64,
        }
    }

    pub(super) fn entry(&self, number: u64) -> Result<OffsetEntry, LoadError> {
        let zeros = OffsetEntry { relative_offset: 0, position: 0 };
        Ok(match &self.entries {
            IndexEntries::Disk { file, .. } => {
                let mut bytes = [0; OFFSET_ENTRY_BYTES];
                file.fill(number.saturating_mul(OFFSET_ENTRY_BYTES as u64), &mut bytes)?;
                OffsetEntry::read(&bytes, 0).unwrap_or(zeros)
            }
            IndexEntries::Zeros(_) => zeros,
            IndexEntries::New(entries) => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                entries.get(number).copied().unwrap_or(zeros)
            }
        })
    }

    fn offset(&self, number: u64) -> Result<i64, LoadError> {
        Ok(self.entry(number)?.offset(self.base_offset))
    }

    /// The offset of the last entry, or the base offset where there is none.
    pub(super) fn last_offset(&self) -> Result<i64, LoadError> {
        match self.count().checked_sub(1) {
            None => Ok(self.base_offset),
            Some(last) => self.offset(last),
        }
    }

    /// The last entry that is in use, with its number.
    pub(super) fn last_used(&self) -> Result<Option<(u64, OffsetEntry)>, LoadError> {
        // Entries that are not in use follow all that are.
        let (mut used, mut end) = (0, self.count());
        while used < end {
            let middle = used.midpoint(end);
            let number = usize::try_from(middle).unwrap_or(usize::MAX);
            if self.entry(middle)?.is_unused(number) {
                end = middle;
            } else {
                used = middle.saturating_add(1);
            }
        }
        let Some(last) = used.checked_sub(1) else { return Ok(None) };
        Ok(Some((last, self.entry(last)?)))
    }

    /// Position of the greatest entry at or below an offset, as Kafka's search finds it: over
    /// entries that do not increase that may be any.
    pub(super) fn lookup(&self, target: i64) -> Result<u64, LoadError> {
        let Some(last) = self.count().checked_sub(1) else { return Ok(0) };
        let first_warm = last.saturating_sub(WARM_ENTRIES);
        let (mut low, mut high) = if self.offset(first_warm)? < target {
            (first_warm, last)
        } else if self.offset(0)? > target {
            return Ok(0);
        } else {
            (0, first_warm)
        };
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low).div_ceil(2));
            match self.offset(middle)?.cmp(&target) {
                Ordering::Greater => high = middle.saturating_sub(1),
                Ordering::Less => low = middle,
                Ordering::Equal => {
                    low = middle;
                    break;
                }
            }
        }
        Ok(u64::try_from(self.entry(low)?.position).unwrap_or(0))
    }
}

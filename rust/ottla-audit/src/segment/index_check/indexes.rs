//! What the two index files of a segment hold.

use super::faults::{EntryFault, FirstFault};
use crate::segment::tail::LostEntry;
use ottla_log::sidefiles::offset_index::{self, OFFSET_ENTRY_BYTES, OffsetEntry};
use ottla_log::sidefiles::time_index::{self, TIME_ENTRY_BYTES, TimeEntry};

/// Bytes of entries that are checked: more than a broker writes with the default of
/// `segment.index.bytes`, and a bound on the memory that an index takes.
pub const MAX_INDEX_BYTES: usize = 16 << 20;

/// The most entries that are checked, of the smaller kind.
pub(super) const MAX_ENTRIES: usize = MAX_INDEX_BYTES / OFFSET_ENTRY_BYTES;

/// What the two index files of a segment hold, up to the zeros that follow while they are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    pub(super) base_offset: i64,
    pub(super) offsets: Vec<OffsetEntry>,
    pub(super) times: Vec<TimeEntry>,
    /// Entries of `offsets` before the first that goes back: only those are checked against the log.
    ordered_offsets: usize,
    /// The same of `times`.
    ordered_times: usize,
    /// Bytes of the `.index` file, if there is one.
    pub(super) offset_bytes: Option<u64>,
    /// Bytes of the `.timeindex` file, if there is one.
    pub(super) time_bytes: Option<u64>,
    /// Whether entries beyond [`MAX_INDEX_BYTES`] were left out.
    pub(super) is_cut: bool,
}

impl Indexes {
    /// No index files.
    pub const NONE: &'static Self = &Self::new(0);

    /// The indexes of a segment, still without entries.
    pub const fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            offsets: Vec::new(),
            times: Vec::new(),
            ordered_offsets: 0,
            ordered_times: 0,
            offset_bytes: None,
            time_bytes: None,
            is_cut: false,
        }
    }

    /// There is an `.index` of this many bytes.
    pub fn has_offsets(&mut self, bytes: u64) {
        self.offset_bytes = Some(bytes);
    }

    /// There is a `.timeindex` of this many bytes.
    pub fn has_times(&mut self, bytes: u64) {
        self.time_bytes = Some(bytes);
    }

    /// Adds the next whole entries of the `.index`. Returns whether more may follow.
    pub fn add_offsets(&mut self, data: &[u8]) -> bool {
        for entry in offset_index::entries(data) {
            let number = self.offsets.len();
            let is_zero = entry.relative_offset == 0 && entry.position == 0;
            if entry.is_unused(number) || is_zero {
                return false;
            }
            if number >= MAX_INDEX_BYTES / OFFSET_ENTRY_BYTES {
                self.is_cut = true;
                return false;
            }
            let before = self.offsets.last().map_or(i32::MIN, |before| before.position);
            let is_ordered = number == 0 || entry.position > before;
            self.offsets.push(entry);
            if self.ordered_offsets == number && is_ordered {
                self.ordered_offsets = self.offsets.len();
            }
        }
        true
    }

    /// Adds the next whole entries of the `.timeindex`. Returns whether more may follow.
    pub fn add_times(&mut self, data: &[u8]) -> bool {
        for entry in time_index::entries(data) {
            let number = self.times.len();
            if entry.timestamp == 0 && entry.relative_offset == 0 {
                return false;
            }
            if number >= MAX_INDEX_BYTES / TIME_ENTRY_BYTES {
                self.is_cut = true;
                return false;
            }
            let before = self.times.last().map_or(i32::MIN, |before| before.relative_offset);
            self.times.push(entry);
            if self.ordered_times == number && entry.relative_offset >= before {
                self.ordered_times = self.times.len();
            }
        }
        true
    }

    /// Entries of the `.index` whose positions go up.
    pub(super) fn ordered_offsets(&self) -> &[OffsetEntry] {
        self.offsets.get(..self.ordered_offsets).unwrap_or(&self.offsets)
    }

    /// Entries of the `.timeindex` whose offsets do not go back.
    pub(super) fn ordered_times(&self) -> &[TimeEntry] {
        self.times.get(..self.ordered_times).unwrap_or(&self.times)
    }

    /// Number of the first entry of the `.index` at or behind a position.
    pub(super) fn offset_entry_at(&self, position: u64) -> usize {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        self.ordered_offsets().partition_point(|entry| i64::from(entry.position) < position)
    }

    /// Number of the first entry of the `.timeindex` at or above an offset.
    pub(super) fn time_entry_at(&self, offset: i64) -> usize {
        self.ordered_times().partition_point(|entry| entry.offset(self.base_offset) < offset)
    }

    /// The last entry of the `.index`, if its batch begins at `position` or behind.
    pub(crate) fn last_entry_behind(&self, position: u64) -> Option<LostEntry> {
        let entry = self.ordered_offsets().last()?;
        let behind = u64::try_from(entry.position).ok().filter(|&behind| behind >= position)?;
        Some(LostEntry { offset: entry.offset(self.base_offset), position: behind })
    }

    fn offset_of(&self, number: usize) -> Option<i64> {
        Some(self.offsets.get(number)?.offset(self.base_offset))
    }

    /// Judges an entry of the `.index` whose position is that of a batch with this base offset.
    pub(super) fn judge(&self, number: usize, base_offset: i64) -> FirstFault {
        let before = number.checked_sub(1);
        if let Some(before) = before
            && self.offset_of(before).is_some_and(|offset| offset >= base_offset)
        {
            return Some((before, EntryFault::Far { base_offset }));
        }
        let is_above = self.offset_of(number).is_some_and(|offset| offset < base_offset);
        is_above.then_some((number, EntryFault::Above { base_offset }))
    }

    /// The first entry of the `.index` that goes back.
    pub(super) fn offset_order(&self) -> FirstFault {
        first_out_of_order(&self.offsets, |before, entry| {
            entry.relative_offset <= before.relative_offset || entry.position <= before.position
        })
    }

    /// The first entry of the `.timeindex` that goes back.
    pub(super) fn time_order(&self) -> FirstFault {
        first_out_of_order(&self.times, |before, entry| {
            entry.timestamp <= before.timestamp || entry.relative_offset < before.relative_offset
        })
    }
}

/// The first entry that goes back from the one before it.
fn first_out_of_order<T>(entries: &[T], goes_back: impl Fn(&T, &T) -> bool) -> FirstFault {
    let pairs = entries.iter().zip(entries.iter().enumerate().skip(1));
    let mut wrong = pairs.filter(|(before, (_, entry))| goes_back(before, entry));
    wrong.next().map(|(_, (number, _))| (number, EntryFault::Order))
}

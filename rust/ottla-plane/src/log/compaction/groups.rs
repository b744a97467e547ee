//! Segments that become one, so that compaction does not leave many small ones.

use super::sealed::SealedSegment;
use ottla_log::sidefiles::offset_index::OFFSET_ENTRY_BYTES;
use ottla_log::sidefiles::time_index::TIME_ENTRY_BYTES;
use std::ops::Range;

/// What segments take together.
#[derive(Clone, Copy)]
struct Sum {
    size: u64,
    offset_entries: usize,
    time_entries: usize,
}

impl Sum {
    fn of(segment: &SealedSegment) -> Self {
        let &SealedSegment { size, offset_entries, time_entries, .. } = segment;
        Self { size, offset_entries, time_entries }
    }

    fn with(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            offset_entries: self.offset_entries.saturating_add(other.offset_entries),
            time_entries: self.time_entries.saturating_add(other.time_entries),
        }
    }

    fn fits(&self, segment_bytes: u64, index_bytes: u64) -> bool {
        let index = (self.offset_entries as u64).saturating_mul(OFFSET_ENTRY_BYTES as u64);
        let times = (self.time_entries as u64).saturating_mul(TIME_ENTRY_BYTES as u64);
        self.size <= segment_bytes && index <= index_bytes && times <= index_bytes
    }
}

/// The segments in groups that follow each other: each is within the size of a segment and of its
/// indexes as it is now, and its offsets are within 2^31 of its base.
pub(super) fn groups(
    segments: &[SealedSegment],
    end_offset: i64,
    segment_bytes: u64,
    index_bytes: u64,
) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut last: Option<(Sum, i64)> = None;
    for (number, segment) in segments.iter().enumerate() {
        let behind = segments.get(number.saturating_add(1));
        let last_offset = behind.map_or(end_offset, |next| next.base_offset).saturating_sub(1);
        let is_near = |base_offset: i64| {
            segment.size == 0 || last_offset.saturating_sub(base_offset) <= i64::from(i32::MAX)
        };
        let grown = last
            .map(|(sum, base_offset)| (sum.with(Sum::of(segment)), base_offset))
            .filter(|(sum, base)| sum.fits(segment_bytes, index_bytes) && is_near(*base));
        match (grown, groups.last_mut()) {
            (Some(_), Some(group)) => group.end = number.saturating_add(1),
            _ => groups.push(number..number.saturating_add(1)),
        }
        last = Some(grown.unwrap_or((Sum::of(segment), segment.base_offset)));
    }
    groups
}

//! How many entries of the indexes of a segment can be believed.
//!
//! Kafka believes all of them. Who goes on with a log searches it by them, and adds entries behind them:
//! an index that does not fit its segment is better left out, and the segment searched from its start.

use super::files::Files;
use super::index_lookup::{IndexEntries, OpenIndex};
use super::interruption::{Interruption, LoadError};
use super::open_file::OpenFile;
use super::segment_file::SegmentFile;
use crate::names::SegmentNames;
use crate::sidefiles::offset_index::{OffsetEntry, is_in_reach, whole_entries};
use crate::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};

/// A segment of a log that is loaded, and the entries of its indexes that can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredSegment {
    /// The offset that names it.
    pub base_offset: i64,
    /// Bytes of batches.
    pub size: u64,
    /// Entries of `.index`.
    pub offset_entries: u64,
    /// Entries of `.timeindex`.
    pub time_entries: u64,
}

/// A segment as its files are, which holds no offset from `end_offset` on. Of the last segment, whose
/// indexes grow, every entry is looked at, of others the last.
pub(super) fn read_segment(
    files: &Files<'_>,
    names: &SegmentNames,
    end_offset: i64,
    is_last: bool,
) -> Result<RecoveredSegment, LoadError> {
    let file = files.open(&names.log)?;
    let size = file.size()?;
    let path = String::from_utf8_lossy(&names.log).into_owned();
    let mut log = SegmentFile::new(Some(file), (0, size), path);
    let base_offset = names.base_offset;
    let offsets = base_offset..end_offset;
    let is_within = |offset: i64| is_in_reach(base_offset, offset) && offsets.contains(&offset);

    let file = files.open(&names.index)?;
    let count = whole_entries(file.size()?);
    let index = OpenIndex { entries: IndexEntries::Disk { file, count }, base_offset };
    let offset_entries = match index.last_used()? {
        Some((number, last))
            if is_within(last.offset(base_offset))
                && (!is_last || increases(&index, number)?)
                && leads_to_the_end(&mut log, last, base_offset)? =>
        {
            number.saturating_add(1)
        }
        _ => 0,
    };

    let file = files.open(&names.time_index)?;
    let time_entries = used_times(&file)?;
    let times = if is_last { 0 } else { time_entries.saturating_sub(1) }..time_entries;
    let mut before: Option<TimeEntry> = None;
    let mut are_sound = true;
    for number in times {
        let entry = read_time(&file, number)?;
        are_sound &= entry.timestamp >= 0
            && is_within(entry.offset(base_offset))
            && before.is_none_or(|before| {
                before.timestamp < entry.timestamp
                    && before.relative_offset <= entry.relative_offset
            });
        before = Some(entry);
    }
    let time_entries = if are_sound { time_entries } else { 0 };
    Ok(RecoveredSegment { base_offset, size, offset_entries, time_entries })
}

/// Whether the entries increase, up to the one of a number.
fn increases(index: &OpenIndex<'_>, last: u64) -> Result<bool, LoadError> {
    let mut before: Option<OffsetEntry> = None;
    for number in 0..=last {
        let entry = index.entry(number)?;
        let is_above = before.is_none_or(|before| {
            before.relative_offset < entry.relative_offset && before.position < entry.position
        });
        if !is_above || entry.relative_offset < 0 || entry.position < 0 {
            return Ok(false);
        }
        before = Some(entry);
    }
    Ok(true)
}

/// Whether a batch begins where an entry points to, and from there on the segment holds nothing else.
fn leads_to_the_end(
    log: &mut SegmentFile<'_>,
    entry: OffsetEntry,
    base_offset: i64,
) -> Result<bool, LoadError> {
    let Ok(start) = u64::try_from(entry.position) else { return Ok(false) };
    let mut position = start;
    loop {
        match log.next(position, log.size()) {
            Ok(Some(frame)) if position > start || frame.offset <= entry.offset(base_offset) => {
                position = frame.end();
            }
            Err(Interruption::Failed(error)) => return Err(error),
            _ => return Ok(position > start && position == log.size()),
        }
    }
}

/// How many entries of a time index are in use.
#[allow(clippy::arithmetic_side_effects, reason = "divides by a constant")]
fn used_times(file: &OpenFile<'_>) -> Result<u64, LoadError> {
    let (mut used, mut end) = (0, file.size()? / TIME_ENTRY_BYTES as u64);
    while used < end {
        let middle = used.midpoint(end);
        let number = usize::try_from(middle).unwrap_or(usize::MAX);
        if read_time(file, middle)?.is_unused(number) {
            end = middle;
        } else {
            used = middle.saturating_add(1);
        }
    }
    Ok(used)
}

fn read_time(file: &OpenFile<'_>, number: u64) -> Result<TimeEntry, LoadError> {
    let mut bytes = [0; TIME_ENTRY_BYTES];
    file.fill(number.saturating_mul(TIME_ENTRY_BYTES as u64), &mut bytes)?;
    Ok(TimeEntry::read(&bytes, 0).unwrap_or(TimeEntry { timestamp: 0, relative_offset: 0 }))
}

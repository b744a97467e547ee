//! Splitting a segment whose offsets are too far apart for its indexes
//! (`LocalLog.splitOverflowedSegment`).

use super::files::{Extent, FileContent, NewIndex};
use super::interruption::Interruption;
use super::partition_log::PartitionLog;
use super::segment::SegmentReader;
use super::segment_file::SegmentFile;
use crate::names::SegmentNames;
use crate::sidefiles::offset_index::{OffsetEntry, is_in_reach};

/// Bytes that Kafka copies at once into the parts.
const MAX_COPY_BYTES: u64 = 1 << 20;

/// A part of a segment that becomes one of its own.
struct Part {
    base_offset: i64,
    start: u64,
    end: u64,
    entries: Vec<OffsetEntry>,
}

/// Puts the parts of a segment in its place.
pub(super) fn split_segment(
    log: &mut PartitionLog<'_>,
    base_offset: i64,
) -> Result<(), Interruption> {
    let names = SegmentNames::of(base_offset);
    let next_offset = log.reader.next_offset(&names)?;
    if next_offset <= base_offset || is_in_reach(base_offset, next_offset.wrapping_sub(1)) {
        let path = log.reader.path(&names.log);
        return Err(Interruption::illegal_argument(format!(
            "Split operation is only permitted for segments with overflow, and the problem path is \
             {path}"
        )));
    }
    let whole = log.reader.extent(&names.log)?;
    let mut parts = Vec::new();
    let mut position = 0;
    let mut file = log.reader.log(&names.log)?;
    while position < whole.size {
        let part = read_part(&mut log.reader, &mut file, position)?;
        position = part.end;
        parts.push(part);
    }
    if log.segments.remove(&base_offset).is_some() {
        log.remove_files(&names);
        if parts.iter().all(|part| part.base_offset != base_offset) {
            log.delete_snapshot(base_offset);
        }
    }
    for part in parts {
        let names = SegmentNames::of(part.base_offset);
        let extent = Extent {
            origin: whole.origin.clone(),
            start: whole.start.saturating_add(part.start),
            size: part.end.saturating_sub(part.start),
        };
        let files = &mut log.reader.files;
        files.put(&names.log, FileContent::Log(extent));
        files.put(&names.index, FileContent::Index(NewIndex::Entries(part.entries.into())));
        files.put(&names.time_index, FileContent::Other);
        log.segments.insert(part.base_offset, names);
    }
    Ok(())
}

/// The batches from a position on that one segment can hold.
fn read_part(
    reader: &mut SegmentReader<'_>,
    log: &mut SegmentFile<'_>,
    start: u64,
) -> Result<Part, Interruption> {
    let Some(first) = log.next(start, log.size())? else {
        return Err(Interruption::other(
            "java.util.NoSuchElementException",
            "no batch to split at",
        ));
    };
    let base_offset = log.base_offset(&first, &mut reader.codecs)?;
    let mut part = Part { base_offset, start, end: start, entries: Vec::new() };
    let mut since_entry: u64 = 0;
    while let Some((end, last_offset)) = read_copy(log, base_offset, part.end)? {
        if since_entry > reader.config.index_interval_bytes {
            part.entries.push(OffsetEntry {
                relative_offset: last_offset.wrapping_sub(base_offset) as i32,
                position: part.end.saturating_sub(start) as i32,
            });
            since_entry = 0;
        }
        since_entry = since_entry.saturating_add(end.saturating_sub(part.end));
        part.end = end;
    }
    if part.end == start {
        let message = format!("Failed to append records from position {start}");
        return Err(Interruption::other("java.lang.IllegalStateException", message));
    }
    Ok(part)
}

/// Where the batches end that are copied at once from a position on, and their last offset; `None`
/// where the part ends.
fn read_copy(
    log: &mut SegmentFile<'_>,
    base_offset: i64,
    start: u64,
) -> Result<Option<(u64, i64)>, Interruption> {
    let mut copied = None;
    let mut end = start;
    while let Some(frame) = log.next(end, log.size())? {
        let last_offset = log.last_offset(&frame)?;
        let size = frame.end().saturating_sub(start);
        let fits = copied.is_none() || size < MAX_COPY_BYTES;
        if !is_in_reach(base_offset, last_offset) || !fits {
            break;
        }
        end = frame.end();
        copied = Some((end, last_offset));
    }
    Ok(copied)
}

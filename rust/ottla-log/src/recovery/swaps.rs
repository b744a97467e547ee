//! Swaps: replacements of segments that a cleaner or a split had under way when the broker stopped
//! (`docs/kafka/log-dir.md` §5, steps 1 and 2).

use super::files::{FileContent, NewIndex};
use super::interruption::Interruption;
use super::segment::SegmentReader;
use crate::names::{CHECKPOINT, CLEANED, DELETED, LOG, SWAP, SegmentNames, offset_of};

/// Deletes what an operation under way has left, and completes a swap that was under way.
pub(super) fn finish_swaps(reader: &mut SegmentReader<'_>) -> Result<(), Interruption> {
    let mut swaps = Vec::new();
    let mut cleaned = Vec::new();
    let mut lowest_cleaned = i64::MAX;
    for name in reader.files.names() {
        if name.ends_with(DELETED) && !is_deleted_checkpoint(&name) {
            reader.files.remove(&name);
        } else if name.ends_with(CLEANED) {
            lowest_cleaned = lowest_cleaned.min(offset_of(&name)?);
            cleaned.push(name);
        } else if name.ends_with(SWAP) {
            swaps.push(name);
        }
    }
    let replaced = replaced_offsets(reader, swaps, lowest_cleaned)?;
    for name in cleaned {
        reader.files.remove(&name);
    }
    if let Some((first, end)) = replaced {
        for name in reader.files.names() {
            let is_replaced = offset_of(&name).is_ok_and(|offset| (first..end).contains(&offset));
            if is_replaced && !name.ends_with(SWAP) {
                reader.files.remove(&name);
            }
        }
    }
    for name in reader.files.names() {
        if let Some(target) = name.strip_suffix(SWAP) {
            reader.files.rename(&name, target);
        }
    }
    Ok(())
}

/// Snapshots of KRaft are deleted by others.
fn is_deleted_checkpoint(name: &[u8]) -> bool {
    name.strip_suffix(DELETED).is_some_and(|name| name.ends_with(CHECKPOINT))
}

/// First offset and end of what the replacements replace. Those of a split that did not end are
/// deleted.
fn replaced_offsets(
    reader: &mut SegmentReader<'_>,
    swaps: Vec<Vec<u8>>,
    lowest_cleaned: i64,
) -> Result<Option<(i64, i64)>, Interruption> {
    let mut replaced: Option<(i64, i64)> = None;
    for name in swaps {
        let base_offset = offset_of(&name)?;
        if base_offset >= lowest_cleaned {
            reader.files.remove(&name);
        } else if name.strip_suffix(SWAP).is_some_and(|name| name.ends_with(LOG)) {
            let next_offset = next_offset_of_swap(reader, base_offset)?;
            let (first, end) = replaced.unwrap_or((i64::MAX, i64::MIN));
            replaced = Some((first.min(base_offset), end.max(next_offset)));
        }
    }
    Ok(replaced)
}

/// The offset after a segment that waits to be swapped in.
fn next_offset_of_swap(
    reader: &mut SegmentReader<'_>,
    base_offset: i64,
) -> Result<i64, Interruption> {
    let names = SegmentNames::with_suffix(base_offset, SWAP);
    let had_index = reader.files.exists(&names.index);
    let next_offset = reader.next_offset(&names)?;
    if !had_index {
        // Made at full size, and taken for full when it is opened again.
        let count = reader.config.max_offset_entries();
        reader.files.put(&names.index, FileContent::Index(NewIndex::Zeros(count)));
    }
    Ok(next_offset)
}

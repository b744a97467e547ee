//! The aborted transactions of all segments, from their transaction indexes.

use ottla_log::names::SegmentNames;
use ottla_log::recovery::{Directory, RecoveredLog, RecoveredSegment};
use ottla_log::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use ottla_log::sorting::sort_by_key;
use ottla_log::source::fill;
use std::io;

/// Entries that are read at once.
const ENTRIES: usize = 1 << 10;

/// The aborted transactions of a log, in the order of their markers.
pub(super) fn read(
    directory: &dyn Directory,
    log: &RecoveredLog,
) -> io::Result<Vec<AbortedTransaction>> {
    let mut aborted = Vec::new();
    let next = log.segments.iter().skip(1).map(|segment| segment.base_offset);
    for (segment, end_offset) in log.segments.iter().zip(next.chain([log.log_end_offset])) {
        read_segment(directory, segment, end_offset, &mut aborted)?;
    }
    sort_by_key(&mut aborted, |entry| entry.last_offset);
    Ok(aborted)
}

/// Adds the aborted transactions of a segment whose markers it can hold.
fn read_segment(
    directory: &dyn Directory,
    segment: &RecoveredSegment,
    end_offset: i64,
    aborted: &mut Vec<AbortedTransaction>,
) -> io::Result<()> {
    let offsets = segment.base_offset..end_offset;
    let file = match directory.open(&SegmentNames::of(segment.base_offset).transaction_index) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut buffer = vec![0; ABORTED_TRANSACTION_BYTES * ENTRIES];
    let mut position = 0u64;
    loop {
        let filled = fill(&*file, position, &mut buffer)?;
        let entries = buffer.get(..filled).unwrap_or_default();
        let entries = ottla_log::sidefiles::transaction_index::entries(entries).flatten();
        aborted.extend(entries.filter(|entry| {
            offsets.contains(&entry.last_offset) && entry.first_offset <= entry.last_offset
        }));
        if filled < buffer.len() {
            return Ok(());
        }
        position = position.saturating_add(filled as u64);
    }
}
